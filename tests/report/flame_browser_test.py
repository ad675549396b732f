"""
What a browser makes of a flame graph: hover, zoom, search, keyboard, address, dark colours, and the
picture where no script runs. Real mouse and key events in a headless Chromium.

  flame_browser_test.py EXPORT_FIXTURE FOLDER [--shots]     (--shots: pictures are left in FOLDER)
"""
import os
import re
import struct
import sys
import time
import xml.etree.ElementTree as ET
import zlib

import browser
import flame
from flame import check, note

TIP = "[...document.querySelectorAll('.tip text')].map(t => t.textContent).join('\\n')"
FOUND = "document.querySelector('.found').textContent"
# Boxes with their name, in order of drawing.
BOXES = """(() => [...document.querySelectorAll('#boxes rect.box')].map(r => {
    const b = r.getBoundingClientRect();
    return { box: r.box, child: r.child, x: b.x, y: b.y, w: b.width, h: b.height, cls: r.getAttribute('class') };
}))()"""


def pixel_reader(path):
    """(x, y) -> (r, g, b) of an 8-bit RGB or RGBA PNG."""
    with open(path, "rb") as f:
        png = f.read()
    at, packed, header = 8, b"", None
    while at < len(png):
        n, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            header = struct.unpack(">IIBB", png[at + 8:at + 18])
        elif kind == b"IDAT":
            packed += png[at + 8:at + 8 + n]
        at += 12 + n
    width, height, step = header[0], header[1], {2: 3, 6: 4}[header[3]]
    raw, stride = zlib.decompress(packed), header[0] * step
    rows, above = [], bytearray(stride)
    for y in range(height):
        kind = raw[y * (stride + 1)]
        row = bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride if kind else 0):
            a = row[i - step] if i >= step else 0
            b = above[i]
            c = above[i - step] if i >= step else 0
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            row[i] = (row[i] + (0, a, b, (a + b) // 2, nearest)[kind]) & 255
        rows.append(row)
        above = row
    return lambda x, y: tuple(rows[int(y)][int(x) * step:int(x) * step + 3])


def dominant(read, x, y, w):
    """The most frequent colour along a line through a box."""
    seen = [read(x + 1 + i, y) for i in range(int(w) - 2)]
    return max(set(seen), key=seen.count)


class Page:
    def __init__(self, b, folder, shots):
        self.b, self.folder, self.shots = b, folder, shots

    def show(self, name, svg, fragment=""):
        path = os.path.join(self.folder, name + ".svg")
        with open(path, "wb") as f:
            f.write(svg)
        self.b.open("about:blank")
        self.b.open("file://" + path + fragment)
        self.data = flame.data(ET.fromstring(svg))

    def shot(self, name):
        path = os.path.join(self.folder, name + ".png")
        self.b.screenshot(path)
        return path

    def boxes(self):
        return self.b.js(BOXES)

    def box(self, i):
        return next((b for b in self.boxes() if b["box"] == i and not b["child"]), None)

    def hover(self, box):
        self.b.move(box["x"] + min(box["w"] / 2, 30), box["y"] + box["h"] / 2)
        return self.b.js(TIP)

    def click(self, box):
        self.b.click(box["x"] + box["w"] / 2, box["y"] + box["h"] / 2)

    def hash(self):
        return self.b.js("location.hash")

    def wide(self, i):
        box = self.box(i)
        return box and abs(box["w"] - (self.b.js("document.documentElement.clientWidth") - 21)) < 2

    def overflowing(self):
        """Names that are longer than their boxes."""
        return self.b.js("""(() => { const bad = []; let rect = null;
            for (const e of document.querySelector('#boxes').firstChild.children) {
                if (e.localName === 'rect') rect = e;
                else if (+e.getAttribute('x') + e.getComputedTextLength() >
                         +rect.getAttribute('x') + +rect.getAttribute('width') + 1) bad.push(e.textContent);
            } return bad; })()""")


def check_quiet(p, what):
    b = p.b
    thrown = [e["exceptionDetails"]["exception"].get("description", "?") for e in b.seen("Runtime.exceptionThrown")]
    asked = [e["request"]["url"] for e in b.seen("Network.requestWillBeSent")]
    asked = [u for u in asked if not u.startswith("file://" + p.folder) and u != "about:blank"]
    check(not thrown, "%s: no exception" % what, thrown)
    check(not asked, "%s: asks for nothing" % what, asked)


def deep_box(data):
    """A box with children that is not as wide as its parent."""
    parents = flame.parents(data)
    width = data.get("width", data["now"])
    has_child = set(parents)
    return next(i for i in range(1, len(width))
                if i in has_child and width[i] < 0.7 * width[parents[i]] and width[i] > 0.05 * width[0])


def check_hover_and_zoom(p, name):
    data = p.data
    target = deep_box(data)
    tip = p.hover(p.box(target))
    full = data["frames"][data["frame"][target]][0]
    check(tip.replace("\n", "").startswith(full.replace("\n", "")), name + ": the tip begins with the whole name", tip)
    check(("change" in tip and "→" in tip) if data["diff"] else "of the total" in tip, name + ": and has the amount", tip)
    check("95 %" in tip or not data["error"], name + ": and its error", tip)
    p.shot(name + "-hover")
    p.b.move(2, 2)
    check(p.b.js(TIP) == "", name + ": no tip beside the boxes")

    before = len(p.boxes())
    p.click(p.box(target))
    check(p.wide(target), name + ": a click makes the box as wide as the page")
    check(re.search(r"z=%d\b" % target, p.hash()), name + ": the address says where", p.hash())
    check(not p.overflowing(), name + ": names are fitted again", p.overflowing())
    parents = flame.parents(data)
    above = [b for b in p.boxes() if "above" in b["cls"]]
    chain, i = [], target
    while i:
        i = parents[i]
        chain.append(i)
    check([b["box"] for b in above] == chain[::-1], name + ": its callers stay above it")
    p.shot(name + "-zoom")
    p.b.js("history.back()")
    check(p.b.settle("!/z=/.test(location.hash)") and len(p.boxes()) == before, name + ": Back zooms out")
    p.click(p.box(target))
    p.b.key("Escape")
    check(p.hash() in ("", "#") and len(p.boxes()) == before, name + ": Esc shows everything", p.hash())


def expected_match(data, expression):
    """base, now of the outermost boxes that match."""
    match = re.compile(expression, 0 if re.search("[A-Z]", expression) else re.I)
    covered, base, now, count = None, 0, 0, 0
    for i, depth in enumerate(data["depth"]):
        if covered is not None and depth <= covered:
            covered = None
        hit = data["frame"][i] >= 0 and match.search(data["frames"][data["frame"][i]][0])
        count += bool(hit)
        if hit and covered is None:
            covered = depth
            now += data["now"][i]
            base += data["base"][i] if data["diff"] else 0
    return base, now, count


def size_text(value):
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1023.5 or unit == "TiB":
            digits = 0 if unit == "B" else 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
            return "%.*f %s" % (digits, value, unit)
        value /= 1024


def check_search(p, name, expression):
    b = p.b
    b.key("/")
    check(b.js("document.activeElement.localName") == "input", name + ": / opens the search")
    b.type(expression)
    base, now, count = expected_match(p.data, expression)
    found = b.js(FOUND)
    check(size_text(now) in found and (" in %d box" % count) in found, name + ": the matched total is shown",
          (found, size_text(now), count))
    if p.data["diff"]:
        check(size_text(base) in found, name + ": and that of the base", found)
    match = re.compile(expression, re.I)
    shown = {x["box"] for x in p.boxes() if not x["child"]}
    lit = {x["box"] for x in p.boxes() if not x["child"] and "hit" in x["cls"].split()}
    want = {i for i in shown if p.data["frame"][i] >= 0 and match.search(p.data["frames"][p.data["frame"][i]][0])}
    check(lit == want and lit, name + ": %d boxes are lit, and only these" % len(want))
    p.shot(name + "-search")
    check("s=" in p.hash(), name + ": the address has it")
    b.js("location.reload()")
    b.wait_for("Page.loadEventFired")
    check(b.js(FOUND) == found, name + ": also after loading again", b.js(FOUND))
    b.key("f", browser.CONTROL)
    check(b.js("document.activeElement.localName") == "input", name + ": Ctrl-F opens it, too")
    b.type("(")
    check("not a regular expression" in b.js(FOUND), name + ": a bad expression is called so", b.js(FOUND))
    b.key("Escape")
    check(b.js(FOUND) == "" and p.hash() in ("", "#") and not any("hit" in x["cls"].split() for x in p.boxes()),
          name + ": Esc ends the search")


def selected(p):
    return p.b.js("(document.querySelector('#selected') || {box: -1}).box")


def check_keyboard(p, name):
    b, data = p.b, p.data
    parents = flame.parents(data)
    children = [i for i in range(1, len(parents)) if parents[i] == 0]
    b.key("ArrowDown")
    check(selected(p) == 0, name + ": an arrow selects the root first")
    b.key("ArrowDown")
    check(selected(p) == children[0], name + ": then its first child", selected(p))
    label = b.js("document.querySelector('#selected').getAttribute('aria-label')")
    check(data["frames"][data["frame"][children[0]]][0] in label, name + ": which is announced", label)
    at = children[0]
    for _ in range(20):
        below = [i for i in range(len(parents)) if parents[i] == at and i]
        b.key("ArrowDown")
        at = below[0] if below else at
        if len(below) > 1:
            break
    b.key("ArrowRight")
    second = below[1]
    check(selected(p) == second, name + ": right is the next sibling", (selected(p), second))
    b.key("ArrowLeft")
    check(selected(p) == below[0], name + ": left is the one before")
    b.key("ArrowRight")
    b.key("Enter")
    check(p.wide(second), name + ": Enter zooms")
    b.key("Backspace")
    check(p.wide(parents[second]), name + ": Backspace zooms out one level")
    b.key("0")
    check(p.wide(0) and selected(p) == -1, name + ": 0 shows everything")
    y = p.box(0)["y"]
    b.key("f")
    check(p.box(0)["y"] > y and "f=1" in p.hash(), name + ": f turns it over")
    p.shot(name + "-flipped")
    b.key("f")
    check(p.box(0)["y"] == y, name + ": and back")
    b.key("?")
    check("Ctrl-F" in b.js(TIP), name + ": ? lists the keys")
    b.key("Escape")


def check_layout(p, name):
    """Every box below its parent and inside of it."""
    data, parents = p.data, flame.parents(p.data)
    at = {x["box"]: x for x in p.boxes() if not x["child"]}
    bad = [i for i, x in at.items() if i and (parents[i] not in at or x["x"] < at[parents[i]]["x"] - 0.1 or
           x["x"] + x["w"] > at[parents[i]]["x"] + at[parents[i]]["w"] + 1.1 or
           abs(x["y"] - at[parents[i]]["y"] - data["row"]) > 0.1)]
    check(not bad, "%s: %d boxes are below their parents" % (name, len(at)), bad[:3])
    starts, width = flame.starts(data), data.get("width", data["now"])
    scale = (p.b.js("document.documentElement.clientWidth") - 20) / (width[0] or 1)
    bad = [(i, x["x"], x["w"]) for i, x in at.items() if i and (abs(x["x"] - 10 - starts[i] * scale) > 0.1 or
           not 0.79 * width[i] * scale <= x["w"] + 0.05 <= width[i] * scale + 0.1)]
    check(not bad, name + ": where and as wide as their amounts say", bad[:3])
    check(not p.overflowing(), name + ": names fit", p.overflowing()[:3])


def css_colour(svg, name, dark):
    css = re.search(r"<style><!\[CDATA\[(.*?)\]\]></style>", svg.decode(), re.S).group(1)
    part = css.split("@media (prefers-color-scheme: dark)")[1 if dark else 0]
    colour = re.search(r"\.%s \{ fill: (#[0-9a-f]+)" % name, part).group(1)
    colour = colour if len(colour) == 7 else "#" + "".join(c * 2 for c in colour[1:])
    return tuple(int(colour[i:i + 2], 16) for i in (1, 3, 5))


def check_picture(p, fixture, dark):
    """As an <img>, where no script runs: the same boxes in the same places, in the right colours."""
    scheme = "dark" if dark else "light"
    svg = fixture.write("diff", "flame")
    p.b.dark(dark)
    p.show("picture", svg)
    page = os.path.join(p.folder, "picture.html")
    with open(page, "w", encoding="utf-8") as f:
        f.write("<!doctype html><body style='margin:0'><img src='picture.svg'>")
    p.b.open("file://" + page)
    read = pixel_reader(p.shot("picture-" + scheme))
    root = ET.fromstring(svg)
    wrong, seen = [], set()
    for e in root.find(".//*[@id='boxes']"):
        if not e.tag.endswith("rect") or float(e.get("width")) < 25 or e.get("class") in ("gone", "new"):
            continue
        name = e.get("class")
        seen.add(name)
        x, y, w = (float(e.get(k)) for k in ("x", "y", "width"))
        if y < 780 and dominant(read, x, y + 2, w) != css_colour(svg, name, dark):
            wrong.append((name, x, y, dominant(read, x, y + 2, w), css_colour(svg, name, dark)))
    check(not wrong and len(seen) >= 4, "without scripts, %s: %s are drawn in their colours" % (scheme, sorted(seen)), wrong[:3])
    check(read(5, 300) == css_colour(svg, "page", dark), "without scripts, %s: the page, too" % scheme, read(5, 300))
    p.b.dark(False)


def check_narrow(p, fixture):
    p.show("wide", fixture.write("wide", "flame"))
    runs = [x for x in p.boxes() if x["child"]]
    check(len(runs) == 1, "wide: what is too narrow is one box", len(runs))
    tip = p.hover(runs[0])
    check("too narrow" in tip, "wide: that says so", tip)
    p.click(runs[0])
    shown = [x for x in p.boxes() if not x["child"] and x["box"] >= runs[0]["child"]]
    again = [x for x in p.boxes() if x["child"]]
    check(shown or again, "wide: a click zooms into it", len(p.boxes()))
    check(re.search(r"z=\d+\.\d+", p.hash()), "wide: and the address says so", p.hash())
    p.b.key("Backspace")
    check(not re.search(r"z=\d+\.", p.hash()), "wide: Backspace leaves it", p.hash())
    check_quiet(p, "wide")


def check_deep(p, fixture):
    p.show("deep", fixture.write("deep", "flame"))
    boxes = p.boxes()
    check(300 < len(boxes) < 900, "deep: the page has some hundred rows", len(boxes))
    lowest = max(boxes, key=lambda x: x["y"])["box"]
    p.show("deep", fixture.write("deep", "flame"), "#z=%d" % lowest)
    check(p.wide(lowest) and max(x["box"] for x in p.boxes()) > lowest + 300, "deep: zooming goes on below")
    check_quiet(p, "deep")


def check_hostile(p, fixture):
    for form in ("flame", "inverted"):
        p.show("hostile", fixture.write("hostile", form))
        for box in p.boxes():
            p.hover(box)
        p.b.key("/")
        p.b.type("<script>window.attacked=1</script>")
        p.shot("hostile")
        p.b.key("Escape")
        check(p.b.js("window.attacked === undefined"), "hostile %s: no name acts" % form)
        text = p.b.js("document.documentElement.textContent.match(/[\\u202e\\u2066\\x1b\\x07]/) === null")
        check(text, "hostile %s: no control or direction characters on the page" % form)
        check(p.b.js("document.querySelectorAll('script').length") == 2, "hostile %s: no script came in" % form)
        check_quiet(p, "hostile " + form)
    p.show("hostile", fixture.write("hostile", "flame"), "#s=%3Cscript%3E&z=999999999.7&f=%zz&__proto__=1")
    check(p.wide(0), "hostile: a made-up address is harmless")
    check_quiet(p, "hostile address")


def check_narrow_window(p, fixture):
    p.b.size(600, 700)
    p.show("small", fixture.write("server", "flame"))
    check_layout(p, "600 pixels")
    top = p.b.js("Math.max(...[...document.querySelectorAll('foreignObject, #legend .key')].map(e => e.getBoundingClientRect().bottom))")
    check(p.box(0)["y"] >= top - 8, "600 pixels: nothing covers the boxes", (p.box(0)["y"], top))
    p.shot("small")
    p.b.size(1500, 800)
    check(p.b.settle("document.documentElement.getAttribute('width') === '1500'"), "a larger window makes a larger picture")
    check_layout(p, "1500 pixels")
    p.b.size(1200, 800)


def check_big(p, fixture):
    for kind in ("100000", "diff:100000"):
        svg = fixture.write(kind, "flame")
        note(fixture.said)
        start = time.monotonic()
        p.show("big", svg)
        p.b.js("document.querySelectorAll('rect').length")
        took = time.monotonic() - start
        note("%s: on the page after %.2f s, %d boxes" % (kind, took, len(p.boxes())))
        check(took < 10, kind + ": loads in reasonable time", took)
        p.shot("big-" + kind.replace(":", "-"))
        check_layout(p, kind)
        check_quiet(p, kind)


def main():
    if not browser.find():
        flame.skip_all("no chromium installed")
    fixture, folder = flame.Fixture(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    with browser.Browser(1200, 800) as b:
        p = Page(b, folder, "--shots" in sys.argv)
        for kind, expression in (("server", "sqlite|ssl_"), ("diff", "cache|^main$"), ("folded", "sqlite")):
            p.show(kind, fixture.write(kind, "flame"))
            p.shot(kind)
            check_layout(p, kind)
            check_hover_and_zoom(p, kind)
            check_search(p, kind, expression)
            check_keyboard(p, kind)
            check_quiet(p, kind)
        for kind in ("empty", "exact", "same"):
            p.show(kind, fixture.write(kind, "flame"))
            p.shot(kind)
            p.hover(p.box(0))
            check_layout(p, kind)
            check_quiet(p, kind)
        check_picture(p, fixture, False)
        check_picture(p, fixture, True)
        check_narrow(p, fixture)
        check_deep(p, fixture)
        check_hostile(p, fixture)
        check_narrow_window(p, fixture)
        check_big(p, fixture)
        if p.shots:
            b.dark(True)
            for kind in ("server", "diff", "same", "folded", "100000"):
                p.show(kind, fixture.write(kind, "flame"))
                p.shot(kind.replace(":", "-") + "-dark")
                p.hover(p.box(deep_box(p.data)))
                p.shot(kind.replace(":", "-") + "-dark-hover")
    return flame.done()


sys.exit(main())
