package testenv

import (
	"bytes"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// startLimit is how long a redis-server may take to answer its first PING: far
// more than the few milliseconds it needs, for a machine under load.
const startLimit = 15 * time.Second

// Redis starts a private, empty redis-server on the loopback interface, which
// persists nothing and is stopped at the test's end, and returns its
// host:port. Without redis-server the test skips, or fails if
// UPBLOOM_REQUIRE contains "redis".
func Redis(tb testing.TB) string {
	tb.Helper()
	exe := Need(tb, "redis", "redis-server")
	// Between finding a free port and Redis taking it, another process may be
	// faster: then Redis exits at once, and another port is tried.
	for range 5 {
		if addr, ok := startRedis(tb, exe); ok {
			return addr
		}
	}
	tb.Fatal("testenv: redis-server did not start on five ports in turn")
	return ""
}

func startRedis(tb testing.TB, exe string) (addr string, ok bool) {
	tb.Helper()
	addr = freeAddr(tb)
	_, port, _ := net.SplitHostPort(addr)
	var out bytes.Buffer
	cmd := exec.Command(exe, "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", tb.TempDir())
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		tb.Fatalf("testenv: starting redis-server: %v", err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	stop := func() { _ = cmd.Process.Kill(); <-exited }

	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); {
		select {
		case <-exited:
			tb.Logf("testenv: redis-server exited: %s", tail(out.String()))
			return "", false
		case <-time.After(5 * time.Millisecond):
		}
		if ping(addr) {
			tb.Cleanup(stop)
			return addr, true
		}
	}
	stop()
	tb.Fatalf("testenv: redis-server gave no PONG in %v: %s", startLimit, tail(out.String()))
	return "", false
}

func freeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("testenv: no free port: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}

func ping(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	buf := make([]byte, 7)
	n, _ := c.Read(buf)
	return string(buf[:n]) == "+PONG\r\n"
}

func tail(s string) string {
	const keep = 500
	if len(s) > keep {
		s = "..." + s[len(s)-keep:]
	}
	return strings.TrimSpace(s)
}
