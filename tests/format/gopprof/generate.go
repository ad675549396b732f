package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"github.com/google/pprof/profile"
)

type generator struct {
	*rand.Rand
	p      *profile.Profile
	sparse bool
	last   uint64
}

// id gives dense ids from 1, or ones far apart.
func (g *generator) id(i int) uint64 {
	if !g.sparse {
		return uint64(i + 1)
	}
	g.last += 1 + uint64(g.Int63n(math.MaxInt64>>uint(8+g.Intn(50))))
	return g.last
}

var words = []string{"main", "operator+", "std::vector<int, std::allocator<int> >::push_back", "ünïcode", "a b", "tab\there",
	"<lambda()>", "日本語", "", "x", "\"quoted\"", "new\nline", "bad\xffutf8\xc3", "zero\x00byte", "_ZN4core3fmt5write17h0123456789abcdefE"}

func (g *generator) word() string {
	if g.Intn(3) == 0 {
		return words[g.Intn(len(words))]
	}
	return fmt.Sprintf("%s_%d", words[g.Intn(8)], g.Intn(1000))
}

func (g *generator) value() int64 {
	switch g.Intn(12) {
	case 0:
		return 0
	case 1:
		return -g.Int63()
	case 2:
		return math.MaxInt64
	case 3:
		return math.MinInt64
	}
	return g.Int63n(1 << uint(1+g.Intn(40)))
}

var typeSets = [][]*profile.ValueType{
	{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
	{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
	{{Type: "objects", Unit: "count"}, {Type: "space", Unit: "bytes"}},
	{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
	{{Type: "inuse_space", Unit: "bytes"}},
	{{Type: "a", Unit: "b"}, {Type: "", Unit: ""}, {Type: "c", Unit: ""}, {Type: "d", Unit: "e"}, {Type: "f", Unit: "g"}},
}

func (g *generator) header() {
	p := g.p
	for _, t := range typeSets[g.Intn(len(typeSets))] {
		copied := *t
		p.SampleType = append(p.SampleType, &copied)
	}
	if g.Intn(4) > 0 {
		p.PeriodType = &profile.ValueType{Type: "space", Unit: "bytes"}
		p.Period = int64(1) << uint(g.Intn(22))
	} else if g.Intn(2) == 0 {
		p.PeriodType = &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
		p.Period = -g.Int63n(1000)
	}
	if g.Intn(4) > 0 {
		p.TimeNanos = g.Int63()
		p.DurationNanos = g.Int63n(1 << 40)
	}
	if g.Intn(3) == 0 {
		p.DefaultSampleType = p.SampleType[g.Intn(len(p.SampleType))].Type
	}
	if g.Intn(3) == 0 {
		p.DropFrames, p.KeepFrames = "mall.*|a(b)", g.word()
	}
	for i := g.Intn(4); i > 1; i-- {
		p.Comments = append(p.Comments, g.word())
	}
}

func (g *generator) tables() {
	p := g.p
	start := uint64(0x400000)
	for i := 0; i < g.Intn(6); i++ {
		size := uint64(1+g.Intn(500)) << 12
		m := &profile.Mapping{ID: g.id(i), Start: start, Limit: start + size, Offset: uint64(g.Intn(10)) << 12,
			File: "/usr/lib/" + g.word(), HasFunctions: g.Intn(3) == 0, HasFilenames: g.Intn(5) == 0,
			HasLineNumbers: g.Intn(5) == 0, HasInlineFrames: g.Intn(5) == 0}
		if g.Intn(2) == 0 {
			m.BuildID = fmt.Sprintf("%016x%04x", g.Uint64(), i)
		}
		if g.Intn(8) == 0 {
			m.File += " (deleted)"
		}
		start += size + uint64(g.Intn(1000))<<12
		p.Mapping = append(p.Mapping, m)
	}
	for i := 0; i < 1+g.Intn(30); i++ {
		f := &profile.Function{ID: g.id(i), Name: g.word(), SystemName: g.word(), Filename: g.word()}
		if g.Intn(2) == 0 {
			f.SystemName = f.Name
			f.StartLine = g.Int63n(5000) - 10
		}
		p.Function = append(p.Function, f)
	}
	for i := 0; i < 1+g.Intn(60); i++ {
		p.Location = append(p.Location, g.location(i))
	}
}

func (g *generator) location(i int) *profile.Location {
	p := g.p
	l := &profile.Location{ID: g.id(i), IsFolded: g.Intn(20) == 0}
	if len(p.Mapping) > 0 && g.Intn(6) > 0 {
		l.Mapping = p.Mapping[g.Intn(len(p.Mapping))]
		l.Address = l.Mapping.Start + uint64(g.Int63n(int64(l.Mapping.Limit-l.Mapping.Start)))
	} else if g.Intn(3) > 0 {
		l.Address = g.Uint64()
	}
	for n := g.Intn(4); n > 0; n-- {
		l.Line = append(l.Line, profile.Line{Function: p.Function[g.Intn(len(p.Function))], Line: g.Int63n(3000) - 5,
			Column: g.Int63n(100)})
	}
	return l
}

func (g *generator) sample() *profile.Sample {
	p := g.p
	s := &profile.Sample{}
	for range p.SampleType {
		s.Value = append(s.Value, g.value())
	}
	depth := g.Intn(12)
	if g.Intn(30) == 0 {
		depth = 500
	}
	for i := 0; i < depth; i++ {
		s.Location = append(s.Location, p.Location[g.Intn(len(p.Location))])
	}
	if g.Intn(2) == 0 {
		s.Label = map[string][]string{"thread": {"t" + g.word()}}
		if g.Intn(3) == 0 {
			s.Label["key "+g.word()] = []string{"v" + g.word(), "w" + g.word()}
		}
	}
	if g.Intn(2) == 0 {
		s.NumLabel = map[string][]int64{"bytes": {1 + g.Int63n(1<<30)}}
		if g.Intn(3) == 0 {
			s.NumLabel["request"+g.word()] = []int64{7, -g.Int63()}
			s.NumLabel["null"] = []int64{0}
			s.NumUnit = map[string][]string{"bytes": {"bytes"}, "null": {"things"}}
		}
	}
	return s
}

func makeProfile(seed int64) (*profile.Profile, *generator) {
	g := &generator{Rand: rand.New(rand.NewSource(seed)), p: &profile.Profile{}}
	g.sparse = g.Intn(4) == 0
	g.header()
	g.tables()
	for i := g.Intn(40); i > 0; i-- {
		g.p.Sample = append(g.p.Sample, g.sample())
	}
	return g.p, g
}

// generate writes n profiles; every second one as google/pprof would, the others with their fields in another order,
// repeated numbers not packed, unknown fields strewn in, and mappings that don't exist.
func generate(dir string, n int, seed int64) {
	for i := 0; i < n; i++ {
		p, g := makeProfile(seed + int64(i))
		var b bytes.Buffer
		if i%4 == 0 {
			fatal(p.Write(&b))
		} else {
			fatal(p.WriteUncompressed(&b))
		}
		data := b.Bytes()
		if i%2 == 1 {
			data = g.scramble(data)
		}
		fatal(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.pb", i)), data, 0o666))
	}
	fmt.Println(n, "profiles generated")
}

var (
	kept     [][]byte
	keptText = map[string]string{}
)

//go:noinline
func leak(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 1000+i%3*4096))
	}
}

func small(i int) []byte { return make([]byte, 200+i%700) } // inlined

//go:noinline
func recurse(depth int) {
	kept = append(kept, small(depth), small(depth*3))
	if depth > 0 {
		recurse(depth - 1)
	}
}

//go:noinline
func remember(n int) {
	for i := 0; i < n; i++ {
		keptText[fmt.Sprintf("key %d", i)] = fmt.Sprint("value ", i)
	}
}

// heap writes this process's own heap profiles.
func heap(dir string) {
	runtime.MemProfileRate = 4096
	leak(20000)
	remember(20000)
	for i := 0; i < 200; i++ {
		recurse(i % 60)
	}
	for i := 0; i < 10000; i++ {
		kept[i] = nil
	}
	runtime.GC()
	for _, name := range []string{"heap", "allocs"} {
		f, err := os.Create(filepath.Join(dir, name+".pb.gz"))
		fatal(err)
		fatal(pprof.Lookup(name).WriteTo(f, 0))
		fatal(f.Close())
	}
}

// large writes a profile like a big server's: 20,000 functions, stacks of 20 to 60 frames.
func large(path string, stacks int) {
	const functions = 20000
	g := &generator{Rand: rand.New(rand.NewSource(1)), p: &profile.Profile{}}
	p := g.p
	p.SampleType = typeSets[0]
	p.PeriodType = &profile.ValueType{Type: "space", Unit: "bytes"}
	p.Period, p.TimeNanos = 512<<10, 1
	m := &profile.Mapping{ID: 1, Start: 0x400000, Limit: 0x4000000, File: "/usr/bin/server", BuildID: "abcdef0123456789", HasFunctions: true}
	p.Mapping = append(p.Mapping, m)
	for i := 0; i < functions; i++ {
		name := fmt.Sprintf("namespace_%d::Class_%d::method_%d(int, char const*)", i%37, i%1009, i)
		f := &profile.Function{ID: uint64(i + 1), Name: name, SystemName: name, Filename: fmt.Sprintf("/src/module_%d/file_%d.cc", i%37, i%1009)}
		p.Function = append(p.Function, f)
		for k := 0; k < 3; k++ {
			p.Location = append(p.Location, &profile.Location{ID: uint64(i*3 + k + 1), Mapping: m,
				Address: m.Start + uint64(i*512+k*100), Line: []profile.Line{{Function: f, Line: int64(k * 10)}}})
		}
	}
	for i := 0; i < stacks; i++ {
		s := &profile.Sample{NumLabel: map[string][]int64{"bytes": {int64(8 << uint(i%12))}}}
		s.Value = []int64{g.Int63n(1000), g.Int63n(1 << 20), g.Int63n(1000), g.Int63n(1 << 20)}
		at := g.Intn(len(p.Location))
		for d := 20 + g.Intn(41); d > 0; d-- {
			s.Location = append(s.Location, p.Location[at])
			at = (at*31 + g.Intn(12)) % len(p.Location)
		}
		p.Sample = append(p.Sample, s)
	}
	f, err := os.Create(path)
	fatal(err)
	fatal(p.Write(f))
	fatal(f.Close())
}
