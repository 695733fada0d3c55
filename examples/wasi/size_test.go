package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

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
