//go:build api

package api

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-json"
)

// TestSystems checks the types of the module, its tests and all they import for
// systems that continuous integration does not have. To compile them there
// would take twenty times as long.
func TestSystems(t *testing.T) {
	for _, system := range []string{"windows/amd64", "darwin/arm64"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			goos, goarch, _ := strings.Cut(system, "/")
			cmd := exec.Command("go", "list", "-deps", "-test",
				"-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly,ForTest", "./...")
			cmd.Dir, cmd.Stderr = root, os.Stderr
			cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := cmd.Wait(); err != nil {
					t.Errorf("go list: %v", err)
				}
			}()
			checked := packages{"unsafe": types.Unsafe}
			for list := json.NewDecoder(out); ; {
				var p aPackage
				if err := list.Decode(&p); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Error(err)
					break
				}
				if err := checked.add(&p, goarch); err != nil {
					t.Errorf("%s: %v", p.ImportPath, err)
				}
			}
			if checked[module+"bloom ["+module+"bloom.test]"] == nil {
				t.Error("package bloom and its tests were not listed")
			}
		})
	}
}

// packages are those whose types are known, by what go list calls them.
type packages map[string]*types.Package

// aPackage is what go list says of a package, after all its imports.
type aPackage struct {
	ImportPath, Dir, ForTest string
	GoFiles                  []string
	ImportMap                map[string]string
	DepOnly                  bool
}

// add checks a package. Of other modules' it needs the declarations alone.
func (all packages) add(p *aPackage, goarch string) error {
	if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // the latter is made by go test
		return nil
	}
	fset := token.NewFileSet()
	files := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		var err error
		files[i], err = parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
	}
	var errs []error
	conf := types.Config{
		IgnoreFuncBodies: p.DepOnly && p.ForTest == "",
		Sizes:            types.SizesFor("gc", goarch),
		Importer:         imports{all, p.ImportMap},
		Error:            func(err error) { errs = append(errs, err) },
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	all[p.ImportPath], _ = conf.Check(path, fset, files, nil)
	return errors.Join(errs...)
}

// imports finds what a package imports, by the names in its files.
type imports struct {
	from   packages
	listed map[string]string
}

func (i imports) Import(path string) (*types.Package, error) {
	if listed, ok := i.listed[path]; ok {
		path = listed
	}
	if p := i.from[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("not listed: " + path)
}
