package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// scratch holds the builds of all tests of a run.
var scratch string

func TestMain(m *testing.M) {
	code := func() int {
		dir, err := os.MkdirTemp("", "wasi")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		scratch = dir
		return m.Run()
	}()
	os.Exit(code)
}

// module builds a package of this example as a wasip1 reactor.
func module(tb testing.TB, pkg string) []byte {
	tb.Helper()
	path := filepath.Join(scratch, filepath.Base(pkg)+".wasm")
	if wasm, err := os.ReadFile(path); err == nil {
		return wasm
	}
	runCmd(tb, wasip1(exec.Command(testenv.Need(tb, "go", "go"),
		"build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", path, pkg)))
	return mustRead(tb, path)
}

func mustRead(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func wasip1(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	return cmd
}

// runCmd runs a command to its end and returns what it printed.
func runCmd(tb testing.TB, cmd *exec.Cmd) string {
	tb.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

func gzipped(tb testing.TB, data []byte) int {
	tb.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Len()
}
