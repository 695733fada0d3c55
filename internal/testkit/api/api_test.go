//go:build api

package api

import (
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

var (
	update    = flag.Bool("update", false, "write .github/API.md")
	platforms = flag.String("platforms", "", "also list the API on these, such as js/wasm,wasip1/wasm")
)

const (
	root    = "../../.."
	table   = root + "/.github/API.md"
	command = "go test -tags api ./internal/testkit/api -update"

	declared = packages.NeedTypes | packages.NeedImports
	whole    = declared | packages.NeedTypesInfo | packages.NeedSyntax
)

func load(t *testing.T, dir, platform string, mode packages.LoadMode, patterns ...string) []*packages.Package {
	t.Helper()
	list, err := Load(dir, platform, mode, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// compiled is the module on this platform, for all tests.
var compiled = sync.OnceValues(func() ([]*packages.Package, error) { return Load(root, "", whole, "./...") })

func packagesHere(t *testing.T) []*packages.Package {
	t.Helper()
	list, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Each exported name is used outside of its package, or in an Example. If a
// commit changes the exports of a public package, it changes API.md too. The
// change is then deliberate, and visible in the diff.
func TestTable(t *testing.T) {
	list := append(packagesHere(t), load(t, root+"/examples/otel", "", whole, ".")...)
	rows := Rows(list, Public)
	if err := FindUsers(root, list, rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Unused() {
			t.Errorf("%s.%s: only tests use it, and no Example does: write one, or remove it", r.Package, r.Name)
		}
	}
	kept := read(t, table)
	made := page(rows, kept)
	if *update {
		write(t, table, made)
		return
	}
	has, wants := strings.Split(kept, "\n"), strings.Split(made, "\n")
	compare(t, has, wants, "is in .github/API.md, and no longer so. If it is meant, run "+command)
	compare(t, wants, has, "is not in .github/API.md: run "+command)
	if kept != made && !t.Failed() {
		t.Error(".github/API.md has another order: run " + command)
	}
}

// Each platform has the same API.
func TestPlatforms(t *testing.T) {
	everywhere := slices.DeleteFunc(slices.Clone(Public), func(path string) bool {
		return path == module+"upstash/upstashtest" // for tests, which run on the machine that builds them
	})
	listed := func(platform string) (lines []string) {
		for _, r := range Rows(load(t, root, platform, declared, everywhere...), everywhere) {
			lines = append(lines, r.Package+": "+r.Type)
		}
		return lines
	}
	for platform := range strings.FieldsFuncSeq(*platforms, func(r rune) bool { return r == ',' }) {
		there := listed(platform)
		here := slices.DeleteFunc(listed(""), func(line string) bool {
			// LogValue would bring encoding/json into every module.
			return strings.HasSuffix(platform, "/wasm") && line == "upstash: func (Event) LogValue() slog.Value"
		})
		compare(t, here, there, "is not there on "+platform)
		compare(t, there, here, "is there on "+platform+" alone")
	}
}

// The types of the module, its tests and all they import are right for systems
// that continuous integration does not have. To compile them there would take
// twenty times as long.
func TestSystems(t *testing.T) {
	for _, system := range []string{"windows/amd64", "darwin/arm64"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			list := load(t, root, system, declared|packages.NeedSyntax|packages.NeedDeps, "./...")
			if !slices.ContainsFunc(list, func(p *packages.Package) bool {
				return p.ID == module+"bloom ["+module+"bloom.test]"
			}) {
				t.Error("package bloom and its tests were not listed")
			}
		})
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
