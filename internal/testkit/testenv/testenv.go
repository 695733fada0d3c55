// Package testenv finds what a test needs from the machine: a Redis server,
// Node, a WebAssembly runtime. If it is absent, the test skips with a reason.
// If the environment variable UPBLOOM_REQUIRE names it, the test fails instead,
// because continuous integration must not pass by skipping. The variable holds
// a comma-separated list, such as "redis,node". With "long" in it, tests take
// their long forms.
//
// Who imports it gets clients and servers of package upstashtest with [Patience].
package testenv

import (
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/door"
)

// Patience is how long a test waits for what does come, unless something is wrong.
// A test that waits longer than a user would is only slow.
const Patience = 5 * time.Minute

func init() { door.Patience = Patience }

// Require is an environment variable. It turns skips into failures.
const Require = "UPBLOOM_REQUIRE"

// Need returns the path of the first executable it finds. If there is none,
// the test skips, or fails if UPBLOOM_REQUIRE contains name.
func Need(tb testing.TB, name string, executables ...string) string {
	tb.Helper()
	for _, exe := range executables {
		if path, err := exec.LookPath(exe); err == nil {
			return path
		}
	}
	Missing(tb, name, "no executable "+strings.Join(executables, " or ")+" on the PATH")
	return ""
}

// Python returns a Python with the module xxhash.
func Python(tb testing.TB) (exe string) {
	tb.Helper()
	for _, exe := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(exe, "-c", "import xxhash").Run() == nil {
			return exe
		}
	}
	Missing(tb, "python", "no python3 with the module xxhash")
	return ""
}

// Asked skips a test that takes long, unless UPBLOOM_REQUIRE contains name,
// the foreign runtime it needs.
func Asked(tb testing.TB, name string) {
	tb.Helper()
	if !required(os.Getenv(Require), name) {
		tb.Skipf("testenv: takes long, and runs only if %s contains %s", Require, name)
	}
}

// Long reports whether UPBLOOM_REQUIRE contains "long". Tests then run in their
// long form. The short form tests fewer cases of the same.
func Long() bool { return required(os.Getenv(Require), "long") }

// AskedLong skips a test without a short form, unless UPBLOOM_REQUIRE contains
// "long".
func AskedLong(tb testing.TB) {
	tb.Helper()
	Asked(tb, "long")
}

// Missing ends a test that lacks something: it skips, or fails if
// UPBLOOM_REQUIRE contains name. The reason is printed.
func Missing(tb testing.TB, name, reason string) {
	tb.Helper()
	if required(os.Getenv(Require), name) {
		tb.Fatalf("testenv: %s is required by %s: %s", name, Require, reason)
	}
	tb.Skipf("testenv: needs %s: %s", name, reason)
}

// ClosedAddr returns a host:port on the loopback interface that refuses every
// dial until the end of the test. A connection holds the port, so no other
// process can begin to listen there.
func ClosedAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("testenv: no free port: %v", err)
	}
	defer l.Close()
	// From an address of its own: Windows lets another listener take a port that
	// is held at all addresses.
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: l.Addr().(*net.TCPAddr).IP}}
	c, err := d.DialContext(tb.Context(), "tcp", l.Addr().String())
	if err != nil {
		tb.Fatalf("testenv: no connection on the loopback interface: %v", err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	other, err := l.Accept() // without this, closing the listener would reset the connection
	if err != nil {
		tb.Fatalf("testenv: no connection on the loopback interface: %v", err)
	}
	tb.Cleanup(func() { _ = other.Close() })
	return c.LocalAddr().String()
}

// ClearProxies unsets the environment's proxies. With one, upstash.New returns
// ErrProxy for the made-up hosts of a test.
func ClearProxies() {
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY"} {
		_ = os.Unsetenv(name)
		_ = os.Unsetenv(strings.ToLower(name))
	}
}

// CollectLess lets the heap grow to five times what lives, up to 2 GiB: what a
// test allocates mostly lives for one script, and with the default a fifth of the
// tests' time is the collector's.
func CollectLess() {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(2 << 30)
}

func required(list, name string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool {
		return strings.TrimSpace(s) == name
	})
}
