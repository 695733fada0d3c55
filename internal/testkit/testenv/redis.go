package testenv

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Redis returns the host:port of a private, empty redis-server on the loopback
// interface. The server persists nothing and stops at the end of the test, or of
// the suite that shares it. If there is no redis-server, the test skips, or fails
// if UPBLOOM_REQUIRE contains "redis".
func Redis(tb testing.TB) (addr string) {
	tb.Helper()
	exe := Need(tb, "redis", "redis-server")
	if r := shared.take(); r != nil {
		tb.Cleanup(r.giveBack)
		return r.addr
	}
	dir := shared.dir
	if dir == "" {
		dir = tb.TempDir()
	}
	OnFreePort(tb, func(free string) bool {
		stop, ok := startRedis(tb, exe, free, dir)
		if ok {
			r := &redis{addr: free, stop: stop, began: emptied(free)}
			tb.Cleanup(r.giveBack)
			addr = free
		}
		return ok
	})
	return addr
}

// redis is a server that one test at a time uses.
type redis struct {
	addr  string
	stop  func()
	began string // what emptied returned when it was new
}

// giveBack leaves the server to the next test, unless the suite shares none or
// this test left more than data, such as another maxmemory.
func (r *redis) giveBack() {
	shared.Lock()
	defer shared.Unlock()
	emptied(r.addr) // it may overtake what a closed connection had sent; the next does not
	if shared.dir == "" || r.began == "" || emptied(r.addr) != r.began {
		r.stop()
		return
	}
	shared.idle = append(shared.idle, r)
}

// emptied removes data, scripts and statistics, and returns the server's whole
// configuration, or "" if it does not answer.
func emptied(addr string) string {
	answer, err := talk(addr,
		"FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH", "CONFIG RESETSTAT", "CONFIG GET *", "ACL LIST")
	if err != nil {
		return ""
	}
	return answer
}

// shared are the servers of a suite that no test uses now, and their folder.
var shared servers

type servers struct {
	sync.Mutex
	dir  string // "" if the suite shares none
	idle []*redis
}

func (s *servers) take() *redis {
	s.Lock()
	defer s.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	last := len(s.idle) - 1
	r := s.idle[last]
	s.idle = s.idle[:last]
	return r
}

// ShareRedis runs a suite in which a Redis serves one test after another: to start
// one takes as long as most tests.
func ShareRedis(run func() int) (code int) {
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		return run()
	}
	shared.dir = dir
	code = run()
	for _, r := range shared.idle {
		r.stop()
	}
	shared.dir, shared.idle = "", nil
	_ = os.RemoveAll(dir)
	return code
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
	r.stop, ok = startRedis(tb, r.exe, r.Addr, r.dir, "--appendonly", "yes", "--appendfsync", "always")
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

// RedisCluster returns the host:port of a redis-server in cluster mode, a cluster
// of one node, which stops at the end of the test.
func RedisCluster(tb testing.TB) (addr string) {
	tb.Helper()
	exe, dir := Need(tb, "redis", "redis-server"), tb.TempDir()
	OnFreePort(tb, func(free string) bool {
		_, bus, _ := net.SplitHostPort(freeAddr(tb))
		stop, ok := startRedis(tb, exe, free, dir, "--cluster-enabled", "yes", "--cluster-port", bus)
		if ok {
			addr = free
			tb.Cleanup(stop)
		}
		return ok
	})
	if reply := Ask(tb, addr, "CLUSTER ADDSLOTSRANGE 0 16383"); reply != "+OK\r\n" {
		tb.Fatalf("testenv: CLUSTER ADDSLOTSRANGE: got %q, want +OK", reply)
	}
	for start := time.Now(); !strings.Contains(Ask(tb, addr, "CLUSTER INFO"), "cluster_state:ok"); {
		if time.Since(start) > Patience {
			tb.Fatal("testenv: the cluster is not ready")
		}
	}
	return addr
}

// startRedis starts a redis-server, which stop ends. It is not ok if the port is
// another one's.
func startRedis(tb testing.TB, exe, addr, dir string, more ...string) (stop func(), ok bool) {
	tb.Helper()
	_, port, _ := net.SplitHostPort(addr)
	var out bytes.Buffer
	cmd := exec.Command(exe, append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", dir}, more...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		tb.Fatalf("testenv: starting redis-server: %v", err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	stop = func() { _ = cmd.Process.Kill(); <-exited }

	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); {
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
	tb.Fatalf("testenv: redis-server did not answer in %v: %s", Patience, tail(out.String()))
	return stop, false
}

// processAt returns the process ID of the Redis that listens at addr, or 0 if
// none answers.
func processAt(addr string) int {
	answer, _ := talk(addr, "INFO server")
	_, rest, _ := strings.Cut(answer, "process_id:")
	line, _, _ := strings.Cut(rest, "\r\n")
	pid, _ := strconv.Atoi(line)
	return pid
}

// Ask sends a command to the Redis at addr, without a REST server, and returns
// its reply as it travels, such as "+OK\r\n".
func Ask(tb testing.TB, addr, command string) string {
	tb.Helper()
	reply, err := talk(addr, command)
	if err != nil {
		tb.Fatalf("testenv: %s: %v", command, err)
	}
	return reply
}

// UsersMay changes the rules of a Redis's users, also of those by which the scripts
// of an upstashtest.Server run.
func UsersMay(tb testing.TB, addr, rule string) {
	tb.Helper()
	for line := range strings.Lines(Ask(tb, addr, "ACL USERS")) {
		if user := strings.TrimSpace(line); !strings.ContainsAny(user[:1], "*$") {
			if reply := Ask(tb, addr, "ACL SETUSER "+user+" "+rule); reply != "+OK\r\n" {
				tb.Fatalf("testenv: ACL SETUSER %s %s: got %q, want +OK", user, rule, reply)
			}
		}
	}
}

// talk sends commands and returns their replies.
func talk(addr string, commands ...string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, Patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(Patience))
	if _, err := io.WriteString(c, strings.Join(append(commands, "QUIT\r\n"), "\r\n")); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(c)
	return strings.TrimSuffix(string(reply), "+OK\r\n"), err // of QUIT
}

func tail(s string) string {
	const keep = 500
	if len(s) > keep {
		s = "..." + s[len(s)-keep:]
	}
	return strings.TrimSpace(s)
}
