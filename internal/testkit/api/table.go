//go:build api

package api

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"
)

// Load returns the packages of the module at root, with their tests, as they are
// on a platform such as "js/wasm". If platform is "", it is the current one.
func Load(root, platform string, mode packages.LoadMode, patterns ...string) ([]*packages.Package, error) {
	conf := &packages.Config{Mode: mode | packages.NeedName, Dir: root, Env: os.Environ(), Tests: true}
	if goos, goarch, ok := strings.Cut(platform, "/"); ok {
		conf.Env = append(conf.Env, "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	}
	list, err := packages.Load(conf, patterns...)
	for _, p := range list {
		for _, one := range p.Errors {
			err = errors.Join(err, one)
		}
	}
	return list, err
}

// A Row is an exported name with its users, the best first.
type Row struct {
	Package, Name string // "bloom", "Filter.Add"

	// Type is the declaration in one line.
	Type string

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
// and constant of the packages with these paths, among those loaded. A method of
// an embedded type counts as the outer type's.
func Rows(list []*packages.Package, paths []string) (rows []*Row) {
	for _, path := range paths {
		for _, p := range list {
			if p.ID == path {
				rows = append(rows, rowsOf(p.Types)...)
			}
		}
	}
	return rows
}

func rowsOf(p *types.Package) (rows []*Row) {
	text := func(t types.Type) string {
		written := types.TypeString(t, func(other *types.Package) string {
			if other == p {
				return ""
			}
			return other.Name()
		})
		return strings.TrimPrefix(written, "func")
	}
	add := func(name, format string, args ...any) *Row {
		r := &Row{Package: strings.TrimPrefix(p.Path(), module), Name: name, Type: fmt.Sprintf(format, args...)}
		rows = append(rows, r)
		return r
	}
	for _, name := range p.Scope().Names() {
		if !token.IsExported(name) {
			continue
		}
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Const:
			add(name, "const %s %s = %s", name, text(o.Type()), o.Val().ExactString())
		case *types.Var:
			add(name, "var %s %s", name, text(o.Type()))
		case *types.Func:
			add(name, "func %s%s", name, text(o.Type()))
		case *types.TypeName:
			add(name, "type %s %s", name, kind(o, text))
			if o.IsAlias() {
				continue
			}
			for _, f := range fields(o.Type()) {
				add(name+"."+f.Name(), "field %s.%s %s", name, f.Name(), text(f.Type()))
			}
			for _, m := range typeutil.IntuitiveMethodSet(o.Type(), nil) {
				if method := m.Obj().Name(); m.Obj().Exported() {
					r := add(name+"."+method, "func (%s) %s%s", text(m.Recv()), method, text(m.Type()))
					if by := implicit[method]; by != "" {
						r.Callers = append(r.Callers, by)
					}
				}
			}
		}
	}
	return rows
}

// kind returns what a type is: of a struct and an interface only what its fields
// and methods do not say.
func kind(o *types.TypeName, text func(types.Type) string) string {
	if o.IsAlias() {
		return "= " + text(types.Unalias(o.Type()))
	}
	switch under := o.Type().Underlying().(type) {
	case *types.Struct:
		if types.Comparable(under) {
			return "struct, comparable"
		}
		return "struct, not comparable"
	case *types.Interface:
		for m := range under.Methods() {
			if !m.Exported() {
				return "interface, with methods that are not exported"
			}
		}
		return "interface"
	default:
		return text(under)
	}
}

// fields returns the exported fields of a type if it is a struct.
func fields(t types.Type) (list []*types.Var) {
	if under, ok := t.Underlying().(*types.Struct); ok {
		for f := range under.Fields() {
			if f.Exported() {
				list = append(list, f)
			}
		}
	}
	return list
}

// FindUsers adds to rows who uses them. Tests do not count, except for their
// Examples.
func FindUsers(root string, list []*packages.Package, rows []*Row) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	byName := make(map[string]*Row)
	for _, r := range rows {
		byName[module+r.Package+"."+r.Name] = r
	}
	for _, p := range list {
		for _, file := range p.Syntax {
			where, err := filepath.Rel(root, p.Fset.Position(file.Package).Filename)
			if err != nil {
				return err
			}
			where = filepath.ToSlash(where)
			test := strings.HasSuffix(where, "_test.go")
			for _, d := range file.Decls {
				example := ""
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example") {
					example = f.Name.Name
				}
				for name := range used(d, p.TypesInfo) {
					switch r := byName[name]; {
					case r == nil || p.PkgPath == module+r.Package:
					case !test:
						r.Callers = append(r.Callers, where)
					case example != "":
						r.Examples = append(r.Examples, example)
					}
				}
			}
		}
	}
	for _, r := range rows {
		r.sort()
	}
	return nil
}

// used returns the names in use in a declaration, each as import path, a dot and
// the name in the package. A type is in use if a value has it, a method or a
// field with the type through which it is selected, and a field on the way to it
// with the struct that declares it.
func used(d ast.Decl, info *types.Info) map[string]bool {
	found := make(map[string]bool)
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if s := info.Selections[n]; s != nil {
				selected(s, found)
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					if field, ok := kv.Key.(*ast.Ident); ok {
						found[nameOf(info.TypeOf(n))+"."+field.Name] = true
					}
				}
			}
		case *ast.Ident:
			if o := info.Uses[n]; o != nil && o.Pkg() != nil && o.Parent() == o.Pkg().Scope() {
				found[o.Pkg().Path()+"."+o.Name()] = true
			}
		}
		if e, ok := n.(ast.Expr); ok {
			found[nameOf(info.TypeOf(e))] = true
		}
		return true
	})
	return found
}

// selected adds the method or field of a selector, and the fields on the way.
func selected(s *types.Selection, found map[string]bool) {
	t, path := s.Recv(), s.Index()
	if s.Kind() != types.FieldVal {
		found[nameOf(t)+"."+s.Obj().Name()] = true
		path = path[:len(path)-1]
	}
	for _, i := range path {
		under, ok := pointed(t).Underlying().(*types.Struct)
		if !ok {
			return
		}
		found[nameOf(t)], found[nameOf(t)+"."+under.Field(i).Name()] = true, true
		t = under.Field(i).Type()
	}
}

func pointed(t types.Type) types.Type {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// nameOf returns the name of a type, or of the type it points to, or "".
func nameOf(t types.Type) string {
	if named, ok := types.Unalias(pointed(t)).(*types.Named); ok && named.Obj().Pkg() != nil {
		return named.Obj().Pkg().Path() + "." + named.Obj().Name()
	}
	return ""
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

// choose returns the old user if it still is one, and else the best. So a caller
// that comes or goes changes no other row of the page.
func choose(old string, users []string) string {
	if slices.Contains(users, old) {
		return old
	}
	return append(users, "")[0]
}

// Unused reports whether only tests use the name outside of its package, and no
// Example does.
func (r *Row) Unused() bool { return len(r.Callers)+len(r.Examples) == 0 }

const intro = `# Who uses what

For each function, type, method, field, variable and constant that the public packages export, the table has its type, a
file outside of its package that uses it, and an Example that does. Tests are not counted. Package fmt, log/slog,
errors or encoding/json call some methods. A name that has neither fails the check. A program makes this page:

    go test -tags api ./internal/testkit/api -update
`

// page writes the table. It keeps the users that an old page names as long as
// they are some.
func page(rows []*Row, old string) string {
	cells := make(map[string][]string)
	for line := range strings.Lines(old) {
		if row := strings.Split(line, "|"); len(row) == 5 {
			cells[strings.Trim(row[1], " `")] = row
		}
	}
	var b strings.Builder
	b.WriteString(intro)
	last := ""
	for _, r := range rows {
		if r.Package != last {
			fmt.Fprintf(&b, "\n## %s\n\n| name and type | caller | Example |\n|---|---|---|\n", r.Package)
			last = r.Package
		}
		caller, example := choose("", r.Callers), choose("", r.Examples)
		if was := cells[r.Type]; was != nil {
			caller = choose(strings.TrimSpace(was[2]), r.Callers)
			example = choose(strings.TrimSpace(was[3]), r.Examples)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Type, caller, example)
	}
	return b.String()
}
