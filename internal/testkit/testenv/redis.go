package testenv

import (
	"bytes"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startLimit is how long a redis-server may take to answer. It needs a few
// milliseconds, but more on a machine under load.
const startLimit = 30 * time.Second

// answerLimit is how long a single answer may take.
const answerLimit = 5 * time.Second

// Redis starts a private, empty redis-server on the loopback interface and
// returns its host:port. The server persists nothing and stops at the end of
// the test. If there is no redis-server, the test skips, or fails if
// UPBLOOM_REQUIRE contains "redis".
func Redis(tb testing.TB) (addr string) {
	tb.Helper()
	exe := Need(tb, "redis", "redis-server")
	OnFreePort(tb, func(free string) bool {
		stop, ok := startRedis(tb, exe, free, tb.TempDir(), "no")
		if ok {
			tb.Cleanup(stop)
			addr = free
		}
		return ok
	})
	return addr
}

// A LastingRedis keeps its data when it is killed.
type LastingRedis struct {
	Addr string
	exe  string
	dir  string
	stop func()
}

// NewLastingRedis starts a redis-server of its own that writes each command to the
// disk before it answers.
func NewLastingRedis(tb testing.TB) *LastingRedis {
	tb.Helper()
	r := &LastingRedis{exe: Need(tb, "redis", "redis-server"), dir: tb.TempDir()}
	OnFreePort(tb, func(addr string) bool {
		r.Addr = addr
		return r.start(tb)
	})
	tb.Cleanup(func() { r.Kill() })
	return r
}

func (r *LastingRedis) start(tb testing.TB) (ok bool) {
	r.stop, ok = startRedis(tb, r.exe, r.Addr, r.dir, "yes")
	return ok
}

// Kill ends the process as kill -9 does.
func (r *LastingRedis) Kill() { r.stop() }

// Restart starts it again after Kill, at its address and with its data.
func (r *LastingRedis) Restart(tb testing.TB) {
	tb.Helper()
	if !r.start(tb) {
		tb.Fatalf("testenv: redis-server did not start again at %s", r.Addr)
	}
}

// startRedis starts a redis-server, which stop ends. It is not ok if the port is
// another one's.
func startRedis(tb testing.TB, exe, addr, dir, lasting string) (stop func(), ok bool) {
	tb.Helper()
	_, port, _ := net.SplitHostPort(addr)
	var out bytes.Buffer
	cmd := exec.Command(exe, "--port", port, "--bind", "127.0.0.1", "--save", "",
		"--appendonly", lasting, "--appendfsync", "always", "--dir", dir)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		tb.Fatalf("testenv: starting redis-server: %v", err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	stop = func() { _ = cmd.Process.Kill(); <-exited }

	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); {
		select {
		case <-exited:
			tb.Logf("testenv: redis-server exited: %s", tail(out.String()))
			return stop, false
		case <-time.After(5 * time.Millisecond):
		}
		// The Redis of another test may have the port.
		if processAt(addr) == cmd.Process.Pid {
			return stop, true
		}
	}
	stop()
	tb.Fatalf("testenv: redis-server did not answer in %v: %s", startLimit, tail(out.String()))
	return stop, false
}

// processAt returns the process ID of the Redis that listens at addr, or 0 if
// none answers.
func processAt(addr string) int {
	c, err := net.DialTimeout("tcp", addr, answerLimit)
	if err != nil {
		return 0
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerLimit))
	if _, err := c.Write([]byte("INFO server\r\nQUIT\r\n")); err != nil {
		return 0
	}
	answer, _ := io.ReadAll(c)
	_, rest, _ := strings.Cut(string(answer), "process_id:")
	line, _, _ := strings.Cut(rest, "\r\n")
	pid, _ := strconv.Atoi(line)
	return pid
}

// Ask sends a command to the Redis at addr, without a REST server, and returns
// its reply as it travels, such as "+OK\r\n".
func Ask(tb testing.TB, addr, command string) string {
	tb.Helper()
	c, err := net.DialTimeout("tcp", addr, startLimit)
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(startLimit))
	if _, err := io.WriteString(c, command+"\r\nQUIT\r\n"); err != nil {
		tb.Fatalf("testenv: %s: %v", command, err)
	}
	reply, err := io.ReadAll(c)
	if err != nil {
		tb.Fatalf("testenv: %s: %v", command, err)
	}
	return strings.TrimSuffix(string(reply), "+OK\r\n") // of QUIT
}

func tail(s string) string {
	const keep = 500
	if len(s) > keep {
		s = "..." + s[len(s)-keep:]
	}
	return strings.TrimSpace(s)
}
