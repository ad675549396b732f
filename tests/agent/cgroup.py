"""A memory cgroup for a test, below the one it runs in; v1 or v2, whichever holds the memory controller here."""
import contextlib
import os
import time

ROOT = "/sys/fs/cgroup"


def _own(controller):
    """The path of this process' group: controller "memory" (v1) or "" (v2)."""
    try:
        with open("/proc/self/cgroup") as f:
            for line in f:
                _, names, path = line.rstrip("\n").split(":", 2)
                if controller in names.split(","):
                    return path.rstrip("/")
    except OSError:
        pass
    return None


def _write(path, text):
    with open(path, "w") as f:
        f.write(str(text))


def _read(path):
    with open(path) as f:
        return f.read()


class Group:
    def __init__(self, path, version):
        self.path, self.version = path, version
        self.names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if version == 1 else ("memory.max", "memory.current")

    def limit(self, n):
        _write(os.path.join(self.path, self.names[0]), n)

    def usage(self):
        return int(_read(os.path.join(self.path, self.names[1])))

    def wrapper(self):
        """In front of a program that shall run in it."""
        return ["/bin/sh", "-c", 'echo $$ > "%s/cgroup.procs" && exec "$0" "$@"' % self.path]

    def remove(self):
        for _ in range(100):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("%s can't be removed: %s" % (self.path, _read(os.path.join(self.path, "cgroup.procs"))))


def _make(parent, version):
    path = os.path.join(parent, "heapgauge-test-%d" % os.getpid())
    os.mkdir(path)
    group = Group(path, version)
    try:
        group.limit(1 << 30)
    except OSError:
        os.rmdir(path)
        raise
    return group


def _candidates():
    own = _own("memory")
    if own is not None:
        yield ROOT + "/memory" + own, 1
        yield ROOT + "/memory", 1
    own = _own("")
    for root in (ROOT, ROOT + "/unified"):
        if own is None or not os.path.exists(root + "/cgroup.controllers"):
            continue
        for path in (root + own, root + os.path.dirname(own), root):
            try:
                if "memory" not in _read(path + "/cgroup.subtree_control").split():
                    _write(path + "/cgroup.subtree_control", "+memory")
                yield path, 2
            except OSError:
                continue


@contextlib.contextmanager
def memory_group():
    """Yields a Group, or a sentence that says why there is none."""
    group, why = None, "no memory cgroup here"
    for parent, version in _candidates():
        try:
            group = _make(parent, version)
            break
        except OSError as error:
            why = "no memory cgroup can be made here: %s" % error
    try:
        yield group or why
    finally:
        if group:
            group.remove()
