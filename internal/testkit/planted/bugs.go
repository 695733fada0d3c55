package main

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A bug is a change of the code that breaks a claim, and the test that must find
// it.
type bug struct {
	name  string
	file  string // of the list
	pkg   string // the folder of the package
	decl  string // the function, "type.method", or the variable
	claim claim
	by    test
	hunks []hunk
}

// A claim says where it stands: in the "table" of ARCHITECTURE.md, as a "rule" of
// mirror.go, or in a "doc".
type claim struct{ kind, text string }

// A hunk is a text that stands once in the declaration, and its replacement.
type hunk struct{ old, new string }

// A test is what is run.
type test struct {
	pkg  string // the folder of the package
	name string // of the function, and of a subtest behind a slash
	args string // further ones, for the test binary
}

//go:embed bugs/*.txt explained.txt
var lists embed.FS

// readBugs reads the lists.
func readBugs() ([]bug, error) {
	entries, err := lists.ReadDir("bugs")
	if err != nil {
		return nil, err
	}
	var all []bug
	for _, e := range entries {
		text, err := lists.ReadFile(path.Join("bugs", e.Name()))
		if err != nil {
			return nil, err
		}
		bugs, err := parse(e.Name(), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, bugs...)
	}
	return all, nil
}

var head = regexp.MustCompile(`^-- ([a-z0-9-]+) --$`)

// parse reads a list. Lines before the first bug are a comment.
func parse(file, text string) (bugs []bug, err error) {
	var b *bug
	added := false // the line before was one of the new text
	for n, line := range strings.Split(text, "\n") {
		fail := func(why string) ([]bug, error) { return nil, fmt.Errorf("%s:%d: %s", file, n+1, why) }
		if m := head.FindStringSubmatch(line); m != nil {
			bugs, added = append(bugs, bug{name: m[1], file: file}), false
			b = &bugs[len(bugs)-1]
			continue
		}
		if b == nil || line == "" {
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "in:":
			b.pkg, b.decl, _ = strings.Cut(value, " ")
		case "claim:":
			kind, text, _ := strings.Cut(value, ": ")
			b.claim = claim{kind, text}
		case "by:":
			if b.by, err = parseTest(value); err != nil {
				return fail(err.Error())
			}
		case "-":
			if added || len(b.hunks) == 0 {
				b.hunks = append(b.hunks, hunk{})
			}
			h := &b.hunks[len(b.hunks)-1]
			h.old, added = h.old+value+"\n", false
		case "+":
			if len(b.hunks) == 0 {
				return fail("a new text without an old one")
			}
			h := &b.hunks[len(b.hunks)-1]
			h.new, added = h.new+value+"\n", true
		default:
			return fail("what is this? " + line)
		}
	}
	for _, b := range bugs {
		if b.pkg == "" || b.decl == "" || b.claim.text == "" || b.by.name == "" || len(b.hunks) == 0 {
			return nil, fmt.Errorf("%s: %s lacks a line", file, b.name)
		}
		for _, h := range b.hunks {
			if strings.TrimSpace(h.old) == "" {
				return nil, fmt.Errorf("%s: %s has no old text", file, b.name)
			}
		}
	}
	return bugs, nil
}

const simulation = "internal/testkit/proof/simulation"

// parseTest reads "./bloom TestName", or "simulation filter 300": the type of
// filters, and how many seeds.
func parseTest(text string) (test, error) {
	f := strings.Fields(text)
	if len(f) == 3 && f[0] == "simulation" {
		if _, err := strconv.Atoi(f[2]); err != nil {
			return test{}, err
		}
		return test{simulation, "TestSeeds", "-simulation.types=" + f[1] + " -simulation.seeds=" + f[2]}, nil
	}
	if len(f) != 2 || !strings.HasPrefix(f[0], "./") || !strings.HasPrefix(f[1], "Test") {
		return test{}, fmt.Errorf("no test: %s", text)
	}
	return test{pkg: strings.TrimPrefix(f[0], "./"), name: f[1]}, nil
}

func (t test) String() string { return strings.TrimSpace("./" + t.pkg + " " + t.name + " " + t.args) }

// apply returns the text of the declaration with the bug in it.
func (b *bug) apply(text string) (string, error) {
	type cut struct {
		at, end int
		with    string
	}
	var cuts []cut
	for _, h := range b.hunks {
		found := pattern(h.old).FindAllStringIndex(text, -1)
		if len(found) != 1 {
			return "", fmt.Errorf("%s: the old text stands %d times in %s: %s", b.name, len(found), b.decl, h.old)
		}
		cuts = append(cuts, cut{found[0][0], found[0][1], strings.TrimSpace(h.new)})
	}
	slices.SortFunc(cuts, func(a, b cut) int { return cmp.Compare(b.at, a.at) })
	for i, c := range cuts {
		if i > 0 && c.end > cuts[i-1].at {
			return "", fmt.Errorf("%s: two old texts overlap", b.name)
		}
		text = text[:c.at] + c.with + text[c.end:]
	}
	return text, nil
}

// pattern finds a text, however its lines are indented.
func pattern(text string) *regexp.Regexp {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = regexp.QuoteMeta(strings.TrimSpace(line))
	}
	return regexp.MustCompile(strings.Join(lines, `\s*\n\s*`))
}
