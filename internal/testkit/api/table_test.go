//go:build api

package api

import (
	"os"
	"path/filepath"
	"strings"
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
	_ = []any{&bloom.Pair{A: 1, B: 2}, bloom.Large}
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
	list := load(t, dir, "", whole, "./...")
	rows := Rows(list, []string{module + "bloom"})
	if err := FindUsers(dir, list, rows); err != nil {
		t.Fatal(err)
	}
	got := strings.TrimPrefix(page(rows, ""), intro)
	want := `
## bloom

| name and type | caller | Example |
|---|---|---|
| "type Inner struct, comparable" | use/use.go |  |
| "field Inner.Deep int" | use/use.go |  |
| "field Inner.Deeper int" |  |  |
| "const Large Size = 1" | use/use.go |  |
| "func Named()" |  |  |
| "type Outer struct, comparable" | use/use.go | ExampleOuter |
| "field Outer.Inner Inner" | use/use.go |  |
| "field Outer.Flat int" |  | ExampleOuter |
| "field Outer.Alone int" |  |  |
| "func (*Outer) Run()" | use/use.go |  |
| "func (*Outer) Walk()" |  |  |
| "func Own()" |  |  |
| "type Pair struct, comparable" | use/use.go |  |
| "field Pair.A int" | use/use.go |  |
| "field Pair.B int" | use/use.go |  |
| "func Shown()" |  | ExampleShown |
| "type Size int" | use/use.go |  |
| "func (Size) String() string" | fmt |  |
| "func Tested()" |  |  |
`
	want = strings.ReplaceAll(want, `"`, "`")
	if got != want {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
}

// The page keeps a user as long as it is one, although there is a better one.
func TestPageKeepsUsers(t *testing.T) {
	r := &Row{Package: "bloom", Type: "func New()", Callers: []string{"a.go", "b.go"}, Examples: []string{"ExampleNew"}}
	first := page([]*Row{r}, "")
	if row := "| `func New()` | a.go | ExampleNew |\n"; !strings.HasSuffix(first, row) {
		t.Errorf("the page is %q, want the row %q", first, row)
	}
	old := strings.NewReplacer("a.go", "b.go", "ExampleNew", "ExampleOld").Replace(first)
	if row := "| `func New()` | b.go | ExampleNew |\n"; !strings.HasSuffix(page([]*Row{r}, old), row) {
		t.Errorf("after %q the page is %q, want the row %q", old, page([]*Row{r}, old), row)
	}
}
