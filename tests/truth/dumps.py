"""Makes varied real dumps for the comparison with other readers."""
import glob
import os
import shutil
import subprocess
import time


class Dump:
    def __init__(self, name, program, path, exact=False, raw=False, accum=False, own=True):
        self.name = name            # of the test
        self.program = program      # the executable, for jeprof
        self.path = path
        self.exact = exact          # R = 1
        self.raw = raw              # counts as jemalloc up to 5.2 wrote them
        self.accum = accum          # has accumulated counts
        self.own = own              # all functions of interest have symbols


def run(command, conf, **more):
    subprocess.run(command, env=dict(os.environ, MALLOC_CONF="prof:true," + conf, **more), check=True,
                   stdout=subprocess.DEVNULL)


def jemalloc_library():
    done = subprocess.run(["ldconfig", "-p"], stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PATH=os.environ["PATH"] + ":/sbin:/usr/sbin"))
    for line in done.stdout.splitlines():
        if "libjemalloc.so.2" in line:
            return line.split("=> ")[1]
    return None


def of_population(programs, work):
    for lg, rate, budget in (0, 1, 32), (12, 4096, 400), (16, 65536, 800), (19, 524288, 1500):
        for accum in ("false", "true"):
            prefix = "%s/population.%d.%s" % (work, lg, accum)
            run([programs.population, "5", str(rate), "400", str(budget), programs.loaded, prefix],
                "lg_prof_sample:%d,prof_accum:%s" % (lg, accum))
            for moment in "ab":
                name = "population, lg_prof_sample %d, prof_accum %s, %s" % (lg, accum, moment)
                yield Dump(name, programs.population, "%s.%s.heap" % (prefix, moment), exact=lg == 0,
                           accum=accum == "true")
    for lg, rate in (12, 4096), (16, 65536):
        prefix = "%s/population.%d.raw" % (work, lg)
        run([programs.population, "6", str(rate), "400", "400", programs.loaded, prefix],
            "prof_unbias:false,lg_prof_sample:%d" % lg)
        yield Dump("population, lg_prof_sample %d, raw counts" % lg, programs.population, prefix + ".a.heap", raw=True)


def of_odd(programs, work):
    for kind, program in ("PIE", programs.odd), ("no PIE", programs.odd_fixed), ("static jemalloc", programs.odd_static):
        for mode in "tiny", "deep":
            path = "%s/odd.%s.%s" % (work, kind.replace(" ", "_"), mode)
            run([program, mode, path], "lg_prof_sample:0")
            yield Dump("odd %s, %s" % (mode, kind), program, path, exact=True)
    path = work + "/odd.late"
    run([programs.odd, "late", programs.loaded, path + ".first", path], "lg_prof_sample:10")
    yield Dump("odd late", programs.odd, path)


def of_redis(work):
    """Two dumps of one server: on the way and at its end."""
    server, client = shutil.which("redis-server"), shutil.which("redis-cli")
    if not server or not client:
        return
    for old in glob.glob(work + "/redis.*"):
        os.unlink(old)
    socket = work + "/redis.socket"
    process = subprocess.Popen(
        [server, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", work], stdout=subprocess.DEVNULL,
        env=dict(os.environ, MALLOC_CONF="prof:true,prof_final:true,lg_prof_sample:14,lg_prof_interval:23,"
                 "prof_prefix:" + work + "/redis"))
    try:
        for _ in range(100):
            if os.path.exists(socket):
                break
            time.sleep(0.1)
        for command in ("DEBUG", "POPULATE", "200000", "key", "100"), ("SHUTDOWN", "NOSAVE"):
            subprocess.run([client, "-s", socket, *command], stdout=subprocess.DEVNULL)
        process.wait(20)
    finally:
        process.kill()
    found = sorted(glob.glob(work + "/redis.*.heap"), key=os.path.getmtime)
    for path in found[-2:]:
        yield Dump("redis-server, " + path.split(".")[-2], os.path.realpath(server), path, own=False)


def of_python(work):
    library = jemalloc_library()
    python = "/usr/bin/python3"
    if not library or not os.path.exists(python):
        return
    for old in glob.glob(work + "/python.*"):
        os.unlink(old)
    code = "import json, re, email.message; x = [json.loads('[%d, {\"a\": \"%d\"}]' % (i, i)) for i in range(50000)]"
    run([python, "-c", code], "prof_final:true,lg_prof_sample:13,prof_accum:true,prof_prefix:" + work + "/python",
        LD_PRELOAD=library, PYTHONMALLOC="malloc")
    for path in glob.glob(work + "/python.*.heap"):
        yield Dump("python3, preloaded jemalloc", os.path.realpath(python), path, accum=True, own=False)


def make(programs, work):
    os.makedirs(work, exist_ok=True)
    found = list(of_population(programs, work))
    found += of_odd(programs, work)
    found += of_redis(work)
    found += of_python(work)
    return found
