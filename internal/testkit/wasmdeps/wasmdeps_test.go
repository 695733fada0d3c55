// Package wasmdeps tests which packages a wasm module depends on. Edge
// platforms limit its size.
package wasmdeps

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

func TestCoreStaysSmallOnWasm(t *testing.T) {
	const module = "github.com/upbloom/upbloom/"
	unwanted := []string{
		"net/http", "net", "crypto/tls", "crypto/rand", "math/big", "encoding/json", "regexp", "testing",
	}
	for _, goos := range []string{"wasip1", "js"} {
		t.Run(goos, func(t *testing.T) {
			cmd := exec.Command(testenv.Need(t, "go", "go"), "list", "-deps", module+"upstash", module+"bloom")
			cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=wasm")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			deps := strings.Fields(string(out))
			if !slices.Contains(deps, module+"bloom") {
				t.Fatal("go list printed no dependencies")
			}
			for _, dep := range deps {
				if slices.Contains(unwanted, dep) {
					t.Errorf("depends on %s", dep)
				}
			}
		})
	}
}
