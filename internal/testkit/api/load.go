//go:build api

package api

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Source reads types from the compiler's export data, and packages of this
// repository from their files.
type Source struct {
	root    string // the repository's
	fset    *token.FileSet
	exports map[string]string // files of export data by import paths
	gc      types.Importer
}

// NewSource compiles the packages of the module at root, and what they need,
// for a platform such as "js/wasm". If platform is "", it is the current one.
func NewSource(root, platform string, packages ...string) (*Source, error) {
	s := &Source{root: root, fset: token.NewFileSet(), exports: make(map[string]string)}
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = root, os.Environ()
	if goos, goarch, ok := strings.Cut(platform, "/"); ok {
		cmd.Env = append(cmd.Env, "GOOS="+goos, "GOARCH="+goarch)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		s.exports[path] = file
	}
	s.gc = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		file := s.exports[path]
		if file == "" {
			return nil, errors.New("not compiled: " + path)
		}
		return os.Open(file)
	})
	return s, nil
}

// Import returns a package from its export data.
func (s *Source) Import(path string) (*types.Package, error) { return s.gc.Import(path) }

// A unit is the files of a directory with one package clause. They are checked
// together, whatever platform they are for.
type unit struct {
	path  string // as an import path; that of an external test ends with _test
	files []*ast.File
}

// units parses all Go files of the repository, including nested modules.
func (s *Source) units() ([]unit, error) {
	found := make(map[string]*unit)
	err := filepath.WalkDir(s.root, func(file string, d fs.DirEntry, err error) error {
		switch name := filepath.Base(file); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "node_modules" || file != s.root && name[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		parsed, err := parser.ParseFile(s.fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(s.root, filepath.Dir(file))
		if err != nil {
			return err
		}
		path := module + filepath.ToSlash(dir)
		if strings.HasSuffix(parsed.Name.Name, "_test") {
			path += "_test"
		}
		if found[path] == nil {
			found[path] = &unit{path: path}
		}
		found[path].files = append(found[path].files, parsed)
		return nil
	})
	list := make([]unit, 0, len(found))
	for _, u := range found {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b unit) int { return strings.Compare(a.path, b.path) })
	return list, err
}

// check finds the meanings of the names in a unit. It ignores errors: a package
// of an example alone is absent, and names that depend on it stay unknown.
func (s *Source) check(u unit) *types.Info {
	info := &types.Info{
		Types:      make(map[ast.Expr]types.TypeAndValue),
		Uses:       make(map[*ast.Ident]types.Object),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}
	conf := types.Config{Importer: s, Error: func(error) {}}
	_, _ = conf.Check(u.path, s.fset, u.files, info)
	return info
}
