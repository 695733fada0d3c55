package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-json"

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

// TestReactorSize compares the reactor with a program of fmt alone, because the
// size of Go's runtime changes with every version. The limits are 2% above what
// was measured on 2026-11-24: 1.52 MB, and 0.41 MB after gzip, of which crypto/sha1
// takes 0.17 and 0.05. net/http would add 7 MB.
func TestReactorSize(t *testing.T) {
	const limit, packedLimit = 1_553_000, 423_000 // bytes
	wasm, hello := module(t, "./reactor"), module(t, "./testdata/hello")
	packed := gzipped(t, wasm)
	added, packedAdded := len(wasm)-len(hello), packed-gzipped(t, hello)
	t.Logf("reactor: %d bytes, %d gzipped; of these beside fmt: %d and %d",
		len(wasm), packed, added, packedAdded)
	if added >= limit {
		t.Errorf("the reactor adds %d bytes, want under %d", added, limit)
	}
	if packedAdded >= packedLimit {
		t.Errorf("the reactor adds %d bytes after gzip, want under %d", packedAdded, packedLimit)
	}
}

func TestGuestsHaveNoHTTPStack(t *testing.T) {
	for _, pkg := range []string{"./reactor", "./component"} {
		deps := runCmd(t, wasip1(exec.Command(testenv.Need(t, "go", "go"), "list", "-deps", pkg)))
		for dep := range strings.FieldsSeq(deps) {
			switch dep {
			case "net/http", "net", "crypto/tls":
				t.Errorf("%s depends on %s", pkg, dep)
			}
		}
	}
}

// TestLockFileHasChecksums: "npm ci" itself refuses a lock file that lacks a package,
// even an optional one for another platform.
func TestLockFileHasChecksums(t *testing.T) {
	var lock struct {
		Packages map[string]struct{ Integrity string }
	}
	if err := json.Unmarshal(mustRead(t, "component/package-lock.json"), &lock); err != nil {
		t.Fatal(err)
	}
	for path, p := range lock.Packages {
		if path != "" && p.Integrity == "" {
			t.Errorf("%s has no checksum", path)
		}
	}
	if len(lock.Packages) < 2 {
		t.Errorf("the lock file has %d packages, want two or more", len(lock.Packages))
	}
}
