//go:build !wasm

// Package jstest runs js/wasm programs under Node from within native tests.
// Servers written in Go can then stand at the other end.
package jstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// Run builds the js/wasm tests of the package in the current folder and runs,
// under Node, those that match pattern. If one fails or skips, or none
// matches, Run fails with their output.
func Run(tb testing.TB, pattern string, env ...string) {
	tb.Helper()
	wasm := build(tb, "test", "-c", ".")
	s := node(tb, env, "--stack-size=8192", // as Go's own runner does
		WasmExec(tb, "wasm_exec_node.js"),
		wasm, "-test.v", "-test.timeout=30m", "-test.run="+pattern)
	if !strings.Contains(s, "--- PASS") || strings.Contains(s, "--- SKIP") {
		tb.Fatalf("under Node not every test ran\n%s", s)
	}
}

// BuildRelay builds the tests of package upstash for js/wasm and returns their
// path. If relay.Env is set, their TestRelay is the other end of a
// relay.Transport. BuildRelay works from any folder: a module knows the test
// dependencies of its own packages only, not those of package upstash.
func BuildRelay(tb testing.TB) (wasm string) {
	tb.Helper()
	root, err := exec.Command(testenv.Need(tb, "go", "go"),
		"list", "-f", "{{.Dir}}", "-m", "github.com/upbloom/upbloom").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return build(tb, "test", "-C", strings.TrimSpace(string(root)), "-c", "./upstash")
}

// build runs the go command for js/wasm and returns the path of the result. The
// last of args is the package.
func build(tb testing.TB, args ...string) (wasm string) {
	tb.Helper()
	testenv.Asked(tb, "node")
	wasm = filepath.Join(tb.TempDir(), "main.wasm")
	last := len(args) - 1
	args = append(args[:last:last], "-o", wasm, args[last])
	cmd := exec.Command(testenv.Need(tb, "go", "go"), args...)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go %v for js/wasm: %v\n%s", args, err, out)
	}
	return wasm
}

// node runs Node and returns its output. The environment is env and PATH only,
// because Go on js takes no more than a few KB of environment.
func node(tb testing.TB, env []string, args ...string) string {
	tb.Helper()
	cmd := exec.Command(testenv.Need(tb, "node", "node"), args...)
	// Versions of Node differ in their warnings.
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "NODE_NO_WARNINGS=1"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("under Node: %v\n%s", err, out)
	}
	return string(out)
}

// WasmExec returns the path of one of Go's own files for js/wasm.
func WasmExec(tb testing.TB, name string) string {
	tb.Helper()
	goroot, err := exec.Command(testenv.Need(tb, "go", "go"), "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", name)
}
