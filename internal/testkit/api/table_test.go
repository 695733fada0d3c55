//go:build api

package api

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// A small module with this one's path.
var small = map[string]string{
	"go.mod": "module " + module[:len(module)-1] + "\n\ngo 1.25.0\n",
	"bloom/bloom.go": `package bloom

type Inner struct{ Deep, Deeper int }
type Outer struct{ Inner; Flat, Alone int }
type Pair struct{ A, B int }
type Size int

const Large Size = 1

func (*Outer) Run() {}
func (*Outer) Walk() {}
func (Size) String() string { return "" }
func Tested() {}
func Named() {}
func Shown() {}
func Own() { Own() }
`,
	"bloom/own_test.go": "package bloom\n\nimport \"testing\"\n\nfunc TestOwn(*testing.T) { Own(); new(Outer).Alone = 1 }\n",
	"bloom/example_test.go": `package bloom_test

import (
	"testing"

	"github.com/upbloom/upbloom/bloom"
)

func TestTested(*testing.T) { bloom.Tested(); new(bloom.Outer).Walk() }
func ExampleNamed()         {}
func ExampleOuter()         { bloom.Shown(); _ = bloom.Outer{Flat: 1} }
func ExampleShown()         { bloom.Shown() }
`,
	"use/use.go": `package use

import "github.com/upbloom/upbloom/bloom"

func use(o *bloom.Outer) {
	o.Run()
	o.Deep = 1
	_ = []any{&bloom.Pair{1, 2}, bloom.Large}
}
`,
}

// Used is what another package's code or an Example really uses. The name of an
// Example alone is no use.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	for name, text := range small {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, file, text)
	}
	s, err := NewSource(dir, "", "./...")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Rows([]string{module + "bloom"})
	if err != nil {
		t.Fatal(err)
	}
	got, unused := make(map[string]choice), make(map[string]bool)
	for _, r := range rows {
		if c := r.choose(choice{}); r.Unused() {
			unused[r.Name] = true
		} else {
			got[r.Name] = c
		}
	}
	const file = "use/use.go"
	want := make(map[string]choice)
	for _, c := range []choice{
		{"Inner", file, ""},
		{"Inner.Deep", file, ""},
		{"Large", file, ""},
		{"Outer", file, "ExampleOuter"},
		{"Outer.Flat", "", "ExampleOuter"},
		{"Outer.Inner", file, ""},
		{"Outer.Run", file, ""},
		{"Pair", file, ""},
		{"Pair.A", file, ""},
		{"Pair.B", file, ""},
		{"Shown", "", "ExampleShown"},
		{"Size", file, ""},
		{"Size.String", "fmt", ""},
	} {
		want[c.name] = c
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("used: %v\nwant: %v", got, want)
	}
	idle := map[string]bool{
		"Inner.Deeper": true, "Outer.Alone": true, "Outer.Walk": true,
		"Tested": true, "Named": true, "Own": true,
	}
	if !reflect.DeepEqual(unused, idle) {
		t.Errorf("unused: %v\nwant: %v", unused, idle)
	}
}

// The page keeps a choice as long as it holds, although there is a better one.
func TestPageKeepsChoices(t *testing.T) {
	r := &Row{Package: "bloom", Name: "New", Callers: []string{"a.go", "b.go"}, Examples: []string{"ExampleNew"}}
	for _, c := range []struct{ old, want choice }{
		{choice{}, choice{"New", "a.go", "ExampleNew"}},
		{choice{"New", "b.go", "ExampleOld"}, choice{"New", "b.go", "ExampleNew"}},
	} {
		old := map[string]choice{"bloom.New": c.old}
		if got := choices(page([]*Row{r}, old))["bloom.New"]; got != c.want {
			t.Errorf("after %v the page has %v, want %v", c.old, got, c.want)
		}
	}
}
