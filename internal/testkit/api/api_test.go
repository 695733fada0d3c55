//go:build api

package api

import (
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	update    = flag.Bool("update", false, "write api.txt and .github/API.md")
	platforms = flag.String("platforms", "", "also list the API on these, such as js/wasm,wasip1/wasm")
)

const (
	root    = "../../.."
	listed  = "api.txt"
	table   = root + "/.github/API.md"
	command = "go test -tags api ./internal/testkit/api -update"
)

// compiled is the module on this platform, for all tests.
var compiled = sync.OnceValues(func() (*Source, error) { return NewSource(root, "", "./...") })

func source(t *testing.T) *Source {
	t.Helper()
	s, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func listing(t *testing.T, s *Source, packages []string) (lines []string) {
	t.Helper()
	for _, path := range packages {
		p, err := s.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, Listing(p)...)
	}
	return lines
}

// If a commit changes the exports of a public package, it changes api.txt too.
// The change is then deliberate, and visible in the diff.
func TestListing(t *testing.T) {
	lines := listing(t, source(t), Public)
	if *update {
		write(t, listed, strings.Join(lines, "\n")+"\n")
	}
	kept := strings.Split(strings.TrimSpace(read(t, listed)), "\n")
	compare(t, kept, lines, "is in api.txt, and no longer in the code: for users it is a break."+
		" If it is meant, run "+command)
	compare(t, lines, kept, "is new, or has changed: run "+command)

	everywhere := slices.DeleteFunc(slices.Clone(Public), func(path string) bool {
		return path == module+"upstash/upstashtest" // for tests, which run on the machine that builds them
	})
	for platform := range strings.SplitSeq(*platforms, ",") {
		if platform == "" {
			continue
		}
		other, err := NewSource(root, platform, everywhere...)
		if err != nil {
			t.Fatal(err)
		}
		there := listing(t, other, everywhere)
		here := slices.DeleteFunc(listing(t, source(t), everywhere), func(line string) bool {
			// LogValue would bring encoding/json into every module.
			return strings.HasSuffix(platform, "/wasm") &&
				line == "pkg upstash, method (Event) LogValue() slog.Value"
		})
		compare(t, here, there, "is not there on "+platform)
		compare(t, there, here, "is there on "+platform+" alone")
	}
}

// compare reports each line of a that b lacks.
func compare(t *testing.T, a, b []string, text string) {
	t.Helper()
	has := make(map[string]bool)
	for _, line := range b {
		has[line] = true
	}
	for _, line := range a {
		if !has[line] {
			t.Errorf("%q %s", line, text)
		}
	}
}

// Each exported name is used outside of its package, or in an Example.
func TestTable(t *testing.T) {
	rows, err := source(t).Rows(Public)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Unused() {
			t.Errorf("%s.%s: only tests use it, and no Example does: write one, or remove it", r.Package, r.Name)
		}
	}
	kept := read(t, table)
	made := page(rows, choices(kept))
	if *update {
		write(t, table, made)
		return
	}
	has, wants := strings.Split(kept, "\n"), strings.Split(made, "\n")
	compare(t, has, wants, "is in .github/API.md, and no longer so: run "+command)
	compare(t, wants, has, "is not in .github/API.md: run "+command)
	if kept != made && !t.Failed() {
		t.Error(".github/API.md has another order: run " + command)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
