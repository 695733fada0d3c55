package upstashtest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

func TestLimitsAreInclusive(t *testing.T) {
	s := filled(t, WithMaxRequest(1000), WithMaxRecord(1000))
	for _, c := range []call{
		{path: "/set/a", body: strings.Repeat("x", 1000)},
		{path: "/setrange/b/999", body: "x"},
		{path: "/bitfield/c/set/u1/7999/1"},
		{path: "/setbit/d/7999/1"},
	} {
		if got := do(t, s, c); got.status != http.StatusOK {
			t.Errorf("%s: got %d %s, want 200", c.path, got.status, got.body)
		}
	}
}

func TestHeadExecutes(t *testing.T) {
	s := filled(t)
	got := do(t, s, call{method: "HEAD", path: "/incr/n"})
	if got.status != http.StatusOK || got.body != "" {
		t.Errorf("HEAD: got %d %q, want 200 and no body", got.status, got.body)
	}
	if v, err := s.Exec("GET", "n"); v != "6" || err != nil {
		t.Errorf("GET after the HEAD: %v, %v, want 6", v, err)
	}
}

// TestRealRedisBehind sends the same requests to both databases.
func TestRealRedisBehind(t *testing.T) {
	requests := []call{
		{path: "/", body: `["SET","a","b","EX","100"]`},
		{body: `["BITFIELD","f","SET","u8","#0","200","OVERFLOW","FAIL","INCRBY","u8","#0","100"]`},
		{path: "/pipeline", body: `[["GET","f"],["LPUSH","a","x"],["NOPE"],["GET","none"]]`},
		{path: "/multi-exec", body: `[["INCR","n"],["INCR","a"],["BITCOUNT","f","0","3","BIT"]]`},
		{path: "/multi-exec", body: `[["INCR","n"],["GET"]]`},
		{path: "/", body: `["GET","n"]`},
		{path: "/", body: `["EVAL","return {1,redis.call('GET',KEYS[1]),'x'}","1","a"]`},
		{path: "/setrange/r/2", body: "\xff\x00"},
		{path: "/get/r", method: "GET", header: header("Upstash-Encoding", "base64")},
	}
	ours, real := NewServer(t), NewServer(t, withTestRedis(t))
	for _, c := range requests {
		a, b := do(t, ours, c), do(t, real, c)
		if fmt.Sprint(a.status, a.body) != fmt.Sprint(b.status, b.body) {
			t.Errorf("%s %s:\n ours  %d %s\n redis %d %s", c.path, c.body, a.status, a.body, b.status, b.body)
		}
	}
	if _, err := real.Exec("SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	real.FlushAll()
	if v, err := real.Exec("DBSIZE"); v != int64(0) || err != nil {
		t.Errorf("DBSIZE after FlushAll: %v, %v, want 0", v, err)
	}
}

func TestListensOnAllAddresses(t *testing.T) {
	s := NewServer(t, WithAddr(":0"))
	if got := do(t, s, call{body: `["PING"]`}); !strings.HasPrefix(s.URL, "http://127.0.0.1:") ||
		got.body != `{"result":"PONG"}` {
		t.Errorf("PING of %s: got %s, want PONG from http://127.0.0.1:…", s.URL, got.body)
	}
}

// TestCutRequestIsNotExecuted hangs up in the middle of a body. What has
// arrived is a valid command, but not the intended one.
func TestCutRequestIsNotExecuted(t *testing.T) {
	s := NewServer(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST /incr/n HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: 10\r\n\r\nabc", s.Token)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.Stats().BytesOut > 0 })
	if n := s.Stats(); n.Commands != 0 || n.BytesIn != 3 {
		t.Errorf("%+v, want no command and 3 bytes", n)
	}
}

// TestLostRedis loses the reply to a command. The answer is a 500, because the
// command may have run. The next command gets its own answer.
func TestLostRedis(t *testing.T) {
	for _, c := range []call{
		{body: `["INCR","n"]`},
		{path: "/pipeline", body: `[["INCR","n"],["INCR","n"]]`},
		{path: "/multi-exec", body: `[["INCR","n"]]`},
	} {
		proxy := newCutter(t, testenv.Redis(t), 0)
		s := NewServer(t, WithRedis(proxy.addr))
		proxy.cut.Store("INCR")
		if got := do(t, s, c); got.status != http.StatusInternalServerError {
			t.Errorf("%s: got %d %s, want 500", c.path, got.status, got.body)
		}
		proxy.cut.Store("")
		if got := do(t, s, c); got.status != http.StatusOK {
			t.Errorf("%s, once more: got %d %s, want 200", c.path, got.status, got.body)
		}
	}
}

// cutter is a proxy in front of a Redis. If a certain word is sent on a
// connection, it closes the connection.
type cutter struct {
	addr  string
	cut   atomic.Value  // the word, or ""
	pause time.Duration // before the first byte of a connection gets to Redis
}

func newCutter(t *testing.T, redis string, pause time.Duration) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{addr: l.Addr().String(), pause: pause}
	c.cut.Store("")
	var running sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	running.Go(func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { c.serve(front, redis) })
		}
	})
	return c
}

func (c *cutter) serve(front net.Conn, redis string) {
	defer front.Close()
	time.Sleep(c.pause)
	back, err := net.Dial("tcp", redis)
	if err != nil {
		return
	}
	defer back.Close()
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(front, back); _ = front.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := front.Read(buf)
		if err != nil {
			break
		}
		word := c.cut.Load().(string)
		if word != "" && bytes.Contains(buf[:n], []byte(word)) {
			_ = front.Close() // the reply must not arrive
			_, _ = back.Write(buf[:n])
			break
		}
		if _, err := back.Write(buf[:n]); err != nil {
			break
		}
	}
	_ = back.Close()
	<-done
}

// TestRestartedRedis kills an idle connection, like a restart of Redis. The
// next command still runs.
func TestRestartedRedis(t *testing.T) {
	addr := testenv.Redis(t)
	s := NewServer(t, WithRedis(addr))
	if r := testenv.Ask(t, addr, "CLIENT KILL TYPE normal SKIPME yes"); r != ":1\r\n" {
		t.Errorf("CLIENT KILL: got %q, want 1", r)
	}
	time.Sleep(50 * time.Millisecond) // at least: from then on the connection counts as idle
	wantBody(t, s, call{body: `["INCR","n"]`}, `{"result":1}`)
}

// TestTransactionOverLimit: a command over the limit fails alone. In front of Redis an
// APPEND is measured with the string before the transaction.
func TestTransactionOverLimit(t *testing.T) {
	const tooLarge = `{"error":"` + string(database.ErrRecordTooLarge) + `"}`
	const setRange, appends = `["SETRANGE","k","10","x"]`, `["SET","k","1234567"],["APPEND","k","890"],["APPEND","k","x"]`
	for name, opt := range map[string]func(testing.TB) Option{"memory": inMemory, "redis": withTestRedis} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(t, opt(t), WithMaxRecord(10))
			last := map[string]string{"memory": tooLarge, "redis": `{"result":11}`}[name]
			for _, tt := range []struct{ body, want string }{
				{`["INCR","n"],` + setRange + `,["INCR","n"]`, `{"result":1},` + tooLarge + `,{"result":2}`},
				{appends, `{"result":"OK"},{"result":10},` + last},
				{setRange, tooLarge},
			} {
				got := do(t, s, call{path: "/multi-exec", body: "[" + tt.body + "]"})
				if got.body != "["+tt.want+"]" || got.status != http.StatusOK {
					t.Errorf("%s: %d %s, want %s", tt.body, got.status, got.body, tt.want)
				}
			}
		})
	}
}

func TestStats(t *testing.T) {
	s := NewServer(t)
	body := `[["SET","a","1"],["INCR","a"],["NOPE"],["LPUSH","a","x"]]`
	got := do(t, s, call{path: "/pipeline", body: body})
	do(t, s, call{path: "/", body: "x", token: "-"})
	refusal := `{"error":"` + textUnauthorized + `"}`
	want := Stats{
		Requests: 2, Commands: 3, Billed: 3,
		BytesIn: int64(len(body)), BytesOut: int64(len(got.body) + len(refusal)),
	}
	if s.Stats() != want {
		t.Errorf("got %+v, want %+v", s.Stats(), want)
	}
	s.ResetStats()
	if s.Stats() != (Stats{}) {
		t.Errorf("Stats after ResetStats: %+v, want zeros", s.Stats())
	}
	if _, err := s.Exec("GET", "a"); err != nil || s.Stats() != (Stats{}) {
		t.Errorf("Stats after an Exec: %+v, %v, want zeros", s.Stats(), err)
	}
	do(t, s, call{path: "/multi-exec", body: `[["INCR","a"],["EXPIRE","a","9","NX"]]`})
	if n := s.Stats().Commands; n != 2 {
		t.Errorf("Stats.Commands after a transaction of two: %d, want 2", n)
	}
}

// wantPanic calls f, which is a wrong use of a Server without a test.
func wantPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
			t.Errorf("panics with %q, want %q", text, want)
		}
	}()
	f()
}

func TestWrongUseEndsTheTest(t *testing.T) {
	s, err := Start(withTestRedis(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantPanic(t, "a real Redis cannot be fast-forwarded", func() { s.FastForward(time.Second) })
	wantPanic(t, "a real Redis has no regions", func() { s.SetReplicaLag(1) })
	wantPanic(t, "set its maxmemory", func() { s.SetFull(true) })
	wantPanic(t, `there is no region "none"`, func() { s.RegionURL("none") })
	if _, err := s.Exec("PING"); err != nil { // no lock was left behind
		t.Error(err)
	}
}

func TestUseAfterTheEndSaysSo(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	s.db = &faulty{DB: s.db, broken: tornEngine}
	wantPanic(t, string(tornEngine), s.FlushAll)
	s.Close()
	wantPanic(t, "the server is closed", s.FlushAll)
	wantPanic(t, "the server is closed", func() { s.FastForward(time.Second) })
	wantPanic(t, "the server is closed", func() { s.SetReplicaLag(1) })
	wantPanic(t, "the server is closed", s.CatchUp)
	if _, err := s.Exec("KEYS", "*"); err == nil {
		t.Error("Exec of a closed server: no error, want one")
	}
}

func TestStartReportsErrors(t *testing.T) {
	for _, tt := range []struct {
		want string
		opts []Option
	}{
		{"listening on 256.0.0.1:x", []Option{WithAddr("256.0.0.1:x")}},
		{"no Redis at 127.0.0.1:1", []Option{WithRedis("127.0.0.1:1")}},
		{"WithRedis: the address is empty: use host:port", []Option{WithRedis("")}},
		{"WithTimeout: use", []Option{WithTimeout(0)}},
		{"WithMaxRequest: use", []Option{WithMaxRequest(-1)}},
		{"WithMaxRecord: use", []Option{WithMaxRecord(-1)}},
		{"a region's name is missing or taken: \"a\"", []Option{WithRegions(Region{Name: "a"}, Region{Name: "a"})}},
		{"a region's name is missing", []Option{WithRegions(Region{})}},
		{"a real Redis has no regions", []Option{WithRegions(Region{Name: "a"})}},
	} {
		t.Run(tt.want, func(t *testing.T) {
			if strings.HasPrefix(tt.want, "a real Redis") {
				tt.opts = append(tt.opts, withTestRedis(t))
			}
			s, err := Start(tt.opts...)
			if err == nil {
				s.Close()
			}
			if text := fmt.Sprint(err); !strings.HasPrefix(text, "upstashtest: ") || !strings.Contains(text, tt.want) {
				t.Errorf("got %s, want an error of upstashtest with %q", text, tt.want)
			}
		})
	}
}
