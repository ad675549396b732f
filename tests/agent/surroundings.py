#!/usr/bin/env python3
"""
What lies around a program may be missing, forbidden or another thing by now: names never come from a file that isn't the loaded one, and
whatever can't be done is said in words of its own.

surroundings.py HEAPGAUGE HOST HOST_PLAIN HOST_STATIC DENY PLUGIN PLUGIN_OTHER LIBHEAPGAUGE
"""
import os
import shutil
import subprocess
import sys
import tempfile

from harness import Host, ask, check, done, flat, near, skip, status, top

heapgauge, host, host_plain, host_static, deny, plugin, plugin_other, library = sys.argv[1:9]
scratch = tempfile.mkdtemp()
STATIC_TLS = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=65536"}    # libjemalloc.so wants that when it is loaded late


def copy(path, name):
    to = os.path.join(scratch, name)
    shutil.copy(path, to)
    return to


def replace(path, by):
    """As an installation does it: another file under the name."""
    shutil.copy(by, path + ".new")
    os.rename(path + ".new", path)


def names(url):
    """What the endpoint calls the frames of its own dump."""
    dump = ask(url, "/pprof/heap")[2].decode()
    frames = sorted({word for line in dump.split("\n") if line.startswith("@") for word in line.split()[1:]})
    code, _, body = ask(url, "/pprof/symbol", "POST", body="+".join(frames))
    return set(line.split("\t")[1] for line in body.decode().split("\n") if line), code


def programs():
    stripped = copy(host, "stripped")
    subprocess.run(["strip", stripped], check=True)
    with Host(stripped) as h:
        url = h.start()
        h.tell("leak 1000 4096")
        found, code = names(url)
        check(code == 200 and "planted_leak" not in found and any(n.startswith("stripped!0x") for n in found) and "__libc_start_main" in found,
              "a stripped program has addresses where it has no names", found)
    for what in ("deleted", "replaced"):
        path = copy(host, what)
        with Host(path) as h:
            url = h.start()
            h.tell("leak 1000 4096")
            if what == "deleted":
                os.unlink(path)
            else:
                replace(path, host_plain)
            found, code = names(url)
            check(code == 200 and "planted_leak" in found and "main" in found, "a program whose file was %s has its names still" % what, found)
            code, _, body = ask(url, "/pprof/cmdline")
            check(body.decode() == path, "and its path", body)
    with Host(host_static, wrapper=["/lib64/ld-linux-x86-64.so.2"] if os.path.exists("/lib64/ld-linux-x86-64.so.2") else []) as h:
        check(h.tell("status").startswith("1 1 1"), "jemalloc inside a program that was started through ld.so", h.tell("status"))
        url = h.start()
        h.tell("leak 1000 4096")
        found, code = names(url)
        check("planted_leak" in found and not any(n.startswith("ld-linux") and "!0x" in n for n in found), "has its own names", found)


def libraries():
    path = copy(plugin, "libplugin.so")
    with Host(host) as h:
        url = h.start()
        h.tell("load " + path)
        h.tell("call 1000 4096")
        found, _ = names(url)
        check("plugin_leak" in found, "a library that was loaded late has names", found)
        dump = ask(url, "/pprof/heap")[2].decode()
        frames = "+".join(sorted({word for line in dump.split("\n") if line.startswith("@") for word in line.split()[1:]}))
        replace(path, plugin_other)
        found, code = names(url)
        check(code == 200 and any(n.startswith("libplugin.so!0x") for n in found) and
              not found & {"plugin_leak", "another_function", "one_more_function"},
              "one whose file is another by now has addresses, not the other's names", found)
        h.tell("unload")
        code, _, body = ask(url, "/pprof/symbol", "POST", body=frames)
        check(code == 200 and b"planted" not in body and b"plugin" not in body and b"main" in body,
              "one that was unloaded since has none", body)
        check(ask(url, "/debug/pprof/heap")[0] == 200, "and profiles go on")
    jemalloc = next((p for p in ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib/aarch64-linux-gnu/libjemalloc.so.2")
                     if os.path.exists(p)), None)
    if not jemalloc:
        skip("jemalloc in a library that is loaded late", "no libjemalloc.so.2 where it is usually")
        return
    with Host(host_plain, env=STATIC_TLS) as h:
        url = h.start()
        check(status(url)["jemalloc"]["found"] is False and ask(url, "/debug/pprof/heap")[0] == 501, "no jemalloc: 501")
        h.tell("load " + jemalloc)
        check(status(url)["jemalloc"]["found"] is True and ask(url, "/debug/pprof/heap")[0] == 200, "one that is loaded later is found")
    replaced = copy(jemalloc, "libjemalloc-late.so")
    with Host(host_plain, env=STATIC_TLS) as h:
        h.tell("load " + replaced)
        replace(replaced, plugin_other)
        check(h.tell("status").startswith("0"), "one whose file is another by now is not called at a wrong place", h.tell("status"))
    with Host(host_static, preload=["libjemalloc.so.2"]) as h:
        h.tell("leak 10 1000")
        check(h.tell("status").startswith("1 1 1 1") and h.tell("dump 3") == "", "two jemallocs: one is taken", h.tell("status"))


CLOSES = """
import _ctypes, ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
data, n = ctypes.c_void_p(), ctypes.c_size_t()
rc = library.hg_dump_pprof(ctypes.byref(data), ctypes.byref(n))
assert rc == 0 and n.value > 100, rc
_ctypes.dlclose(library._handle)
mapped = open("/proc/self/maps").read()
time.sleep(0.2)
print(rc, "libheapgauge" in mapped)
"""


def closed_again():
    """Its threads go on in code that dlclose would take away."""
    env = dict(os.environ, LD_PRELOAD="libjemalloc.so.2", MALLOC_CONF="prof:true,lg_prof_sample:12")
    p = subprocess.run([sys.executable, "-c", CLOSES, os.path.abspath(library)], capture_output=True, text=True, env=env)
    check(p.returncode == 0 and p.stdout.split() == ["0", "True"], "the library outlives dlclose, as its thread does",
          (p.returncode, p.stdout, p.stderr))


def in_namespace(script, program, env=None):
    """A host in a mount namespace of its own, in which script was run; None when that isn't allowed here."""
    wrapper = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script + ' && exec "$0" "$@"']
    if os.geteuid() != 0 or subprocess.run(wrapper + ["true"], capture_output=True).returncode != 0:
        return None
    return Host(program, wrapper=wrapper, env=env)


def without_proc():
    h = in_namespace("umount -l /proc", host)
    if not h:
        skip("without /proc", "no mount namespaces here: unshare needs root")
        return
    with h:
        h.tell("leak 1000 4096")
        check(h.tell("status").startswith("1 1 1 1"), "without /proc a linked jemalloc is found", h.tell("status"))
        text = h.refused("dump 1")
        check("error -7" in text and "no /proc" in text, "a dump says that there is no /proc", text)
        url = h.start()
        code, _, body = ask(url, "/debug/pprof/heap")
        check(code == 500 and b"mount /proc" in body, "and so does the endpoint", (code, body))
        code, _, body = ask(url, "/pprof/cmdline")
        check(code == 500 and b"/proc" in body, "there is no path to tell", (code, body))
        check(ask(url, "/metrics")[0] == 200, "the rest is there")
    with in_namespace("umount -l /proc", host_static) as h:
        check(h.tell("status").startswith("1 1 1 1"), "one inside the program, too", h.tell("status"))


def read_only():
    folder = os.path.join(scratch, "read-only")
    os.mkdir(folder)
    h = in_namespace("mount --bind %s %s && mount -o remount,ro,bind %s" % (folder, folder, folder), host, env={"XDG_RUNTIME_DIR": folder})
    if not h:
        skip("a read-only file system", "no mount namespaces here: unshare needs root")
        return
    with h:
        h.tell("leak 1000 4096")
        text = h.refused("start unix:%s/deep/a.sock" % folder)
        check("error -7" in text and "Read-only file system" in text and folder in text, "a socket where nothing can be written", text)
        check(h.start("default").startswith("unix:/tmp/"), "the default goes where it can", h.url)
        h.tell("stop")
        url = h.start("127.0.0.1:0", "spool=" + folder)
        code, _, body = ask(url, "/debug/pprof/heap")
        check(code == 500 and b"Read-only file system" in body and folder.encode() in body, "a spool_dir that can't be written to", (code, body))
        h.tell("stop")
        text = h.refused("start 127.0.0.1:0 snapshots=" + folder)
        check("error -7" in text and "Read-only file system" in text, "snapshots there", text)
        check(ask(h.start(), "/debug/pprof/heap")[0] == 200, "in memory it works")


def foreign_folder():
    """Somebody else has made the folder for sockets in /tmp before."""
    uid = 54321
    wrapper = ["setpriv", "--reuid=%d" % uid, "--clear-groups"]
    folder = "/tmp/heapgauge-%d" % uid
    if os.geteuid() != 0 or subprocess.run(wrapper + ["test", "-x", host], capture_output=True).returncode != 0 or os.path.exists(folder):
        skip("a folder of somebody else's", "only root can be two users, and this must be readable by both")
        return
    try:
        for owner, mode in ((0, 0o755), (uid, 0o777)):
            os.mkdir(folder)
            os.chown(folder, owner, owner)
            os.chmod(folder, mode)
            with Host(host, wrapper=wrapper, env={"XDG_RUNTIME_DIR": ""}) as h:
                text = h.refused("start default")
                check("error -9" in text and "only this user can change" in text, "the folder in /tmp is %d's, mode %o: refused" % (owner, mode), text)
            os.rmdir(folder)
        with Host(host, wrapper=wrapper, env={"XDG_RUNTIME_DIR": ""}) as h:
            check(h.start("default").startswith("unix:" + folder), "one that is made now is fine", h.url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refused_calls():
    if subprocess.run([deny, "clone", "/bin/true"]).returncode != 0:
        skip("calls that seccomp refuses", "no seccomp filters here")
        return
    spool = os.path.join(scratch, "spool")
    os.mkdir(spool)
    with Host(host, wrapper=[deny, "memfd_create"]) as h:
        h.tell("leak 1000 4096")
        text = h.refused("dump 1")
        check("error -7" in text and "spool_dir" in text, "memfd_create refused: a dump says what helps", text)
        url = h.start()
        code, _, body = ask(url, "/debug/pprof/heap")
        check(code == 500 and b"memfd_create: Operation not permitted" in body and b"spool_dir" in body, "and so does the endpoint", (code, body))
        code, _, body = ask(url, "/pprof/symbol", "POST", body="0x1000")
        check(code == 500 and b"Operation not permitted" in body, "names say it, too", (code, body))
        h.tell("stop")
        url = h.start("127.0.0.1:0", "spool=" + spool)
        code, _, body = ask(url, "/debug/pprof/heap")
        check(code == 200 and near(flat(top(heapgauge, body), "planted_leak"), 4096000, 0.15), "with it there are profiles", code)
    with Host(host, wrapper=[deny, "clone"]) as h:
        h.tell("leak 1000 4096")
        text = h.refused("dump 1")
        check("error -6" in text and "threads" in text, "threads refused: a dump says so", text)
        text = h.refused("start 127.0.0.1:0")
        check("error -6" in text and "no thread could be started: " in text, "and so does the agent", text)
        check(h.tell("fds") == h.tell("fds") and h.tell("threads") == str(1 + 2), "(. and .. and the one there is)", h.tell("threads"))


try:
    programs()
    libraries()
    closed_again()
    without_proc()
    read_only()
    foreign_folder()
    refused_calls()
finally:
    shutil.rmtree(scratch)
sys.exit(done())
