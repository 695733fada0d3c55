// Package coredeps tests which packages the core depends on. Edge platforms limit
// the size of a wasm module, and everywhere a process should start fast.
package coredeps

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

const module = "github.com/upbloom/upbloom/"

// heavy are packages of the standard library that no platform needs.
var heavy = []string{"net/http", "regexp", "testing"}

// The hash of items, and what it asks the processor with.
const hash, cpu = "github.com/zeebo/xxh3", "github.com/klauspost/cpuid/"

// TestCoreNeedsFewModules: beside the standard library, packages upstash and
// bloom need only the hash and the modules behind the proxies of the environment.
func TestCoreNeedsFewModules(t *testing.T) {
	checkDeps(t, runtime.GOOS, runtime.GOARCH, heavy,
		"golang.org/x/net/", "golang.org/x/text/", hash, cpu, "golang.org/x/sys/")
}

func TestCoreStaysSmallOnWasm(t *testing.T) {
	unwanted := append([]string{"net", "crypto/tls", "crypto/rand", "math/big", "encoding/json"}, heavy...)
	for _, goos := range []string{"wasip1", "js"} {
		t.Run(goos, func(t *testing.T) { checkDeps(t, goos, "wasm", unwanted, hash, cpu) })
	}
}

// checkDeps checks the core's dependencies: no package of unwanted, and no
// module but those whose packages begin so.
func checkDeps(t *testing.T, goos, goarch string, unwanted []string, modules ...string) {
	t.Helper()
	cmd := exec.Command(testenv.Need(t, "go", "go"), "list", "-deps", "-f", "{{.Standard}} {{.ImportPath}}",
		module+"upstash", module+"bloom")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Split(string(out), "\n")
	if !slices.Contains(deps, "false "+module+"bloom") {
		t.Fatal("go list printed no line for package bloom, want its dependencies")
	}
	for _, line := range deps {
		kind, dep, _ := strings.Cut(line, " ")
		begins := func(with string) bool { return strings.HasPrefix(dep, with) }
		foreign := kind == "false" && !begins(module) && !slices.ContainsFunc(modules, begins)
		if foreign || slices.Contains(unwanted, dep) {
			t.Errorf("the core depends on %s on %s/%s, want it without", dep, goos, goarch)
		}
	}
}
