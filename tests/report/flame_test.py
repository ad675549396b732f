"""
Flame graphs as files: well-formed, small, self-contained, and every box what the folded text of
the same profile says it is. What a browser makes of them is flame_browser_test.py's.

  flame_test.py EXPORT_FIXTURE [--reduced]
"""
import re
import sys
import xml.etree.ElementTree as ET

import flame
from flame import check, note

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {"svg", "title", "style", "defs", "pattern", "rect", "path", "text", "tspan", "g", "script"}


def local(element):
    return element.tag.replace(SVG, "")


def check_file(kind, svg):
    root = ET.fromstring(svg)
    names = {local(e) for e in root.iter()}
    check(names <= ALLOWED, "%s: only drawing elements" % kind, names - ALLOWED)
    bad = [k for e in root.iter() for k in e.attrib if k.startswith("on") or "href" in k or k == "src"]
    check(not bad, "%s: no handlers, no links" % kind, bad)
    text = svg.decode()
    urls = set(re.findall(r"https?://[^\s\"'<)]+", text)) - {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    check(not urls and "@import" not in text and set(re.findall(r"url\([^)]*\)", text)) <= {"url(#hatch)"},
          "%s: nothing from outside" % kind, urls)
    check(len(svg) <= 2_000_000, "%s: %d bytes, at most 2 MB" % (kind, len(svg)))
    return root


def tree_of(stacks, inverted):
    tree = flame.Tree()
    for frames, base, now in stacks:
        tree.add(frames[::-1] if inverted else frames, base, now)
    return tree


def check_boxes(kind, data, stacks, inverted):
    tree = tree_of(stacks, inverted)
    nodes = flame.nodes(data, tree)
    width = data.get("width", data["now"])
    wrong, kept = [], set()
    for i, node in enumerate(nodes):
        if node is None:
            continue
        kept.add(node)
        base, now, wide = tree.amount[node]
        if node < 0 or data["now"][i] != now or width[i] != wide or (data["diff"] and data["base"][i] != base):
            wrong.append((i, data["now"][i], now, width[i], wide))
    check(not wrong, "%s: %d boxes have their stacks' amounts" % (kind, len(kept)), wrong[:3])
    check_remainders(kind, data, tree, nodes, kept)


def check_remainders(kind, data, tree, nodes, kept):
    cut = set(range(len(tree.name))) - kept
    want = {}
    for node in cut:
        if tree.parent[node] in kept:
            total = want.setdefault(tree.parent[node], [0, 0, 0, 0])
            for k in range(3):
                total[k] += tree.amount[node][k]
            total[3] += 1
    parents, seen, wrong = flame.parents(data), set(), []
    for i, node in enumerate(nodes):
        if node is not None:
            continue
        above = nodes[parents[i]]
        seen.add(above)
        _, now, _, merged = want.get(above, [0, 0, 0, 0])
        if data["now"][i] != now or data["merged"][i] != merged:
            wrong.append((i, data["now"][i], now))
    check(not wrong and seen == set(want), "%s: %d remainders hold exactly what was cut" % (kind, len(want)), wrong[:3])
    if cut:
        least, most = min(tree.amount[n][2] for n in kept), max(tree.amount[n][2] for n in cut)
        check(most <= least, "%s: what was cut is narrower than what was kept" % kind, (least, most))


def check_places(kind, boxes, data):
    """Every wide enough box is drawn where its amount says, and nothing else is."""
    starts, width = flame.starts(data), data.get("width", data["now"])
    scale = 1180 / (width[0] or 1)
    drawn = {(round(float(e.get("y"))), round(float(e.get("x")), 1)): float(e.get("width"))
             for e in boxes if local(e) == "rect"}
    top = min(y for y, _ in drawn)
    merged, missing = data.get("merged", [0] * len(width)), []
    for i, depth in enumerate(data["depth"]):
        w, x = width[i] * scale, 10 + starts[i] * scale
        if w < 1 or depth >= 400:
            continue
        y = top + depth * data["row"]
        got = next((drawn[y, round(x + d, 1)] for d in (0, -.1, .1) if (y, round(x + d, 1)) in drawn), None)
        # A remainder may be drawn together with narrow boxes before it.
        if not merged[i] and (got is None or not 0.79 * w - 0.02 <= got <= w + 0.02):
            missing.append((i, x, y, w, got))
    check(not missing, "%s: boxes are where and as wide as their amounts say" % kind, missing[:3])


def check_layout(kind, root, data):
    """The picture itself: boxes side by side inside their parents, texts inside their boxes."""
    boxes = root.find(".//*[@id='boxes']")
    if data["now"][0] or data.get("base", [0])[0]:
        check_places(kind, boxes, data)
    rows, outside, long = {}, [], []
    last = None
    for e in boxes:
        if local(e) == "rect":
            x, y, w = (float(e.get(k)) for k in ("x", "y", "width"))
            rows.setdefault(y, []).append((x, x + w))
            last = (x, w)
        else:
            text = "".join(e.itertext())
            columns = sum(flame.columns(c) for c in text) + (1.3 if len(e) else 0)
            if float(e.get("x")) + columns * 7.23 > last[0] + last[1] + 0.5:
                long.append(text)
    ys = sorted(rows)
    for above, y in zip([None] + ys, ys):
        spans = sorted(rows[y])
        if any(a[1] > b[0] + 0.03 for a, b in zip(spans, spans[1:])):
            outside.append(("overlap", y))
        for x, end in spans if above is not None else []:
            if not any(a - 0.03 <= x and end <= b + 1.04 for a, b in rows[above]):
                outside.append(("not below its parent", x, y))
    check(not outside, "%s: boxes lie side by side below their parents" % kind, outside[:3])
    check(not long, "%s: names fit into their boxes" % kind, long[:3])
    check(len(ys) <= 400, "%s: at most 400 rows" % kind, len(ys))


def check_errors(kind, data):
    if not data["error"]:
        check("low" not in data, "%s: no bounds without a rate" % kind)
        return
    middle = [n - b for n, b in zip(data["now"], data["base"])] if data["diff"] else data["now"]
    good = all(low <= m <= high for low, m, high in zip(data["low"], middle, data["high"]))
    check(good, "%s: values lie within their bounds" % kind)


def check_changes(kind, data):
    wrong = []
    for i, code in enumerate(data["change"]):
        base, now = data["base"][i], data["now"][i]
        includes_zero = data["error"] and data["low"][i] <= 0 <= data["high"][i]
        want = "s" if base == now else "n" if includes_zero else None
        if want and code != want:
            wrong.append((i, code, want))
        elif code in "123+" and now <= base or code in "abc-" and now >= base:
            wrong.append((i, code, base, now))
        elif code == "+" and base or code == "-" and now:
            wrong.append((i, code, base, now))
    check(not wrong, "%s: colours say what changed" % kind, wrong[:3])


# --- colours ---

def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    x, y = sorted((luminance(a), luminance(b)))
    return (y + 0.05) / (x + 0.05)


def mix(colour, page, opacity):
    def channel(i):
        return round(int(colour[i:i + 2], 16) * opacity + int(page[i:i + 2], 16) * (1 - opacity))
    return "#%02x%02x%02x" % tuple(channel(i) for i in (1, 3, 5))


def long_colour(colour):
    return colour if len(colour) == 7 else "#" + "".join(c * 2 for c in colour[1:])


def check_contrast(svg):
    css = re.search(r"<style><!\[CDATA\[(.*?)\]\]></style>", svg.decode(), re.S).group(1)
    light, dark = css.split("@media (prefers-color-scheme: dark)")
    for scheme, rules in (("light", light), ("dark", dark)):
        fills = {name: long_colour(fill) for name, fill in
                 re.findall(r"\.([\w-]+) \{ fill: (#[0-9a-f]+)", rules)}
        text = long_colour(re.search(r"^text[^{]*\{[^}]*fill: (#[0-9a-f]+)", rules, re.M).group(1))
        page = fills["page"]
        for other in ("dim", "bar", "found"):
            fills.pop(other, None)
        hues = [name for name in fills if re.fullmatch(r"m\d", name)]
        check(len(hues) == 9, "%s: nine hues" % scheme, sorted(fills))
        low = [(name, fill) for name, fill in fills.items() for opacity in (1, .84, .68)
               if contrast(mix(fill, page, opacity), text) < 4.5]
        check(not low, "%s: names stand out from every colour (4.5 : 1)" % scheme, low)


def main():
    fixture = flame.Fixture(sys.argv[1])
    reduced = "--reduced" in sys.argv
    kinds = ["server", "diff", "same", "exact", "folded", "empty", "300"]
    if not reduced:
        kinds += ["wide", "deep", "5000", "diff:2000"]
    for kind in kinds:
        stacks = fixture.stacks(kind)
        for form in ("flame", "inverted"):
            svg = fixture.write(kind, form)
            name = kind + " " + form
            root = check_file(name, svg)
            data = flame.data(root)
            check_boxes(name, data, stacks, form == "inverted")
            check_layout(name, root, data)
            check_errors(name, data)
            if data["diff"]:
                check_changes(name, data)
            check(svg == fixture.write(kind, form), "%s: the same again" % name)
    same = flame.data(ET.fromstring(fixture.write("same", "flame")))
    check(set(same["change"]) == {"s"}, "same: nothing changed")
    diff = flame.data(ET.fromstring(fixture.write("diff", "flame")))
    check(set(diff["change"]) >= set("n3c+-"), "diff: there is all of it", sorted(set(diff["change"])))
    for form in ("flame", "inverted"):
        check_file("hostile " + form, fixture.write("hostile", form))
    check_contrast(fixture.write("server", "flame"))
    if not reduced:
        for kind in ("100000", "diff:100000"):
            svg = fixture.write(kind, "flame")
            check_file(kind, svg)
            note(fixture.said)
    return flame.done()


sys.exit(main())
