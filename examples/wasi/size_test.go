package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// The reactor's limits in bytes. It holds the whole of package bloom and no
// net/http: with that alone it would be three times as large.
const (
	maxRaw     = 3_900_000
	maxGzipped = 1_100_000
)

func TestReactorSize(t *testing.T) {
	wasm := module(t, "./reactor")
	raw, packed := len(wasm), gzipped(t, wasm)
	t.Logf("reactor: %d bytes, %d gzipped", raw, packed)
	if raw >= maxRaw {
		t.Errorf("the reactor has %d bytes, want under %d", raw, maxRaw)
	}
	if packed >= maxGzipped {
		t.Errorf("the reactor has %d bytes after gzip, want under %d", packed, maxGzipped)
	}
}

func TestGuestsHaveNoHTTPStack(t *testing.T) {
	for _, pkg := range []string{"./reactor", "./component"} {
		deps := runCmd(t, wasip1(exec.Command(testenv.Need(t, "go", "go"), "list", "-deps", pkg)))
		for dep := range strings.FieldsSeq(deps) {
			switch dep {
			case "net/http", "net", "crypto/tls", "github.com/valyala/fasthttp":
				t.Errorf("%s depends on %s", pkg, dep)
			}
		}
	}
}
