//go:build !wasm

// Package jstest runs a package's GOOS=js tests under Node from within native
// tests, so that servers written in Go can stand at the other end.
package jstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testenv"
)

// Run builds the js/wasm tests of the package in the current folder and runs
// those that match pattern under Node, with env beside a bare PATH: the
// environment of a js program is limited to a few KB. It fails with all that
// they printed if one fails or skips, or if none matches.
func Run(tb testing.TB, pattern string, env ...string) {
	tb.Helper()
	node := testenv.Need(tb, "node", "node")
	golang := testenv.Need(tb, "go", "go")

	goroot, err := exec.Command(golang, "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	wasm := filepath.Join(tb.TempDir(), "jstest.wasm")
	build := exec.Command(golang, "test", "-c", "-o", wasm, ".")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build for js/wasm: %v\n%s", err, out)
	}

	// Go's stack lives in wasm memory, but its calls still nest on that of V8.
	run := exec.Command(node, "--stack-size=8192",
		filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec_node.js"),
		wasm, "-test.v", "-test.timeout=60s", "-test.run="+pattern)
	run.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	out, err := run.CombinedOutput()
	if err != nil {
		tb.Fatalf("under Node: %v\n%s", err, out)
	}
	if s := string(out); !strings.Contains(s, "--- PASS") || strings.Contains(s, "--- SKIP") {
		tb.Fatalf("under Node not every test ran\n%s", s)
	}
}
