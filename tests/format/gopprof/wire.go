package main

import "encoding/binary"

// field is one field as it lies on the wire, tag included.
type field struct {
	number, wire uint64
	body         []byte // of wire type 2: without the length
	value        uint64 // of wire type 0
	raw          []byte
}

func uvarint(b []byte) (uint64, []byte) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		panic("bad varint in a file of our own")
	}
	return v, b[n:]
}

func fields(b []byte) []field {
	var list []field
	for len(b) > 0 {
		var f field
		start := b
		f.number, b = uvarint(b)
		f.number, f.wire = f.number>>3, f.number&7
		if f.wire == 0 {
			f.value, b = uvarint(b)
		} else {
			var n uint64
			n, b = uvarint(b)
			f.body, b = b[:n], b[n:]
		}
		f.raw = start[:len(start)-len(b)]
		list = append(list, f)
	}
	return list
}

func putBytes(to []byte, number uint64, body []byte) []byte {
	to = binary.AppendUvarint(to, number<<3|2)
	to = binary.AppendUvarint(to, uint64(len(body)))
	return append(to, body...)
}

func putNumber(to []byte, number, value uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(to, number<<3), value)
}

// unknown is a field that no reader knows, of a random wire type.
func (g *generator) unknown(to []byte) []byte {
	number := uint64(16 + g.Intn(100000))
	switch g.Intn(4) {
	case 0:
		return putNumber(to, number, g.Uint64())
	case 1:
		return append(binary.AppendUvarint(to, number<<3|1), 1, 2, 3, 4, 5, 6, 7, 8)
	case 2:
		return append(binary.AppendUvarint(to, number<<3|5), 1, 2, 3, 4)
	}
	return putBytes(to, number, []byte("unknown"))
}

// shuffle mixes the fields, leaving those of one number in their order.
func (g *generator) shuffle(list []field) []field {
	numbers := make([]uint64, len(list))
	queues := map[uint64][]field{}
	for i, f := range list {
		numbers[i] = f.number
		queues[f.number] = append(queues[f.number], f)
	}
	g.Shuffle(len(numbers), func(i, k int) { numbers[i], numbers[k] = numbers[k], numbers[i] })
	var mixed []field
	for _, n := range numbers {
		mixed = append(mixed, queues[n][0])
		queues[n] = queues[n][1:]
	}
	return mixed
}

// sampleBody turns packed numbers into single ones, and single ones into packed chunks.
func (g *generator) sampleBody(body []byte) []byte {
	var out []byte
	unpack := g.Intn(2) == 0
	for _, f := range g.shuffle(fields(body)) {
		switch {
		case f.number > 2:
			out = append(out, f.raw...)
		case f.wire == 0:
			out = putBytes(out, f.number, binary.AppendUvarint(nil, f.value))
		case unpack:
			for rest := f.body; len(rest) > 0; {
				var v uint64
				v, rest = uvarint(rest)
				out = putNumber(out, f.number, v)
			}
		default:
			out = append(out, f.raw...)
		}
		if g.Intn(10) == 0 {
			out = g.unknown(out)
		}
	}
	return out
}

// locationBody lets a location that has no mapping name one that doesn't exist.
func (g *generator) locationBody(body []byte) []byte {
	var out []byte
	has := false
	for _, f := range g.shuffle(fields(body)) {
		has = has || f.number == 2
		out = append(out, f.raw...)
	}
	if !has && g.Intn(2) == 0 {
		out = putNumber(out, 2, 1<<62)
	}
	return out
}

// scramble gives the same profile in other bytes.
func (g *generator) scramble(data []byte) []byte {
	list := fields(data)
	if g.Intn(4) > 0 {
		list = g.shuffle(list)
	}
	var out []byte
	for _, f := range list {
		switch f.number {
		case 2:
			out = putBytes(out, 2, g.sampleBody(f.body))
		case 4:
			out = putBytes(out, 4, g.locationBody(f.body))
		default:
			out = append(out, f.raw...)
		}
		if g.Intn(20) == 0 {
			out = g.unknown(out)
		}
	}
	return out
}
