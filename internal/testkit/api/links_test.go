//go:build api

package api

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every link in a comment, such as [Row.Name], must name something. go doc and
// pkg.go.dev show a wrong link as text in brackets. Packages are known by their
// paths: the public ones, and those they import.
func TestDocLinks(t *testing.T) {
	known := make(map[string]*types.Package)
	for _, p := range load(t, root, "", declared, Public...) {
		known[p.ID] = p.Types
		for _, imported := range p.Types.Imports() {
			if known[imported.Path()] == nil {
				known[imported.Path()] = imported
			}
		}
	}
	fset := token.NewFileSet()
	for _, path := range Public {
		files, err := filepath.Glob(filepath.Join(root, strings.TrimPrefix(path, module), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d Go files, %v, want some", path, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range f.Comments {
				for _, link := range linksIn(group) {
					if link.ImportPath == "" {
						link.ImportPath = path
					}
					if !resolves(link, known[link.ImportPath]) {
						t.Errorf("%s: %s names nothing", fset.Position(group.Pos()), link.Text)
					}
				}
			}
		}
	}
}

// linksIn returns the links of a comment to names, whether they exist or not.
func linksIn(group *ast.CommentGroup) (links []*comment.DocLink) {
	words := comment.Parser{
		LookupSym: func(string, string) bool { return true },
		LookupPackage: func(name string) (string, bool) {
			i := slices.IndexFunc(Public, func(path string) bool { return strings.HasSuffix("/"+path, "/"+name) })
			if i >= 0 {
				return Public[i], true
			}
			return comment.DefaultLookupPackage(name)
		},
	}
	var walk func(blocks []comment.Block)
	walk = func(blocks []comment.Block) {
		for _, block := range blocks {
			switch b := block.(type) {
			case *comment.Paragraph:
				for _, part := range b.Text {
					if link, ok := part.(*comment.DocLink); ok {
						links = append(links, link)
					}
				}
			case *comment.List:
				for _, item := range b.Items {
					walk(item.Content)
				}
			}
		}
	}
	walk(words.Parse(group.Text()).Content)
	return links
}

// resolves reports whether a link names something of package p.
func resolves(link *comment.DocLink, p *types.Package) bool {
	switch {
	case p == nil:
		return false
	case link.Name == "":
		return true // the package itself
	case link.Recv == "":
		return p.Scope().Lookup(link.Name) != nil
	}
	o := p.Scope().Lookup(link.Recv)
	if o == nil {
		return false
	}
	member, _, _ := types.LookupFieldOrMethod(o.Type(), true, p, link.Name)
	return member != nil
}
