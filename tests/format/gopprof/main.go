// gopprof is google/pprof's side of the interchange tests: it writes profiles, reads and re-encodes
// ours, and says whether two folders of profiles say the same. One process does a whole folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"

	"github.com/google/pprof/profile"
)

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gopprof:", err)
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	fatal(err)
	return n
}

func names(dir string) []string {
	entries, err := os.ReadDir(dir)
	fatal(err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	sort.Strings(list)
	return list
}

func parse(path string) (*profile.Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return profile.Parse(f)
}

// recode parses every file of a folder and writes it again with google/pprof's encoder.
func recode(from, to string) {
	list := names(from)
	for _, name := range list {
		p, err := parse(filepath.Join(from, name))
		if err != nil {
			fatal(fmt.Errorf("%s: %v", name, err))
		}
		f, err := os.Create(filepath.Join(to, name))
		fatal(err)
		fatal(p.Write(f))
		fatal(f.Close())
	}
	fmt.Println(len(list), "profiles re-encoded")
}

// same compares what two folders' profiles say; with expect, the first ones as our writer should give them.
func same(a, b string, expect bool) {
	list, different := names(a), 0
	for _, name := range list {
		p, err := parse(filepath.Join(a, name))
		fatal(err)
		q, err := parse(filepath.Join(b, name))
		if err != nil {
			fmt.Printf("%s: %v\n", name, err)
			different++
			continue
		}
		if expect {
			asWritten(p)
			if p.DropFrames == "" {
				p.DropFrames = q.DropFrames
			}
		}
		if want, got := describe(p), describe(q); want != got {
			fmt.Printf("%s: %s\n", name, firstDifference(want, got))
			different++
		}
	}
	if different > 0 || len(list) == 0 {
		fmt.Printf("%d of %d profiles differ\n", different, len(list))
		os.Exit(1)
	}
	fmt.Println(len(list), "profiles are the same")
}

// columns tells by the exit status whether any line in the folder's profiles has one.
func columns(dir string) {
	for _, name := range names(dir) {
		p, err := parse(filepath.Join(dir, name))
		fatal(err)
		for _, location := range p.Location {
			for _, line := range location.Line {
				if line.Column != 0 {
					return
				}
			}
		}
	}
	os.Exit(1)
}

// compact compares two folders after both went through google/pprof's merging, as "go tool pprof -proto" does it: equal
// samples added up, those that are all zero and what nothing refers to left out.
func compact(a, b string) {
	list, different := names(a), 0
	for _, name := range list {
		p, err := parse(filepath.Join(a, name))
		fatal(err)
		q, err := parse(filepath.Join(b, name))
		fatal(err)
		p, err = profile.Merge([]*profile.Profile{p})
		fatal(err)
		q, err = profile.Merge([]*profile.Profile{q})
		fatal(err)
		// The tool gives a profile without mappings an empty one.
		if len(p.Mapping) == 0 && len(q.Mapping) == 1 && q.Mapping[0].File == "" && q.Mapping[0].Limit == 0 {
			q.Mapping = nil
		}
		if want, got := describe(p), describe(q); want != got {
			fmt.Printf("%s: %s\n", name, firstDifference(want, got))
			different++
		}
	}
	if different > 0 || len(list) == 0 {
		fmt.Printf("%d of %d profiles differ\n", different, len(list))
		os.Exit(1)
	}
	fmt.Println(len(list), "profiles are the same")
}

func main() {
	args := os.Args[1:]
	switch {
	case len(args) == 4 && args[0] == "generate":
		generate(args[1], number(args[2]), int64(number(args[3])))
	case len(args) == 3 && args[0] == "recode":
		recode(args[1], args[2])
	case len(args) == 3 && args[0] == "same":
		same(args[1], args[2], false)
	case len(args) == 3 && args[0] == "expect":
		same(args[1], args[2], true)
	case len(args) == 3 && args[0] == "compact":
		compact(args[1], args[2])
	case len(args) == 2 && args[0] == "columns":
		columns(args[1])
	case len(args) == 2 && args[0] == "heap":
		heap(args[1])
	case len(args) == 3 && args[0] == "large":
		large(args[1], number(args[2]))
	default:
		fmt.Fprintln(os.Stderr, "usage: gopprof generate DIR N SEED | recode FROM TO | same A B | expect A B | compact A B | columns DIR | heap DIR | large FILE STACKS")
		os.Exit(2)
	}
}
