#!/usr/bin/env python3
"""
unit_test.py HEAPGAUGE UNIT: the systemd unit is one that systemd understands, and the recorder works within what it allows. There is no
systemd here that would start it, so what it would do is done by hand, as the unit's lines say: a file system that can only be read but for the
state and cache folders, an ordinary user without capabilities, no memory that is written and executed, only those families of sockets, and
the filter of system calls, of which systemd says what is in its groups.
"""
import ctypes
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import pprof  # noqa: E402
import tap  # noqa: E402
from bad_targets import Recorder, Targets  # noqa: E402

HEAPGAUGE, UNIT = [os.path.abspath(a) for a in sys.argv[1:3]]
NOBODY = 65534
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}
X86_64 = 0xc000003e
ALLOW, REFUSE = 0x7fff0000, 0x00050000
SET_SECCOMP, NO_NEW_PRIVS, SET_MDWE, DROP_BOUND = 22, 38, 65, 24
NEW_MOUNTS, READ_ONLY, REMOUNT, BIND, PRIVATE, RECURSIVE = 0x20000, 1, 32, 4096, 1 << 18, 16384


def read_unit():
    """{key: [values]}; an empty value is one."""
    unit = {}
    with open(UNIT, encoding="utf-8") as f:
        for key, value in re.findall(r"^(\w+)=(.*)$", f.read(), re.M):
            unit.setdefault(key, []).append(value)
    return unit


# --- the filter ---

def members(name):
    """Names of system calls; None: systemd doesn't know the group."""
    if not name.startswith("@"):
        return {name}
    got = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=False)
    lines = [line.strip() for line in got.stdout.splitlines()]
    if got.returncode or not lines or lines[0] != name:
        return None
    found = set()
    for line in lines[1:]:
        if line and line[0] != "#":
            found |= members(line) or set()
    return found


def numbers():
    """{name: number} on this machine."""
    text = subprocess.run(["cc", "-dM", "-E", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], capture_output=True, text=True, check=True).stdout
    return {name: int(n) for name, n in re.findall(r"^#define __NR_(\w+) (\d+)$", text, re.M)}


def instruction(code, value, yes=0, no=0):
    return struct.pack("=HBBI", code, yes, no, value)


def program(allowed, families, error):
    """BPF: what is not allowed fails; a socket is looked at by its family."""
    load, equal, give = 0x20, 0x15, 0x06
    refuse = instruction(give, REFUSE | error)
    out = instruction(load, 4) + instruction(equal, X86_64, 1, 0) + refuse + instruction(load, 0)
    out += instruction(equal, 41, 0, 2 + len(families)) + instruction(load, 16)
    for i, family in enumerate(families):
        out += instruction(equal, family, len(families) - i, 0)
    out += instruction(give, REFUSE | 97) + instruction(load, 0)
    for n in sorted(allowed):
        out += instruction(equal, n, 0, 1) + instruction(give, ALLOW)
    return out + refuse


# --- confinement, in the child before exec ---

libc = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def mount(place, flags):
    must(libc.mount(b"none", place.encode(), None, ctypes.c_ulong(flags), None), "mount " + place)


def confine_files(writable):
    """ProtectSystem=strict: all that is mounted is read-only, but for these."""
    must(libc.unshare(NEW_MOUNTS), "unshare")
    mount("/", PRIVATE | RECURSIVE)
    for place in writable:
        must(libc.mount(place.encode(), place.encode(), None, ctypes.c_ulong(BIND), None), "bind")
    with open("/proc/self/mounts", encoding="utf-8") as f:
        places = [line.split()[1].replace("\\040", " ") for line in f]
    for place in places:
        # The API file systems stay as they are; what another one lies over can't be reached.
        if place not in writable and not re.match(r"/(proc|dev|sys)(/|$)", place):
            libc.mount(b"none", place.encode(), None, ctypes.c_ulong(REMOUNT | BIND | READ_ONLY), None)


def confinement(writable, filter_bytes):
    root = os.geteuid() == 0

    def confine():
        instructions = ctypes.create_string_buffer(filter_bytes, len(filter_bytes))
        whole = struct.pack("=H6xQ", len(filter_bytes) // 8, ctypes.addressof(instructions))
        os.umask(0o077)
        if root:
            confine_files(writable)
            for capability in range(64):
                libc.prctl(DROP_BOUND, capability, 0, 0, 0)
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        must(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        libc.prctl(SET_MDWE, 1, 0, 0, 0)
        must(libc.prctl(SET_SECCOMP, 2, ctypes.c_char_p(whole), 0, 0), "seccomp")

    return confine


# --- checks ---

def check_words(unit):
    text = open(UNIT, encoding="utf-8").read()
    folder = tempfile.mkdtemp(prefix="heapgauge-unit-", dir=scratch)
    place = os.path.join(folder, "heapgauge-record.service")
    with open(place, "w", encoding="utf-8") as f:
        f.write(re.sub(r"^ExecStart=\S+", "ExecStart=" + HEAPGAUGE, text, flags=re.M).replace("Documentation=man:heapgauge-record(1)\n", ""))
    got = subprocess.run(["systemd-analyze", "verify", place], capture_output=True, text=True, check=False)
    said = [line for line in (got.stdout + got.stderr).splitlines() if "heapgauge-record" in line]
    tap.check(got.returncode == 0 and not said, "systemd understands the unit", got.stdout + got.stderr)
    got = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", place], capture_output=True, text=True, check=False)
    tap.check(got.returncode == 0, "systemd-analyze security: an exposure of at most 2.0", got.stdout[-200:] + got.stderr)


def code_place():
    """Build id of this program, and where in its file main() begins."""
    notes = subprocess.run(["readelf", "-n", HEAPGAUGE], capture_output=True, text=True, check=True).stdout
    symbols = subprocess.run(["nm", HEAPGAUGE], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes).group(1), int(re.search(r"^(\w+) T main$", symbols, re.M).group(1), 16)


def check_works(unit):
    wanted = [members(name) for name in unit["SystemCallFilter"][0].split()]
    known = numbers()
    if not tap.check(None not in wanted, "systemd knows the groups of system calls", unit["SystemCallFilter"]):
        return
    allowed = {known[name] for names in wanted for name in names if name in known}
    error = {"EPERM": 1}[unit["SystemCallErrorNumber"][0]]
    families = [FAMILIES[f] for f in unit["RestrictAddressFamilies"][0].split()]
    state, cache = os.path.join(scratch, "state"), os.path.join(scratch, "cache")
    for place in (state, cache):
        os.mkdir(place)
        if os.geteuid() == 0:
            os.chown(place, NOBODY, NOBODY)
    targets = Targets()
    open(os.path.join(state, "said"), "wb").close()
    config = "global: {scrape_interval: 200ms}\nstore: {path: %s/heapgauge.db}\nscrape_configs: [{job_name: good, profile_path: /good, " \
             "static_configs: [{targets: ['%s']}]}]\n" % (state, targets.address.replace("127.0.0.1", "localhost"))
    os.environ["HEAPGAUGE_CACHE"] = cache
    # A folder above the build directory may be closed to others.
    shutil.copy(HEAPGAUGE, PROGRAM)
    r = Recorder(PROGRAM, state, config=config, before=confinement([state, cache], program(allowed, families, error)))
    if not tap.check(r.url, "it starts", r.log()):
        return
    build_id, main = code_place()
    tap.check(r.wait(lambda: r.target(job="good")["health"] == "up"), "it scrapes, by a host's name", r.targets())
    body = pprof.encode({(main + 4,): (0, 0, 1, 4096)}, path=PROGRAM, build_id=build_id, size=1 << 28)
    tap.check(r.ask("/api/v1/push?job=push", body, "POST")[0] == 204, "it takes a push", r.log())

    def functions():
        status, answer, _ = r.ask("/api/v1/profile?match=%7Bjob%3D%22push%22%7D")
        return status == 200 and any("main" in str(frame) for stack in pprof.Profile(answer).sums for frame in stack)

    tap.check(r.wait(functions, 20), "its sandboxed worker finds names", (r.log()[-600:], [m for m in r.metrics().items() if "symbols" in m[0]]))
    r.process.send_signal(signal.SIGHUP)
    tap.check(r.wait(lambda: r.metrics()["heapgauge_reloads_total"] == 1), "it reads its configuration again", r.log())
    with open("/proc/%d/status" % r.process.pid, encoding="utf-8") as f:
        status = f.read()
    tap.check(re.search(r"^Seccomp:\s+2$", status, re.M) and re.search(r"^CapEff:\s+0+$", status, re.M) or os.geteuid() != 0,
              "all of it under the filter and without capabilities", status)
    tap.check(r.end() == 0, "it ends well", r.log())


scratch = tempfile.mkdtemp(prefix="heapgauge-unit-", dir="/var/tmp")
os.chmod(scratch, 0o755)
PROGRAM = os.path.join(scratch, "heapgauge")
try:
    if not shutil.which("systemd-analyze"):
        tap.skip("the systemd unit", "systemd-analyze is not installed")
    else:
        check_words(read_unit())
        if os.environ.get("SANITIZED"):
            tap.skip("the recorder within the unit's limits", "a sanitizer needs more than they allow")
        elif os.uname().machine != "x86_64":
            tap.skip("the recorder within the unit's limits", "only written for x86-64")
        else:
            check_works(read_unit())
finally:
    shutil.rmtree(scratch, ignore_errors=True)
sys.exit(tap.done())
