// Command pictures draws the pictures of README.md and bloom/FORMAT.md:
//
//	cd internal/benchmarks && go run ./cmd/pictures
//
// Each is made twice, for light and for dark pages. The data are asked from the
// library, or read from a table of README.md. The same
// commit makes the same pictures.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// What is read and written, from the folder of this module.
const (
	readme = "../../README.md"
	folder = "../../.github/pictures"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := drawAll(readme)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// drawAll returns the files by their names.
func drawAll(readme string) (map[string]string, error) {
	ways, err := readWays(readme)
	if err != nil {
		return nil, err
	}
	shapes, err := askShapes()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for mode, ink := range map[string]inks{"light": light, "dark": dark} {
		if files["bill-"+mode+".svg"], err = drawBills(ink, ways); err != nil {
			return nil, err
		}
		files["shape-"+mode+".svg"] = drawShapes(ink, shapes)
	}
	return files, nil
}
