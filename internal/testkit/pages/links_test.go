package pages

import (
	"go/ast"
	doc "go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/typed"
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
	imported, set := typed.Importer(t, ".", public...), token.NewFileSet()
	for _, at := range public {
		dir := filepath.Join(root, strings.TrimPrefix(at, module))
		own, files := declared(t, set, at, dir, imported)
		links := 0
		for _, f := range files {
			for _, group := range f.Comments {
				for _, link := range linksIn(group) {
					in, err := own, error(nil)
					if link.ImportPath != "" && link.ImportPath != at {
						in, err = imported.Import(link.ImportPath)
					}
					if links++; err != nil || !has(in, link) {
						t.Errorf("%v: the link %s names nothing", set.Position(group.Pos()), link.Text)
					}
				}
			}
		}
		if links == 0 { // a walk that misses a package
			t.Errorf("%s: no link found", at)
		}
	}
}

// declared returns what a package declares on any platform, and its files. Those of
// another platform declare some names again, which is no matter here.
func declared(t *testing.T, set *token.FileSet, at, dir string, imported types.Importer,
) (own *types.Package, files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d Go files, %v, want some", dir, len(names), err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	check := types.Config{Importer: imported, IgnoreFuncBodies: true, Error: func(error) {}}
	own, _ = check.Check(at, set, files, nil)
	return own, files
}

// has reports whether a link names something in a package.
func has(in *types.Package, link *doc.DocLink) bool {
	if link.Recv == "" {
		return link.Name == "" || in.Scope().Lookup(link.Name) != nil
	}
	of := in.Scope().Lookup(link.Recv)
	if of == nil {
		return false
	}
	member, _, _ := types.LookupFieldOrMethod(of.Type(), true, in, link.Name)
	return member != nil
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
