package pages

import (
	"go/ast"
	doc "go/doc/comment"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

const module = "github.com/upbloom/upbloom/"

// public are the packages for users.
var public = []string{
	module + "upstash", module + "upstash/upstashtest", module + "upstash/httptransport", module + "bloom",
}

// Every link in a comment, such as [Filter.Add], must name something. go doc and
// pkg.go.dev show a wrong link as text in brackets. Packages are known by their
// paths: the public ones, and those they import.
func TestDocLinks(t *testing.T) {
	list := append([]string{"list", "-deps", "-f", "{{.ImportPath}} {{.Dir}}"}, public...)
	out, err := exec.Command(testenv.Need(t, "go", "go"), list...).Output()
	if err != nil {
		t.Fatal(err)
	}
	all := make(packages)
	for line := range strings.Lines(string(out)) {
		at, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[at] = &source{dir: dir}
	}
	for _, at := range public {
		links := 0
		for _, f := range all[at].files(t) {
			for _, group := range f.Comments {
				for _, link := range linksIn(group) {
					if link.ImportPath == "" {
						link.ImportPath = at
					}
					if links++; !all.have(t, link) {
						t.Errorf("%s: the link %s in %q names nothing", at, link.Text, group.Text())
					}
				}
			}
		}
		if links == 0 { // a walk that misses a package
			t.Errorf("%s: no link found", at)
		}
	}
}

// packages are sources by the paths of their packages.
type packages map[string]*source

// A source is what a package declares, on any platform.
type source struct {
	dir    string
	parsed []*ast.File
	// names are the names of the package, and "Type.Member". from are the types
	// whose members a type has too, because it embeds them or is one of them.
	names map[string]bool
	from  map[string][]*doc.DocLink
}

// files parses the package once.
func (s *source) files(t *testing.T) []*ast.File {
	t.Helper()
	if s.names != nil {
		return s.parsed
	}
	s.names, s.from = make(map[string]bool), make(map[string][]*doc.DocLink)
	names, err := filepath.Glob(filepath.Join(s.dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d Go files, %v, want some", s.dir, len(names), err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.parsed = append(s.parsed, f)
		for _, d := range f.Decls {
			s.learn(f, d)
		}
	}
	return s.parsed
}

func (s *source) learn(f *ast.File, d ast.Decl) {
	if d, ok := d.(*ast.FuncDecl); ok {
		name := d.Name.Name
		if d.Recv != nil {
			name = typeIn(f, d.Recv.List[0].Type).Name + "." + name
		}
		s.names[name] = true
		return
	}
	for _, spec := range d.(*ast.GenDecl).Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				s.names[name.Name] = true
			}
		case *ast.TypeSpec:
			s.names[spec.Name.Name] = true
			s.members(f, spec)
		}
	}
}

func (s *source) members(f *ast.File, spec *ast.TypeSpec) {
	name := spec.Name.Name
	fields := &ast.FieldList{List: []*ast.Field{{Type: spec.Type}}} // of type A = B
	switch is := spec.Type.(type) {
	case *ast.StructType:
		fields = is.Fields
	case *ast.InterfaceType:
		fields = is.Methods
	}
	for _, field := range fields.List {
		for _, member := range field.Names {
			s.names[name+"."+member.Name] = true
		}
		if of := typeIn(f, field.Type); of != nil && len(field.Names) == 0 {
			s.from[name] = append(s.from[name], of)
		}
	}
}

// typeIn returns the named type of an expression, without pointers and type
// arguments, or nil if it has no name.
func typeIn(f *ast.File, e ast.Expr) *doc.DocLink {
	switch e := e.(type) {
	case *ast.Ident:
		return &doc.DocLink{Name: e.Name}
	case *ast.StarExpr:
		return typeIn(f, e.X)
	case *ast.IndexExpr:
		return typeIn(f, e.X)
	case *ast.IndexListExpr:
		return typeIn(f, e.X)
	case *ast.SelectorExpr:
		for _, i := range f.Imports {
			from, _ := strconv.Unquote(i.Path.Value)
			called := path.Base(from)
			if i.Name != nil {
				called = i.Name.Name
			}
			if id, ok := e.X.(*ast.Ident); ok && id.Name == called {
				return &doc.DocLink{ImportPath: from, Name: e.Sel.Name}
			}
		}
	}
	return nil
}

// have reports whether a link names something.
func (all packages) have(t *testing.T, link *doc.DocLink) bool {
	t.Helper()
	s := all[link.ImportPath]
	if s == nil {
		return false
	}
	s.files(t)
	switch {
	case link.Name == "":
		return true // the package itself
	case link.Recv == "":
		return s.names[link.Name]
	case s.names[link.Recv+"."+link.Name]:
		return true
	}
	return slices.ContainsFunc(s.from[link.Recv], func(of *doc.DocLink) bool {
		in := of.ImportPath
		if in == "" {
			in = link.ImportPath
		}
		return of.Name != link.Recv && all.have(t, &doc.DocLink{ImportPath: in, Recv: of.Name, Name: link.Name})
	})
}

// linksIn returns the links of a comment to names, whether they exist or not.
func linksIn(group *ast.CommentGroup) (links []*doc.DocLink) {
	words := doc.Parser{
		LookupSym: func(string, string) bool { return true },
		LookupPackage: func(name string) (string, bool) {
			i := slices.IndexFunc(public, func(path string) bool { return strings.HasSuffix("/"+path, "/"+name) })
			if i >= 0 {
				return public[i], true
			}
			return doc.DefaultLookupPackage(name)
		},
	}
	var walk func(blocks []doc.Block)
	walk = func(blocks []doc.Block) {
		for _, block := range blocks {
			switch b := block.(type) {
			case *doc.Paragraph:
				for _, part := range b.Text {
					if link, ok := part.(*doc.DocLink); ok {
						links = append(links, link)
					}
				}
			case *doc.List:
				for _, item := range b.Items {
					walk(item.Content)
				}
			}
		}
	}
	walk(words.Parse(group.Text()).Content)
	return links
}
