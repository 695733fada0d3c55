//go:build unix

package upstash

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// pair gives both ends of a connection over the loopback interface.
func pair(t *testing.T) (near *conn, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), far.Close() })
	return &conn{Conn: c, socket: c}, far
}

func closed(c *conn) bool {
	_, err := c.Write(nil)
	return err != nil
}

func TestPoolGivesTheLastUsedFirst(t *testing.T) {
	var p connPool
	start := time.Now()
	if p.get(start) != nil {
		t.Error("an empty pool gave a connection")
	}
	a, _ := pair(t)
	b, _ := pair(t)
	p.put(a, start)
	p.put(b, start.Add(time.Second))
	if p.get(start.Add(2*time.Second)) != b || p.get(start.Add(2*time.Second)) != a || p.get(start) != nil {
		t.Error("another order")
	}
}

func TestPoolLetsGoOfExpired(t *testing.T) {
	var p connPool
	start := time.Now()
	a, _ := pair(t)
	b, _ := pair(t)
	p.put(a, start)
	if p.get(start.Add(maxIdleTime)) != a {
		t.Error("not given at the limit")
	}
	p.put(a, start)
	if p.get(start.Add(maxIdleTime+1)) != nil || !closed(a) {
		t.Error("given, or not closed, after the limit")
	}
	c, _ := pair(t)
	p.put(b, start)
	p.put(c, start.Add(maxIdleTime+1)) // put cleans up as well
	if len(p.conns) != 1 || !closed(b) || closed(c) {
		t.Errorf("%d kept", len(p.conns))
	}
}

// In a frozen process the monotonic clock may stand still: the wall clock
// alone must be enough.
func TestPoolAsksTheWallClock(t *testing.T) {
	c := &conn{idleSince: time.Now()}
	wall := c.idleSince.Round(0).Add(maxIdleTime + time.Second)
	if !c.expired(wall) {
		t.Error("not expired by the wall clock")
	}
	if c.expired(c.idleSince.Add(maxIdleTime - time.Second)) {
		t.Error("expired early")
	}
}

func TestPoolDetectsDeadConnections(t *testing.T) {
	for name, kill := range map[string]func(far net.Conn){
		"closed":        func(far net.Conn) { _ = far.Close() },
		"half closed":   func(far net.Conn) { _ = far.(*net.TCPConn).CloseWrite() },
		"reset":         func(far net.Conn) { _ = far.(*net.TCPConn).SetLinger(0); _ = far.Close() },
		"uninvited 408": func(far net.Conn) { _, _ = io.WriteString(far, "HTTP/1.1 408 Request Timeout\r\n\r\n") },
	} {
		var p connPool
		near, far := pair(t)
		p.put(near, time.Now())
		if got := p.get(time.Now()); got != near {
			t.Fatalf("%s: not even given while it was alive", name)
		}
		p.put(near, time.Now())
		kill(far)
		waitUntil(t, func() bool { return !isAlive(near.socket) })
		if p.get(time.Now()) != nil || !closed(near) {
			t.Errorf("%s: given, or not closed", name)
		}
	}
}

// waitUntil polls what the kernel does in its own time, on loopback at once.
func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}

func TestPoolIsBounded(t *testing.T) {
	var p connPool
	now := time.Now()
	first, _ := pair(t)
	p.put(first, now)
	for range maxIdleConns {
		c, _ := pair(t)
		p.put(c, now)
	}
	if len(p.conns) != maxIdleConns || !closed(first) {
		t.Errorf("%d connections kept; the oldest closed: %v", len(p.conns), closed(first))
	}
	p.close()
	late, _ := pair(t)
	p.put(late, now)
	if len(p.conns) != 0 || !closed(late) {
		t.Error("a closed pool keeps connections")
	}
}

// TestNewStaysNew is the frozen process in small: the server hangs up while
// the client sits idle; the next INCR must run exactly once.
func TestNewStaysNew(t *testing.T) {
	var n, conns atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		_, _ = io.WriteString(w, `{"result":1}`)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := newClient(t, s.URL, WithRetry(0))
	for i := range int64(5) {
		if _, err := c.Do(t.Context(), Cmd("INCR", "k")); err != nil || n.Load() != i+1 || conns.Load() != i+1 {
			t.Fatalf("call %d: %v; %d executed over %d connections", i, err, n.Load(), conns.Load())
		}
		s.CloseClientConnections()
		pool := &c.transport.(*fasthttpTransport).idle
		idle := pool.pop()
		waitUntil(t, func() bool { return !isAlive(idle.socket) })
		pool.put(idle, time.Now())
	}
}
