// Command typecheck reports the type errors of the packages and tests in and below
// this folder, as they are on other platforms:
//
//	go run ./internal/testkit/typecheck windows/amd64 darwin/arm64
//
// It reads the sources, and of other modules and the standard library the
// declarations alone. Nothing is compiled, so a platform costs seconds, not minutes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	failed := false
	for _, platform := range os.Args[1:] {
		packages, found, err := check(".", platform)
		for _, e := range found {
			fmt.Printf("%s: %v\n", platform, e)
		}
		if err != nil {
			fmt.Printf("%s: %v\n", platform, err)
		}
		fmt.Printf("%s: %d packages, %d errors\n", platform, packages, len(found))
		failed = failed || err != nil || len(found) > 0
	}
	if failed || len(os.Args) < 2 {
		os.Exit(1)
	}
}

// listed is a package as go list prints it. Packages come after those that they import.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string // of the packages whose test forms it imports
	Module          *struct {
		Main      bool
		GoVersion string
	}
}

// check returns how many packages of ours it read, and their errors.
func check(dir, platform string) (int, []error, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	sizes := types.SizesFor("gc", goarch)
	if !ok || sizes == nil {
		return 0, nil, fmt.Errorf("%q is no platform such as windows/amd64", platform)
	}
	list := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return 0, nil, fmt.Errorf("go list: %w", err)
	}

	var found []error
	count, fset, known := 0, token.NewFileSet(), known{"unsafe": types.Unsafe}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return count, found, nil
		} else if err != nil {
			return count, found, fmt.Errorf("go list: %w", err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		ours := p.Module != nil && p.Module.Main
		report := func(err error) {
			if ours {
				found = append(found, err)
			}
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			if !filepath.IsAbs(name) { // as the generated main of a test is
				name = filepath.Join(p.Dir, name)
			}
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				report(err)
				continue
			}
			files = append(files, file)
		}
		config := types.Config{
			Importer: importer{known, p.ImportMap}, Sizes: sizes, Error: report, IgnoreFuncBodies: !ours,
		}
		if ours {
			count++
			config.GoVersion = "go" + p.Module.GoVersion
		}
		known[p.ImportPath], _ = config.Check(p.ImportPath, fset, files, nil)
	}
}

// known are the packages that were read, by path.
type known map[string]*types.Package

type importer struct {
	known
	renamed map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if to, ok := i.renamed[path]; ok {
		path = to
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("go list did not name %s", path)
}
