package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// q quotes a text in which every byte that is not part of a UTF-8 character is replaced.
func q(s string) string {
	return strconv.Quote(string([]rune(s)))
}

func qs(list []string) string {
	text := ""
	for _, s := range list {
		text += q(s) + " "
	}
	return text
}

func isHeap(p *profile.Profile) bool {
	for _, t := range p.SampleType {
		if t.Unit == "bytes" && (t.Type == "inuse_space" || t.Type == "alloc_space" || t.Type == "space") {
			return true
		}
	}
	return false
}

func offset(l *profile.Location) uint64 {
	if l.Mapping == nil {
		return l.Address
	}
	return l.Address - l.Mapping.Start + l.Mapping.Offset
}

func fallback(l *profile.Location) string {
	if l.Mapping == nil || l.Mapping.File == "" {
		return fmt.Sprintf("0x%x", offset(l))
	}
	base := l.Mapping.File
	if i := strings.LastIndexByte(base, '/'); i+1 < len(base) {
		base = base[i+1:]
	}
	return fmt.Sprintf("%s!0x%x", base, offset(l))
}

// asWritten makes the changes that our writer makes for the sake of viewers: a name for every
// location, flags that tell so, a default type, UTF-8.
func asWritten(p *profile.Profile) {
	inuse := ""
	for _, t := range p.SampleType {
		if t.Unit == "bytes" && (t.Type == "inuse_space" || (t.Type == "space" && inuse == "")) {
			inuse = t.Type
		}
	}
	if p.DefaultSampleType == "" {
		p.DefaultSampleType = inuse
	}
	if p.DropFrames == "" && !isHeap(p) {
		p.DropFrames = "(none)"
	}
	used := map[*profile.Location]bool{}
	for _, s := range p.Sample {
		for _, l := range s.Location {
			used[l] = true
		}
	}
	for _, m := range p.Mapping {
		m.File = strings.TrimSuffix(m.File, " (deleted)")
	}
	for l := range used {
		nameLocation(l)
	}
	if p.DropFrames == "(none)" {
		p.DropFrames = ""
	}
}

func nameLocation(l *profile.Location) {
	if len(l.Line) == 0 {
		l.Line = []profile.Line{{Function: &profile.Function{Name: fallback(l)}}}
	}
	for i, line := range l.Line {
		if line.Function.Name == "" {
			named := *line.Function
			named.Name = named.SystemName
			if named.Name == "" {
				named.Name = fallback(l)
			}
			l.Line[i].Function = &named
		}
		if m := l.Mapping; m != nil {
			m.HasFunctions = true
			m.HasFilenames = m.HasFilenames || l.Line[i].Function.Filename != ""
			m.HasLineNumbers = m.HasLineNumbers || line.Line != 0
			m.HasInlineFrames = m.HasInlineFrames || i > 0
		}
	}
}

func describeLocation(b *strings.Builder, l *profile.Location) {
	mapping := uint64(0)
	if l.Mapping != nil {
		mapping = l.Mapping.Start
	}
	fmt.Fprintf(b, "  frame %x %x folded=%v", mapping, l.Address, l.IsFolded)
	for _, n := range l.Line {
		f := n.Function
		fmt.Fprintf(b, " [%s %s %s %d line %d %d]", q(f.Name), q(f.SystemName), q(f.Filename), f.StartLine, n.Line, n.Column)
	}
	b.WriteString("\n")
}

func describeLabels(b *strings.Builder, s *profile.Sample) {
	var keys []string
	for k := range s.Label {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Fprintf(b, "  label %s %s\n", q(k), qs(s.Label[k]))
	}
	keys = nil
	for k := range s.NumLabel {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		units := s.NumUnit[k]
		for len(units) < len(s.NumLabel[k]) {
			units = append(units, "")
		}
		fmt.Fprintf(b, "  number %s %v %s\n", q(k), s.NumLabel[k], qs(units))
	}
}

// describe says everything a profile says, without ids.
func describe(p *profile.Profile) string {
	b := &strings.Builder{}
	for _, t := range p.SampleType {
		fmt.Fprintf(b, "type %s %s\n", q(t.Type), q(t.Unit))
	}
	if p.PeriodType != nil {
		fmt.Fprintf(b, "period type %s %s\n", q(p.PeriodType.Type), q(p.PeriodType.Unit))
	}
	fmt.Fprintf(b, "period %d time %d duration %d default %s\n", p.Period, p.TimeNanos, p.DurationNanos, q(p.DefaultSampleType))
	fmt.Fprintf(b, "drop %s keep %s comments %s\n", q(p.DropFrames), q(p.KeepFrames), qs(p.Comments))
	for _, m := range p.Mapping {
		fmt.Fprintf(b, "mapping %x %x %x %s %s %v %v %v %v\n", m.Start, m.Limit, m.Offset, q(m.File), q(m.BuildID),
			m.HasFunctions, m.HasFilenames, m.HasLineNumbers, m.HasInlineFrames)
	}
	for _, s := range p.Sample {
		fmt.Fprintf(b, "sample %d\n", s.Value)
		describeLabels(b, s)
		for _, l := range s.Location {
			describeLocation(b, l)
		}
	}
	return b.String()
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			if i >= len(b) {
				return fmt.Sprintf("line %d: want %s, got nothing", i+1, a[i])
			}
			return fmt.Sprintf("line %d:\n  want %s\n  got  %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines more than wanted", len(b)-len(a))
}
