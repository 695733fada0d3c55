//go:build api

package api

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Row is an exported name with its users, the best first.
type Row struct {
	Package, Name string // "bloom", "Filter.Add"

	// Callers are files outside of the package, tests last. Examples are
	// functions: the name's own first, then others that use it.
	Callers, Examples []string
}

// implicit are the methods that fmt, log/slog, encoding/json and errors call.
var implicit = map[string]string{
	"Error": "error", "Unwrap": "errors", "Is": "errors", "As": "errors", "String": "fmt", "Format": "fmt",
	"MarshalText": "encoding/json", "UnmarshalText": "encoding/json", "MarshalJSON": "encoding/json",
	"LogValue": "log/slog",
}

// Rows returns a row for each exported function, type, method, variable and
// constant of the packages.
func (s *Source) Rows(paths []string) ([]*Row, error) {
	var rows []*Row
	byName := make(map[string]*Row)
	add := func(pkg, name string) *Row {
		r := &Row{Package: strings.TrimPrefix(pkg, module), Name: name}
		rows, byName[pkg+"."+name] = append(rows, r), r
		return r
	}
	for _, pkg := range paths {
		p, err := s.Import(pkg)
		if err != nil {
			return nil, err
		}
		for _, name := range p.Scope().Names() {
			o := p.Scope().Lookup(name)
			if !o.Exported() {
				continue
			}
			add(pkg, name)
			t, ok := o.(*types.TypeName)
			if !ok || t.IsAlias() {
				continue
			}
			for _, m := range methods(t) {
				r := add(pkg, name+"."+m.Name())
				if by := implicit[m.Name()]; by != "" {
					r.Callers = append(r.Callers, by)
				}
			}
		}
	}
	units, err := s.units()
	if err != nil {
		return nil, err
	}
	for _, u := range units {
		s.users(u, byName)
	}
	for _, r := range rows {
		r.sort()
	}
	return rows, nil
}

// users adds the users of names in a unit to rows.
func (s *Source) users(u unit, rows map[string]*Row) {
	info := s.check(u)
	for _, file := range u.files {
		where, _ := filepath.Rel(s.root, s.fset.Position(file.Package).Filename)
		where = filepath.ToSlash(where)
		for _, d := range file.Decls {
			example := ""
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasSuffix(where, "_test.go") && f.Recv == nil &&
				strings.HasPrefix(f.Name.Name, "Example") {
				example = f.Name.Name
				if r := rows[strings.TrimSuffix(u.path, "_test")+"."+shows(example)]; r != nil {
					r.Examples = append(r.Examples, example)
				}
			}
			for key := range keys(d, info) {
				r := rows[key]
				switch {
				case r == nil || u.path == module+r.Package:
				case example != "":
					r.Examples = append(r.Examples, example)
				default:
					r.Callers = append(r.Callers, callerIn(where))
				}
			}
		}
	}
}

// keys returns the names in a declaration, each as import path, a dot and the
// name in the package. A method belongs to the type through which it is called.
func keys(d ast.Decl, info *types.Info) map[string]bool {
	found := make(map[string]bool)
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			s, ok := info.Selections[n]
			if !ok {
				break
			}
			t := s.Recv()
			if p, ok := types.Unalias(t).(*types.Pointer); ok {
				t = p.Elem()
			}
			if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() != nil {
				key := named.Obj().Pkg().Path() + "." + named.Obj().Name()
				found[key], found[key+"."+n.Sel.Name] = true, true // even if it names a field
			}
		case *ast.Ident:
			o := info.Uses[n]
			if o == nil || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
				break
			}
			found[o.Pkg().Path()+"."+o.Name()] = true
			for _, name := range typesOf(o) { // OpenOption by OpenSeed, Unit by Byte
				found[name] = true
			}
		}
		return true
	})
	return found
}

// typesOf returns the names of an object's types: a constant's or variable's
// type, or those of a function's results.
func typesOf(o types.Object) (names []string) {
	list := []types.Type{o.Type()}
	if f, ok := o.(*types.Func); ok {
		list = nil
		for v := range f.Signature().Results().Variables() {
			list = append(list, v.Type())
		}
	}
	for _, t := range list {
		if p, ok := types.Unalias(t).(*types.Pointer); ok {
			t = p.Elem()
		}
		if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() != nil {
			names = append(names, named.Obj().Pkg().Path()+"."+named.Obj().Name())
		}
	}
	return names
}

// shows returns what an Example shows: "Filter.Add" for
// ExampleFilter_Add_again.
func shows(example string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.TrimPrefix(example, "Example"), "_") {
		if first, _ := utf8.DecodeRuneInString(part); !unicode.IsUpper(first) {
			break
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ".")
}

// tests stands for any test as a caller.
const tests = "tests"

// callerIn names the package of a file.
func callerIn(file string) string {
	if strings.HasSuffix(file, "_test.go") {
		return tests
	}
	return path.Dir(file)
}

// sort puts the best first: callers that are not tests, and the name's own
// Examples.
func (r *Row) sort() {
	caller := func(name string) int {
		switch {
		case name == tests:
			return 3
		case strings.HasPrefix(name, "internal/"):
			return 2
		case strings.HasPrefix(name, "examples/"), strings.Contains(name, "/cmd/"):
			return 1
		}
		return 0
	}
	example := func(name string) int {
		if shows(name) == r.Name {
			return 0
		}
		return 1
	}
	slices.SortFunc(r.Callers, func(a, b string) int {
		return cmp.Or(caller(a)-caller(b), strings.Compare(a, b))
	})
	slices.SortFunc(r.Examples, func(a, b string) int {
		return cmp.Or(example(a)-example(b), strings.Compare(a, b))
	})
	r.Callers, r.Examples = slices.Compact(r.Callers), slices.Compact(r.Examples)
}

// Unused reports whether no Example shows the name and only tests use it
// outside of its package. For package upstashtest a test counts as a user.
func (r *Row) Unused() bool {
	if len(r.Examples) > 0 {
		return false
	}
	return len(r.Callers) == 0 ||
		r.Package != "upstash/upstashtest" && r.Callers[0] == tests
}

// A choice is a row of the table: a caller and an Example of a name.
type choice struct{ name, caller, example string }

func (r *Row) best() choice {
	c := choice{name: r.Name}
	if len(r.Callers) > 0 {
		c.caller = r.Callers[0]
	}
	if len(r.Examples) > 0 {
		c.example = r.Examples[0]
	}
	return c
}

// holds reports whether the caller and the Example of a choice still exist.
// Better ones may have come since; the page is then still right.
func (r *Row) holds(c choice) bool {
	return (c.caller == "" || slices.Contains(r.Callers, c.caller)) &&
		(c.example == "" || slices.Contains(r.Examples, c.example))
}

const intro = `# Who uses what

For each function, type, method, variable and constant that the public packages export, the table names a
caller outside of its package, and an Example that shows it. The caller may be package fmt, log/slog, errors or
encoding/json, which call some methods. A name that has neither fails the check. A program makes this page:

    go test -tags api ./internal/testkit/api -update
`

// page writes the table.
func page(rows []*Row) string {
	var b strings.Builder
	b.WriteString(intro)
	last := ""
	for _, r := range rows {
		if r.Package != last {
			fmt.Fprintf(&b, "\n## %s\n\n| name | caller | Example |\n|---|---|---|\n", r.Package)
			last = r.Package
		}
		c := r.best()
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.name, c.caller, c.example)
	}
	return b.String()
}

// choices reads a page: the choices of each package, by their names.
func choices(page string) map[string]choice {
	found := make(map[string]choice)
	in := ""
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			in = strings.TrimSpace(name)
		}
		cells := strings.Split(line, "|")
		if len(cells) == 5 && strings.HasPrefix(cells[1], " `") {
			c := choice{strings.Trim(cells[1], " `"), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}
			found[in+"."+c.name] = c
		}
	}
	return found
}
