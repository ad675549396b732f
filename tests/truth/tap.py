"""Results in the Test Anything Protocol, for the drivers of this folder."""
count = 0
failures = 0


def note(text):
    for line in text.splitlines():
        print("# " + line, flush=True)


def check(good, what, why=None):
    """good: whether it holds. why: said when it doesn't."""
    global count, failures
    count += 1
    print("%s %d - %s" % ("ok" if good else "not ok", count, what), flush=True)
    if not good:
        failures += 1
        if why:
            note(str(why))
    return bool(good)


def skip(what, why):
    global count
    count += 1
    print("ok %d - %s # SKIP %s" % (count, what, why), flush=True)


def done():
    """Prints the plan; the exit status."""
    print("1..%d" % count, flush=True)
    return 1 if failures else 0
