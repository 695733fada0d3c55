//go:build api

package api

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Row is an exported name with its users, the best first.
type Row struct {
	Package, Name string // "bloom", "Filter.Add"

	// Callers are files outside of the package, no tests among them, or
	// packages that call a method through an interface. Examples are functions:
	// the name's own first, then others that use it.
	Callers, Examples []string
}

// implicit are the methods called by fmt, log/slog, encoding/json and errors.
var implicit = map[string]string{
	"Error": "error", "Unwrap": "errors", "Is": "errors", "As": "errors", "String": "fmt", "Format": "fmt",
	"MarshalText": "encoding/json", "UnmarshalText": "encoding/json", "MarshalJSON": "encoding/json",
	"LogValue": "log/slog",
}

// Rows returns a row for each exported function, type, method, field, variable
// and constant of the packages.
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
			for _, f := range fields(t) {
				add(pkg, name+"."+f.Name())
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

// users adds the users of names in a unit to rows. Tests are none, except for
// their Examples.
func (s *Source) users(u unit, rows map[string]*Row) {
	info := s.check(u)
	for _, file := range u.files {
		where, _ := filepath.Rel(s.root, s.fset.Position(file.Package).Filename)
		where = filepath.ToSlash(where)
		test := strings.HasSuffix(where, "_test.go")
		for _, d := range file.Decls {
			example := ""
			if f, ok := d.(*ast.FuncDecl); ok && test && f.Recv == nil {
				if strings.HasPrefix(f.Name.Name, "Example") {
					example = f.Name.Name
				}
			}
			if test && example == "" {
				continue
			}
			for key := range used(d, info) {
				r := rows[key]
				switch {
				case r == nil || u.path == module+r.Package:
				case test:
					r.Examples = append(r.Examples, example)
				default:
					r.Callers = append(r.Callers, where)
				}
			}
		}
	}
}

// shows returns the name an Example shows: "Filter.Add" for
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

// sort puts the best first: callers other than tests' tools, and the name's own
// Examples.
func (r *Row) sort() {
	caller := func(name string) int {
		switch {
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

// Unused reports whether only tests use the name outside of its package, and no
// Example does.
func (r *Row) Unused() bool { return len(r.Callers)+len(r.Examples) == 0 }

// A choice is a row of the table: a caller and an Example of a name.
type choice struct{ name, caller, example string }

// choose returns the old choice if it still holds, and else the best. So a page
// that still holds is not written again, and a caller that comes or goes
// changes no other row.
func (r *Row) choose(old choice) choice {
	one := func(old string, all []string) string {
		if slices.Contains(all, old) {
			return old
		}
		return append(all, "")[0]
	}
	return choice{r.Name, one(old.caller, r.Callers), one(old.example, r.Examples)}
}

const intro = `# Who uses what

For each function, type, method, field, variable and constant that the public packages export, the table names a
file outside of its package that uses it, and an Example that does. Tests are not counted. Package fmt, log/slog,
errors or encoding/json call some methods. A name that has neither fails the check. A program makes this page:

    go test -tags api ./internal/testkit/api -update
`

// page writes the table. It keeps old choices as long as they hold.
func page(rows []*Row, old map[string]choice) string {
	var b strings.Builder
	b.WriteString(intro)
	last := ""
	for _, r := range rows {
		if r.Package != last {
			fmt.Fprintf(&b, "\n## %s\n\n| name | caller | Example |\n|---|---|---|\n", r.Package)
			last = r.Package
		}
		c := r.choose(old[r.Package+"."+r.Name])
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
