package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/pages"
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

// module builds a package of this example as a wasip1 reactor, with README's
// commands.
func module(tb testing.TB, pkg string) []byte {
	tb.Helper()
	path := filepath.Join(scratch, filepath.Base(pkg)+".wasm")
	if wasm, err := os.ReadFile(path); err == nil {
		return wasm
	}
	testenv.Need(tb, "go", "go")
	line := pages.Command(tb, "README.md",
		"GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -ldflags='-s -w' -o reactor.wasm ")
	if pkg == "./component" {
		line = pages.Command(tb, "README.md",
			"GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -ldflags='-s -w' -o component/core.wasm ")
		line.Replace(tb, "component/core.wasm", path)
	} else {
		line.Replace(tb, "reactor.wasm", path)
		line.Replace(tb, "./reactor", pkg)
	}
	cmd := wasip1(exec.Command(line.Args[0], line.Args[1:]...))
	cmd.Env = append(cmd.Env, line.Env...)
	runCmd(tb, cmd)
	return mustRead(tb, path)
}

// TestREADMEsReactor asks the reactor about the events of README, in a process
// with a server of its own.
func TestREADMEsReactor(t *testing.T) {
	module(t, "./reactor")
	line := pages.Command(t, "README.md", "go run . reactor.wasm")
	if doc := pages.Command(t, "main.go", "go run . reactor.wasm"); !slices.Equal(doc.Args, line.Args) {
		t.Errorf("main.go says %q, want %q", doc.Args, line.Args)
	}
	line.Replace(t, "reactor.wasm", filepath.Join(scratch, "reactor.wasm"))
	cmd := exec.Command(line.Args[0], line.Args[1:]...)
	cmd.Env = append(os.Environ(), "UPSTASH_REDIS_REST_URL=")
	if got, want := runCmd(t, cmd), "order-1 new\norder-2 new\norder-1 seen\n"; got != want {
		t.Errorf("%q printed %q, want %q", line.Args, got, want)
	}
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
