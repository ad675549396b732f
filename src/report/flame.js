/*
 * Draws the boxes from the data: any part of them (zoom), at the window's width, upside down.
 * Only what can be seen becomes an element. The page's state is in the address's
 * fragment: z=box or box.child (from that child on), s=search, f=1 (flipped).
 * Names get into the page as text nodes and nothing else.
 */
(function () {
'use strict';

var SVG = 'http://www.w3.org/2000/svg', HTML = 'http://www.w3.org/1999/xhtml';
var MARGIN = 10, NARROWEST = 0.3, MOST_ROWS = 400, MOST_ABOVE = 40;
var CHANGES = { s: 'same', n: 'noise', 1: 'g1', 2: 'g2', 3: 'g3', a: 'l1', b: 'l2', c: 'l3', '+': 'new', '-': 'gone' };
var SIGNS = { s: '= ', n: '~ ', 1: '+ ', 2: '+ ', 3: '+ ', a: '\u2212 ', b: '\u2212 ', c: '\u2212 ', '+': '+ ', '-': '\u2212 ' };
var KEYS = ['click, Enter: zoom    Backspace: out one level    Esc, 0: reset',
	'/, Ctrl-F: search (regular expression; capitals only matter if there are some)',
	'n, N: next, previous match    arrows: walk    f: flip    ?: this help'];

var script = document.currentScript;
var svg = script && script.ownerSVGElement || document.documentElement;
var layer = svg.querySelector('#boxes'), page = svg.querySelector('.page');
var data = JSON.parse(svg.querySelector('#data').textContent);
var width = data.width || data.now, n = width.length;
var parent = new Uint32Array(n), firstChild = new Uint32Array(n), next = new Uint32Array(n);
var start = new Float64Array(n), inside = new Float64Array(n);   /* inside: the children's widths */

var zoom = { box: 0, child: 0 }, query = '', wanted = null, flipped = false;
var selected = -1, hits = null, rowOf = null, characterWidth = 7.3, pageWidth = 1200;
var ui = {};

function element(name, attributes, text) {
	var e = document.createElementNS(SVG, name);
	for (var key in attributes)
		e.setAttribute(key, attributes[key]);
	if (text !== undefined)
		e.textContent = text;
	return e;
}

function html(name, attributes, text) {
	var e = document.createElementNS(HTML, name);
	for (var key in attributes)
		e.setAttribute(key, attributes[key]);
	if (text !== undefined)
		e.textContent = text;
	return e;
}

/* Boxes come in the order of a walk: the parent is the last box of the row above. */
function buildTree() {
	var last = [], lastChild = new Uint32Array(n);
	for (var i = 0; i < n; i++) {
		var depth = data.depth[i];
		last[depth] = i;
		if (i === 0)
			continue;
		var p = parent[i] = last[depth - 1];
		if (lastChild[p])
			next[lastChild[p]] = i;
		else
			firstChild[p] = i;
		lastChild[p] = i;
		start[i] = start[p] + inside[p];
		inside[p] += width[i];
	}
}

/* --- words --- */

function digits(value) {
	return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

function amount(value) {
	var sign = value < 0 ? '\u2212' : '', v = Math.abs(value), i = 0, bytes = data.unit === 'bytes';
	var units = bytes ? ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB', 'ZiB', 'YiB'] : ['', 'k', 'M', 'G', 'T', 'P', 'E'];
	var step = bytes ? 1024 : 1000;
	for (; v >= step - 0.5 && i < units.length - 1; i++)
		v /= step;
	var text = sign + (i ? digits(v) : v.toFixed(0)) + (bytes ? ' ' : '') + units[i];
	return bytes || data.unit === 'count' || !data.unit ? text : text + ' ' + data.unit;
}

function change(value) {
	return (value > 0 ? '+' : '') + amount(value);
}

function percent(part, whole) {
	var p = 100 * part / whole;
	return !isFinite(p) ? '\u2013' : p > 0 && p < 0.1 ? '<0.1 %' : p.toFixed(1).replace(/\.0$/, '') + ' %';
}

function changeOf(i) {
	return data.now[i] - data.base[i];
}

function merged(i) {
	return data.merged ? data.merged[i] : 0;
}

function nameOf(i) {
	if (data.frame[i] >= 0)
		return data.frames[data.frame[i]][0];
	return merged(i) ? '(other: ' + merged(i) + ' smaller)' : 'all';
}

function valueText(i) {
	return data.diff ? change(changeOf(i)) : amount(data.now[i]);
}

function errorText(i) {
	if (!data.error)
		return '';
	var middle = data.diff ? changeOf(i) : data.now[i], up = data.high[i] - middle, down = middle - data.low[i];
	if (Math.abs(up) < 1 && Math.abs(down) < 1)
		return '';
	if (Math.abs(up - down) <= 0.2 * Math.max(up, down))
		return ' \u00b1' + amount(Math.max(up, down)) + ' (95 %)';
	return ', 95 %: ' + amount(data.low[i]) + ' \u2026 ' + amount(data.high[i]);
}

function ownOf(i, values) {
	var own = values[i];
	for (var c = firstChild[i]; c; c = next[c])
		own -= values[c];
	return own;
}

function changeLines(i) {
	var base = data.base[i], now = data.now[i], code = data.change[i];
	var lines = [amount(base) + ' \u2192 ' + amount(now),
		'change ' + change(now - base) + errorText(i) +
		(base && now !== base ? ', ' + (now > base ? '+' : '') + percent(now - base, base).replace('-', '\u2212') + ' of its base' : '')];
	if (code === 'n')
		lines.push('~ within sampling noise: not enough samples to tell');
	else if (code === '+' || code === '-')
		lines.push(code === '+' ? '+ new: not in the base' : '\u2212 gone: only in the base');
	return lines;
}

function describe(i) {
	var f = data.frame[i] >= 0 ? data.frames[data.frame[i]] : null, lines = [nameOf(i)];
	if (f && f[2])
		lines.push(f[2]);
	if (f && data.modules[f[5]] !== undefined)
		lines.push(data.modules[f[5]] + (f[6] ? ', inlined' : ''));
	if (data.diff)
		return lines.concat(changeLines(i));
	var own = ownOf(i, data.now);
	lines.push(amount(data.now[i]) + errorText(i));
	lines.push(percent(data.now[i], data.total) + ' of the total' +
		(zoom.box && i !== zoom.box ? ', ' + percent(data.now[i], data.now[zoom.box]) + ' of what is shown' : ''));
	if (own > 0 && firstChild[i])
		lines.push((i ? 'itself ' : 'without a frame ') + amount(own));
	if (merged(i))
		lines.push(merged(i) + ' callees, each too small for this file');
	return lines;
}

/* --- drawing --- */

function cut(text, columns) {
	if (columns < 3)
		return '';
	var used = 0, keep = 0;
	for (var i = 0; i < text.length;) {
		var c = text.codePointAt(i), step = c > 0xffff ? 2 : 1, wide = c >= 0x1100 && (c < 0x2000 || c > 0x2fff) ? 2 : 1;
		if (used + wide > columns)
			return text.slice(0, keep) + '\u2026';
		used += wide;
		i += step;
		if (used < columns)
			keep = i;
	}
	return text;
}

function addLabel(i, x, y, w, group) {
	var room = Math.floor((w - 8) / characterWidth);
	var sign = data.diff ? SIGNS[data.change[i]] : '', name = nameOf(i), f = data.frames[data.frame[i]];
	if (room < 3 + sign.length)
		return;
	var text = cut(name, room - sign.length), t;
	if (text !== name)
		text = cut(f && f[1] || name, room - sign.length);
	t = element('text', { x: x + 4, y: y + 13 }, sign + text);
	if (hits && hits[i])
		t.setAttribute('class', 'hit');
	if (text === name && sign.length + name.length + 12 <= room)
		t.appendChild(element('tspan', { dx: 9 }, valueText(i)));
	group.appendChild(t);
}

function classOf(i) {
	if (data.diff)
		return CHANGES[data.change[i]];
	if (data.frame[i] < 0)
		return merged(i) ? 'rest' : 'root';
	var f = data.frames[data.frame[i]];
	return 'm' + f[3] + (f[4] ? ' s' + f[4] : '');
}

/* child: where a run of narrow boxes begins, else 0. */
function addRect(i, child, x, y, w, name, group) {
	/* A gap of a pixel to the right, less for narrow boxes. */
	var r = element('rect', { 'class': 'box ' + name, x: x.toFixed(2), y: y, width: (w - Math.min(1, w * 0.2)).toFixed(2), height: data.row - 1 });
	r.box = i;
	r.child = child;
	if (w < 4)
		r.classList.add('thin');
	if (!child && hits && hits[i])
		r.classList.add('hit');
	if (!child && i === selected) {
		r.classList.add('selected');
		r.id = 'selected';
		r.setAttribute('role', 'treeitem');
		r.setAttribute('aria-level', data.depth[i] + 1);
		r.setAttribute('aria-label', describe(i).join(', '));
	}
	group.appendChild(r);
	return r;
}

function addBox(i, x, row, w, extra, group) {
	addRect(i, 0, x, row * data.row, w, classOf(i) + extra, group);
	addLabel(i, x, row * data.row, w, group);
}

function addAncestors(group, full) {
	var above = [];
	for (var i = zoom.box; i; i = parent[i])
		above.push(parent[i]);
	above = above.slice(0, MOST_ABOVE).reverse();
	for (var row = 0; row < above.length; row++)
		addBox(above[row], MARGIN, row, full, ' above', group);
	return above.length;
}

/* Children of one box; those too narrow, and the remainder behind them, become one. */
function addChildren(p, from, row, view, group, pile) {
	for (var c = from; c; c = next[c]) {
		var x = MARGIN + (start[c] - view.start) * view.scale, w = width[c] * view.scale;
		if (w < NARROWEST) {
			var run = (start[p] + inside[p] - start[c]) * view.scale;
			if (run >= NARROWEST)
				addRect(p, c, x, row * data.row, run, 'rest', group);
			if (hits && run >= NARROWEST && hitBelow(c))
				group.lastChild.classList.add('hit');
			return;
		}
		addBox(c, x, row, w, '', group);
		if (firstChild[c])
			pile.push(c, row + 1);
	}
}

/* Is a match among these siblings from c on, or below them? They are neighbours in the walk. */
function hitBelow(c) {
	var depth = data.depth[c];
	for (; c < n && data.depth[c] >= depth; c++)
		if (hits[c])
			return true;
	return false;
}

function draw() {
	var group = element('g', {}), full = Math.max(pageWidth - 2 * MARGIN, 50), pile = [], rows;
	var first = zoom.child || firstChild[zoom.box];
	var view = { start: zoom.child ? start[zoom.child] : start[zoom.box] };
	view.scale = full / (zoom.child ? start[zoom.box] + inside[zoom.box] - view.start : width[zoom.box] || 1);
	var row = addAncestors(group, full);
	addBox(zoom.box, MARGIN, row, full, zoom.child ? ' above' : '', group);
	rows = row + 1;
	var limit = row + MOST_ROWS;
	addChildren(zoom.box, first, row + 1, view, group, pile);
	if (first)
		rows = row + 2;
	while (pile.length) {
		row = pile.pop();
		var p = pile.pop();
		if (row > limit)
			continue;
		var before = group.childNodes.length;
		addChildren(p, firstChild[p], row, view, group, pile);
		if (group.childNodes.length > before && row + 1 > rows)
			rows = row + 1;
	}
	if (flipped)
		flip(group, rows);
	group.setAttribute('transform', 'translate(0 ' + ui.top + ')');
	layer.replaceChildren(group);
	layer.setAttribute('class', hits ? 'boxes searching' : 'boxes');
	layer.setAttribute('aria-activedescendant', svg.querySelector('#selected') ? 'selected' : '');
	setSize(ui.top + rows * data.row + 10);
}

function flip(group, rows) {
	for (var e = group.firstChild; e; e = e.nextSibling) {
		var y = +e.getAttribute('y'), text = e.localName === 'text';
		e.setAttribute('y', (rows - 1) * data.row - (text ? y - 13 : y) + (text ? 13 : 0));
	}
}

function setSize(height) {
	svg.setAttribute('width', pageWidth);
	svg.setAttribute('height', height);
	svg.setAttribute('viewBox', '0 0 ' + pageWidth + ' ' + height);
}

/* The legend flows into the width there is; the boxes begin below it. */
function layOut() {
	var root = svg.parentNode === document;
	pageWidth = Math.max(root ? document.documentElement.clientWidth || window.innerWidth : svg.clientWidth, 300);
	var x = MARGIN, y = 74, keys = svg.querySelectorAll('#legend > .key');
	for (var i = 0; i < keys.length; i++) {
		var w = keys[i].getBBox().width + 16;
		if (x > MARGIN && x + w > pageWidth - MARGIN) {
			x = MARGIN;
			y += data.row;
		}
		keys[i].setAttribute('transform', 'translate(' + x + ' ' + y + ')');
		x += w;
	}
	ui.top = keys.length ? y + data.row + 6 : 80;
	var narrow = pageWidth < 900, height = 58;
	ui.bar.setAttribute('x', narrow ? 0 : pageWidth - 480);
	ui.bar.setAttribute('y', narrow ? ui.top - 4 : 6);
	ui.bar.setAttribute('width', narrow ? pageWidth - MARGIN : 470);
	ui.bar.setAttribute('height', height);
	if (narrow)
		ui.top += height;
	draw();
	hideTip();
}

/* --- the box of details --- */

function wrap(text, columns, lines, strong) {
	for (var at = 0; at < text.length && lines.length < 40; at += columns)
		lines.push([text.slice(at, at + columns), strong]);
}

function showTip(texts, x, y) {
	var lines = [], columns = Math.max(20, Math.min(110, Math.floor((pageWidth - 60) / characterWidth)));
	for (var i = 0; i < texts.length; i++)
		wrap(texts[i], columns, lines, i === 0);
	var group = element('g', { 'class': 'tip' }), back = element('rect', { rx: 4 }), longest = 0;
	group.appendChild(back);
	for (i = 0; i < lines.length; i++) {
		var t = element('text', { x: 9, y: 18 + i * 16 }, lines[i][0]);
		if (lines[i][1])
			t.setAttribute('class', 'strong');
		group.appendChild(t);
	}
	hideTip();
	svg.appendChild(ui.tip = group);
	for (i = 1; i < group.childNodes.length; i++)
		longest = Math.max(longest, group.childNodes[i].getComputedTextLength());
	var w = longest + 18, h = lines.length * 16 + 12, bottom = svg.getBoundingClientRect().bottom;
	var low = Math.min(bottom, window.innerHeight) - svg.getBoundingClientRect().top;
	back.setAttribute('width', w);
	back.setAttribute('height', h);
	var left = x + 14 + w > pageWidth ? Math.max(2, pageWidth - w - 2) : x + 14;
	var top = y + 20 + h > low ? Math.max(2, y - h - 12) : y + 20;
	group.setAttribute('transform', 'translate(' + left + ' ' + top + ')');
}

function hideTip() {
	if (ui.tip)
		ui.tip.remove();
	ui.tip = null;
}

function tipFor(rect, x, y) {
	if (!rect.child) {
		showTip(describe(rect.box), x, y);
		return;
	}
	var count = 0, sum = 0;
	for (var c = rect.child; c; c = next[c]) {
		count += merged(c) || 1;
		sum += data.diff ? changeOf(c) : data.now[c];
	}
	showTip(['(other)', count + ' frames too narrow to draw here: click to zoom into them',
		data.diff ? 'change ' + change(sum) : amount(sum)], x, y);
}

/* --- search --- */

function compile(text) {
	if (!text)
		return null;
	try {
		return new RegExp(text, /[A-Z]/.test(text) ? '' : 'i');
	} catch (e) {
		return undefined;
	}
}

/* Marks matches and sums the outermost of them below the zoomed box. */
function search() {
	wanted = compile(query);
	hits = wanted ? new Uint8Array(n) : null;
	ui.input.classList.toggle('wrong', wanted === undefined);
	if (!hits) {
		ui.found.textContent = wanted === undefined ? 'not a regular expression' : '';
		return;
	}
	var match = data.frames.map(function (f) { return wanted.test(f[0]); });
	var count = 0, now = 0, base = 0, covered = -1, from = zoom.child || zoom.box, stop = data.depth[zoom.box];
	for (var i = 0; i < n; i++)
		hits[i] = data.frame[i] >= 0 && match[data.frame[i]] ? 1 : 0;
	for (i = from; i < n && (i === from || data.depth[i] > stop); i++) {
		if (covered >= 0 && data.depth[i] <= covered)
			covered = -1;
		count += hits[i];
		if (!hits[i] || covered >= 0)
			continue;
		covered = data.depth[i];
		now += data.now[i];
		base += data.diff ? data.base[i] : 0;
	}
	ui.found.textContent = 'matched: ' + (data.diff ? amount(base) + ' \u2192 ' + amount(now) + ' (' + change(now - base) + ')'
		: amount(now) + ', ' + percent(now, data.total)) + ' in ' + count + (count === 1 ? ' box' : ' boxes');
}

function nextMatch(step) {
	if (!hits)
		return;
	for (var k = 1; k <= n; k++) {
		var i = (Math.max(selected, 0) + step * k + n * 2) % n;
		if (hits[i]) {
			select(i);
			return;
		}
	}
}

/* --- state --- */

function saveState(replace) {
	var parts = [];
	if (zoom.box || zoom.child)
		parts.push('z=' + zoom.box + (zoom.child ? '.' + zoom.child : ''));
	if (query)
		parts.push('s=' + encodeURIComponent(query));
	if (flipped)
		parts.push('f=1');
	var hash = '#' + parts.join('&');
	if (hash === (window.location.hash || '#'))
		return;
	if (replace)
		window.location.replace(hash);
	else
		window.location.hash = hash;
}

function loadState() {
	var state = {}, z;
	window.location.hash.slice(1).split('&').forEach(function (part) {
		var at = part.indexOf('=');
		try {
			state[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1));
		} catch (e) {
			/* A fragment somebody cut off. */
		}
	});
	z = /^(\d+)(?:\.(\d+))?$/.exec(state.z || '') || [0, 0, 0];
	zoom.box = +z[1] < n ? +z[1] : 0;
	zoom.child = +z[2] < n && +z[2] && parent[+z[2]] === zoom.box ? +z[2] : 0;
	query = state.s || '';
	flipped = state.f === '1';
	if (ui.input.value !== query)
		ui.input.value = query;
	refresh();
}

function refresh() {
	search();
	ui.reset.disabled = !zoom.box && !zoom.child && !query;
	draw();
}

function zoomTo(box, child) {
	zoom.box = box;
	zoom.child = child || 0;
	hideTip();
	refresh();
	saveState(false);
	if (svg.parentNode === document && window.scrollY > ui.top)
		window.scrollTo(0, 0);
}

function reset() {
	query = ui.input.value = '';
	selected = -1;
	zoomTo(0, 0);
}

function setQuery(text) {
	query = text;
	refresh();
	saveState(true);
}

function setFlipped() {
	flipped = !flipped;
	hideTip();
	draw();
	saveState(true);
}

/* --- keyboard and mouse --- */

function rectOf(i) {
	var rects = layer.querySelectorAll('rect.box');
	for (var k = 0; k < rects.length; k++)
		if (rects[k].box === i && !rects[k].child)
			return rects[k];
	return null;
}

/* Selects a box, zooming out or to its parent when it is not on the page. */
function select(i) {
	selected = i;
	draw();
	var rect = rectOf(i);
	if (!rect) {
		zoomTo(parent[i], 0);
		rect = rectOf(i);
	}
	if (!rect) {
		zoomTo(i, 0);
		rect = rectOf(i);
	}
	if (rect.scrollIntoView)
		rect.scrollIntoView({ block: 'nearest' });
	showTip(describe(i), +rect.getAttribute('x'), +rect.getAttribute('y') + ui.top);
}

function previousSibling(i) {
	var before = 0;
	for (var c = firstChild[parent[i]]; c && c !== i; c = next[c])
		before = c;
	return before;
}

function walk(key) {
	var down = flipped ? 'ArrowUp' : 'ArrowDown', i = selected < 0 ? zoom.box : selected, to;
	if (selected < 0)
		to = i;
	else if (key === 'ArrowLeft')
		to = i && previousSibling(i);
	else if (key === 'ArrowRight')
		to = next[i];
	else
		to = key === down ? firstChild[i] : parent[i];
	if (to || to === 0 && (selected < 0 || key !== down && key !== 'ArrowLeft' && key !== 'ArrowRight'))
		select(to);
}

function openSearch() {
	ui.input.focus();
	ui.input.select();
}

function onKey(e) {
	var typing = e.target === ui.input, find = (e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'f';
	/* A second Ctrl-F, from within the field, is the browser's own. */
	if (find && !typing || e.key === '/' && !typing) {
		openSearch();
	} else if (e.key === 'Escape') {
		ui.input.blur();
		reset();
	} else if (typing) {
		if (e.key === 'Enter')
			nextMatch(e.shiftKey ? -1 : 1);
		return;
	} else if (e.ctrlKey || e.metaKey || e.altKey || e.target.localName === 'button') {
		return;
	} else if (/^Arrow/.test(e.key)) {
		walk(e.key);
	} else if (e.key === 'Enter' && selected >= 0) {
		zoomTo(selected, 0);
	} else if (e.key === 'Backspace') {
		zoomTo(zoom.child ? zoom.box : parent[zoom.box], 0);
	} else if (e.key === '0') {
		reset();
	} else if (e.key === 'n' || e.key === 'N') {
		nextMatch(e.key === 'n' ? 1 : -1);
	} else if (e.key === 'f') {
		setFlipped();
	} else if (e.key === '?') {
		showTip(['Keys'].concat(KEYS), 40, ui.top);
	} else {
		return;
	}
	e.preventDefault();
}

function point(e) {
	var at = svg.getBoundingClientRect();
	return [e.clientX - at.left, e.clientY - at.top];
}

function onMove(e) {
	var rect = e.target.box === undefined ? null : e.target, p = point(e);
	if (ui.hover && ui.hover !== rect)
		ui.hover.classList.remove('hover');
	ui.hover = rect;
	if (!rect) {
		hideTip();
		return;
	}
	rect.classList.add('hover');
	tipFor(rect, p[0], p[1]);
}

function onClick(e) {
	if (e.target.box === undefined)
		return;
	selected = e.target.child ? -1 : e.target.box;
	zoomTo(e.target.box, e.target.child);
}

function buildBar() {
	ui.bar = element('foreignObject', {});
	var body = html('div', {}), bar = html('div', { 'class': 'bar' });
	ui.input = html('input', { type: 'search', placeholder: 'search: regular expression', 'aria-label': 'Search names by regular expression', spellcheck: 'false' });
	ui.reset = html('button', { type: 'button', title: 'whole picture (Esc)' }, 'Reset');
	ui.flip = html('button', { type: 'button', title: 'turn over (f)' }, 'Flip');
	ui.help = html('button', { type: 'button', title: 'keys', 'aria-label': 'Keys' }, '?');
	ui.found = html('div', { 'class': 'found', role: 'status', 'aria-live': 'polite' });
	[ui.input, ui.reset, ui.flip, ui.help].forEach(function (e) { bar.appendChild(e); });
	body.appendChild(bar);
	body.appendChild(ui.found);
	ui.bar.appendChild(body);
	svg.appendChild(ui.bar);
	ui.input.addEventListener('input', function () { setQuery(ui.input.value); });
	ui.reset.addEventListener('click', reset);
	ui.flip.addEventListener('click', setFlipped);
	ui.help.addEventListener('click', function () { showTip(['Keys'].concat(KEYS), 40, ui.top); });
}

function measureCharacter() {
	var t = element('text', { x: 0, y: 0 }, new Array(101).join('0'));
	layer.appendChild(t);
	characterWidth = t.getComputedTextLength() / 100 || 7.3;
	t.remove();
}

buildTree();
buildBar();
measureCharacter();
svg.classList.add('live');
layer.setAttribute('role', 'tree');
layer.setAttribute('tabindex', '0');
layer.setAttribute('aria-label', 'Flame graph; arrows walk, Enter zooms');
layOut();
loadState();
document.addEventListener('keydown', onKey);
layer.addEventListener('mousemove', onMove);
layer.addEventListener('mouseleave', onMove);
layer.addEventListener('click', onClick);
window.addEventListener('resize', layOut);
window.addEventListener('hashchange', loadState);
})();
