//go:build api

package api

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every link in a comment, such as [Source.Import], must name something. go doc
// and pkg.go.dev show a wrong link as text in brackets.
func TestDocLinks(t *testing.T) {
	s := source(t)
	for _, path := range Public {
		p, err := s.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(root, strings.TrimPrefix(path, module), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d Go files, %v, want some", path, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(s.fset, file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range f.Comments {
				for _, link := range linksIn(group) {
					if !s.resolves(link, p) {
						t.Errorf("%s: [%s] names nothing", s.fset.Position(group.Pos()), text(link.Text))
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
			for _, path := range Public {
				if path == name || strings.HasSuffix(path, "/"+name) {
					return path, true
				}
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

// resolves reports whether a link in package p names something. A name in
// another package counts only if one of the public packages imports that
// package.
func (s *Source) resolves(link *comment.DocLink, p *types.Package) bool {
	if link.ImportPath != "" {
		if !slices.Contains(Public, link.ImportPath) && s.exports[link.ImportPath] == "" {
			return false
		}
		var err error
		if p, err = s.Import(link.ImportPath); err != nil {
			return false
		}
	}
	if link.Name == "" {
		return true // the package itself
	}
	if link.Recv == "" {
		return p.Scope().Lookup(link.Name) != nil
	}
	o := p.Scope().Lookup(link.Recv)
	if o == nil {
		return false
	}
	member, _, _ := types.LookupFieldOrMethod(o.Type(), true, p, link.Name)
	return member != nil
}

func text(parts []comment.Text) (s string) {
	for _, part := range parts {
		if plain, ok := part.(comment.Plain); ok {
			s += string(plain)
		}
	}
	return s
}
