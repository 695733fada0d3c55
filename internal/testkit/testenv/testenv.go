// Package testenv finds what a test needs from the machine: a Redis server,
// Node, a WebAssembly runtime. If it is absent, the test skips with a reason.
// If the environment variable UPBLOOM_REQUIRE names it, the test fails instead,
// so that a run of continuous integration cannot pass by skipping. The variable
// holds a comma-separated list, such as "redis,node".
package testenv

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Require is the environment variable that turns skips into failures.
const Require = "UPBLOOM_REQUIRE"

// Need returns the path of the executable exe, or ends the test: skipped, or
// failed if UPBLOOM_REQUIRE contains name.
func Need(tb testing.TB, name, exe string) string {
	tb.Helper()
	path, err := exec.LookPath(exe)
	if err != nil {
		Missing(tb, name, "no executable "+exe+" on the PATH")
	}
	return path
}

// Missing ends a test whose need cannot be met: skipped, or failed if
// UPBLOOM_REQUIRE contains name. The reason is for people.
func Missing(tb testing.TB, name, reason string) {
	tb.Helper()
	if required(os.Getenv(Require), name) {
		tb.Fatalf("testenv: %s is required by %s: %s", name, Require, reason)
	}
	tb.Skipf("testenv: needs %s: %s", name, reason)
}

func required(list, name string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool {
		return strings.TrimSpace(s) == name
	})
}
