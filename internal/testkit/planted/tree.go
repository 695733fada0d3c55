package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

const module = "github.com/upbloom/upbloom"

// A tree is the checkout, with the files that one platform compiles.
type tree struct {
	root     string
	platform build.Context
	packages map[string][]*source
}

// A source is a file.
type source struct {
	path  string
	text  string
	set   *token.FileSet
	file  *ast.File
	edits []edit
	tail  strings.Builder // what follows the file
}

// newTree finds the checkout around the working directory.
func newTree(platform build.Context) (*tree, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module "+module+"\n") {
			return &tree{dir, platform, map[string][]*source{}}, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil, errors.New("run it in the checkout")
		}
		dir = up
	}
}

// sources parses the files of a package, without its tests.
func (t *tree) sources(pkg string) ([]*source, error) {
	if s, ok := t.packages[pkg]; ok {
		return s, nil
	}
	dir := filepath.Join(t.root, filepath.FromSlash(pkg))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*source
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if ok, err := t.platform.MatchFile(dir, e.Name()); !ok || err != nil {
			continue
		}
		s := &source{path: filepath.Join(dir, e.Name()), set: token.NewFileSet()}
		text, err := os.ReadFile(s.path)
		if err != nil {
			return nil, err
		}
		s.text = string(text)
		if s.file, err = parser.ParseFile(s.set, s.path, text, parser.SkipObjectResolution|parser.ParseComments); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	t.packages[pkg] = all
	return all, nil
}

// A place is a function in its file, or the value of a variable.
type place struct {
	*source
	fn   *ast.FuncDecl // nil for a value
	node ast.Node
}

func (s *source) offset(p token.Pos) int { return s.set.Position(p).Offset }

// of returns the text of a node.
func (s *source) of(n ast.Node) string { return s.text[s.offset(n.Pos()):s.offset(n.End())] }

// find finds the declaration of a bug.
func (t *tree) find(pkg, name string) (*place, error) {
	sources, err := t.sources(pkg)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		for _, d := range s.file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && funcName(fn) == name {
				return &place{source: s, fn: fn, node: fn}, nil
			}
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				for i, id := range v.Names {
					if id.Name == name && len(v.Values) == len(v.Names) {
						return &place{source: s, node: v.Values[i]}, nil
					}
				}
			}
		}
	}
	return nil, fmt.Errorf("%s has no function or variable %s", pkg, name)
}

// funcName is "name", or "type.method".
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	return of.(*ast.Ident).Name + "." + fn.Name.Name
}
