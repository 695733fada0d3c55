// Package circles tests that files of a package do not use each other in large
// circles: whoever reads one file of a circle has to know all of them.
package circles

import (
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

const module = "github.com/upbloom/upbloom/"

// most is how many files a circle may have. ARCHITECTURE.md has the reasons.
const most = 4

func TestNoLargeCircles(t *testing.T) {
	for _, p := range listed(t) {
		uses, err := p.uses()
		if err != nil {
			t.Fatalf("%s: %v", p.ImportPath, err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		large := slices.DeleteFunc(circles(uses), func(c []string) bool { return len(c) <= most })
		for _, c := range large {
			t.Errorf("%s: a circle of %d files, want at most %d: %s", name, len(c), most, strings.Join(c, " "))
		}
	}
}

// TestCircles: a circle is found whole, and what only leads to it is no part.
func TestCircles(t *testing.T) {
	got := circles(map[string][]string{
		"main": {"a", "z"}, "a": {"b"}, "b": {"c", "low"}, "c": {"a", "b"}, "low": nil, "y": {"z"}, "z": {"y", "low"},
	})
	want := [][]string{{"a", "b", "c"}, {"y", "z"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// goPackage is a package as go list prints it.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool

	exports map[string]string // the files of export data, by import path
}

// listed returns the packages of the module.
func listed(t *testing.T) (all []goPackage) {
	t.Helper()
	cmd := exec.Command(testenv.Need(t, "go", "go"), "list", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles,DepOnly", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := goPackage{exports: exports}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && len(p.GoFiles) > 1 {
			all = append(all, p)
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d packages of several files, want those of the module", len(all))
	}
	return all
}

// uses returns which files each file uses declarations of.
func (p goPackage) uses() (map[string][]string, error) {
	fset := token.NewFileSet()
	uses := make(map[string][]string)
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files, uses[name] = append(files, f), nil
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(p.exports[path])
	})}
	pkg, err := conf.Check(p.ImportPath, fset, files, info)
	if err != nil {
		return nil, err
	}
	file := func(at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }
	for id, o := range info.Uses {
		// Fields and methods have no parent, and what is local has another.
		if o.Pkg() != pkg || o.Parent() != nil && o.Parent() != pkg.Scope() {
			continue
		}
		from, to := file(id.Pos()), file(o.Pos())
		if from != to && !slices.Contains(uses[from], to) {
			uses[from] = append(uses[from], to)
		}
	}
	return uses, nil
}

// circles returns the groups of files that all reach each other, each in order.
func circles(uses map[string][]string) (all [][]string) {
	reached := make(map[string]map[string]bool)
	for file := range uses {
		seen := make(map[string]bool)
		for next := slices.Clone(uses[file]); len(next) > 0; next = next[1:] {
			if !seen[next[0]] {
				seen[next[0]] = true
				next = append(next, uses[next[0]]...)
			}
		}
		reached[file] = seen
	}
	done := make(map[string]bool)
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if done[file] || !reached[file][file] {
			continue
		}
		var circle []string
		for _, other := range slices.Sorted(maps.Keys(reached[file])) {
			if reached[other][file] {
				circle = append(circle, other)
				done[other] = true
			}
		}
		all = append(all, circle)
	}
	return all
}
