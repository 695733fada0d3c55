package upstashtest

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// endless is a script that never ends.
const endless = `["EVAL","while true do end","0"]`

// killable starts a Redis in which a script can be ended after so many
// milliseconds, by default 5,000.
func killable(tb testing.TB, after string) (opt Option, addr string) {
	tb.Helper()
	addr = testenv.Redis(tb)
	if r := testenv.Ask(tb, addr, "CONFIG SET busy-reply-threshold "+after); r != "+OK\r\n" {
		tb.Fatalf("CONFIG SET busy-reply-threshold: got %q, want OK", r)
	}
	return WithRedis(addr), addr
}

func quickToKill(tb testing.TB) Option {
	tb.Helper()
	opt, _ := killable(tb, "20")
	return opt
}

// inMemory is the default backend.
func inMemory(testing.TB) Option { return func(*config) {} }

// TestEndlessScript runs an endless script on both backends while other
// requests wait. Each request gets an answer, and afterwards the database works
// again. A Redis that would let nobody end a script for an hour is told to, and
// told back.
func TestEndlessScript(t *testing.T) {
	const hour = "3600000"
	slow, addr := killable(t, hour)
	for name, opt := range map[string]Option{"memory": inMemory(t), "redis": quickToKill(t), "slow redis": slow} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(t, opt, WithTimeout(200*time.Millisecond))
			var running sync.WaitGroup
			var over atomic.Bool // on a slow machine this may be before the others begin
			running.Go(func() {
				defer over.Store(true)
				got, err := try(t, s, call{body: endless})
				if err != nil || got.status != http.StatusInternalServerError {
					t.Errorf("an endless script: got %d %s, %v, want status 500", got.status, got.body, err)
				}
			})
			waitFor(t, func() bool { return len(s.turn) == 1 || over.Load() })
			for range 4 {
				running.Go(func() {
					if _, err := try(t, s, call{body: `["INCR","n"]`}); err != nil {
						t.Errorf("INCR beside an endless script: %v, want an answer", err)
					}
				})
			}
			running.Wait()
			waitFor(t, func() bool { return do(t, s, call{body: `["PING"]`}).status == http.StatusOK })
			if after := testenv.Ask(t, addr, "CONFIG GET busy-reply-threshold"); !strings.Contains(after, hour) {
				t.Errorf("the slow Redis is now set to %q", after)
			}
		})
	}
}

// TestCloseEndsAScript would hang if Close waited for the script, or for the
// requests behind it.
func TestCloseEndsAScript(t *testing.T) {
	for name, opt := range map[string]func(testing.TB) Option{"memory": inMemory, "redis": quickToKill} {
		t.Run(name, func(t *testing.T) {
			s, err := Start(opt(t), WithTimeout(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			var running sync.WaitGroup
			running.Go(func() { _, _ = try(t, s, call{body: endless}) })
			waitFor(t, func() bool { return len(s.turn) == 1 })
			running.Go(func() { _, _ = s.Exec("PING") })
			running.Go(func() { _, _ = try(t, s, call{body: `["PING"]`}) })
			s.Close()
			running.Wait()
			if _, err := s.Exec("PING"); err == nil {
				t.Error("Exec after an endless script: no error, want one")
			}
		})
	}
}

// TestSlowStartOfRedis limits commands to less time than Redis needs for its
// first answer, which is not to a client's command.
func TestSlowStartOfRedis(t *testing.T) {
	const limit = 100 * time.Millisecond
	proxy := newCutter(t, testenv.Redis(t), 3*limit)
	s, err := Start(WithRedis(proxy.addr), WithTimeout(limit))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// TestLimitsHoldInScripts has scripts exceed the limit of a record.
func TestLimitsHoldInScripts(t *testing.T) {
	s := NewServer(t, WithMaxRecord(1000))
	for _, command := range []string{
		`'SETBIT','k','4294967295','1'`, `'SETRANGE','k','1000','x'`,
		`'BITFIELD','k','SET','u8','#1000','1'`, `'SET','k',string.rep('x',1001)`,
	} {
		got := do(t, s, call{body: `["EVAL","return redis.call(` + command + `)","1","k"]`})
		if !strings.Contains(got.body, "ERR max single record size exceeded") {
			t.Errorf("%s: got %s, want the error of a record that is too large", command, got.body)
		}
	}
	wantExec(t, s, int64(0), "EXISTS", "k")
}

const tornEngine = database.Lost("ERR the database is lost: PING made the engine panic: torn")

// faulty is a database that does something else at a PING.
type faulty struct {
	database.DB
	ping   func()
	broken database.Lost // all that it answers, if it is not ""
}

func (f *faulty) Do(args []string) database.Reply {
	if args[0] == "PING" {
		f.ping()
	}
	if f.broken != "" {
		return f.broken
	}
	return f.DB.Do(args)
}

func (f *faulty) Broken() error {
	if f.broken == "" {
		return nil
	}
	return f.broken
}

// TestLostDatabase checks a server whose engine has panicked. It answers 500
// from then on, and fails its test once.
func TestLostDatabase(t *testing.T) {
	fake := faketest.Run(func(tb testing.TB) {
		s := NewServer(tb)
		engine := &faulty{DB: s.db}
		engine.ping = func() { engine.broken = tornEngine }
		s.db = engine
		if got := do(t, s, call{body: `["SET","k","v"]`}); got.status != http.StatusOK {
			t.Errorf("SET before the engine is torn: got %d %s, want 200", got.status, got.body)
		}
		want := `{"error":` + quoted(string(tornEngine)) + "}"
		for _, c := range []call{
			{body: `["PING"]`},
			{body: `["GET","k"]`},
			{path: "/pipeline", body: `[["GET","k"],["GET","k"]]`},
			{path: "/multi-exec", body: `[["GET","k"]]`},
		} {
			if got := do(t, s, c); got.status != http.StatusInternalServerError || got.body != want {
				t.Errorf("%s %s: got %d %s, want 500 %s", c.path, c.body, got.status, got.body, want)
			}
		}
		if _, err := s.Exec("GET", "k"); !errors.Is(err, tornEngine) {
			t.Errorf("Exec: %v, want %v", err, tornEngine)
		}
	})
	if len(fake.Failures) != 1 || !strings.Contains(fake.Failures[0], string(tornEngine)) {
		t.Errorf("the test is told %q, want one failure with %q", fake.Failures, tornEngine)
	}
}

// TestCloseGivesUp closes a server while a command does not end.
func TestCloseGivesUp(t *testing.T) {
	givesUp(t, func(s *Server, release chan struct{}) (run func()) {
		s.db = &faulty{DB: s.db, ping: func() { <-release }}
		return func() { _, _ = s.Exec("PING") }
	}, func(s *Server) bool { return len(s.turn) == 1 })
}

// TestCloseWaitsForRequests closes a server while a request is under way that has
// not come to the database.
func TestCloseWaitsForRequests(t *testing.T) {
	givesUp(t, func(s *Server, release chan struct{}) (run func()) {
		s.InjectFunc(func(int64, RequestInfo) Fault { <-release; return Fault{} })
		return func() { <-goPost(t.Context(), t, s) }
	}, func(s *Server) bool { return s.Stats().BytesIn > 0 })
}

// givesUp begins to run what does not end before its release, and closes the server.
func givesUp(t *testing.T, prepare func(*Server, chan struct{}) (run func()), begun func(*Server) bool) {
	t.Helper()
	release, over := make(chan struct{}), make(chan struct{})
	fake := faketest.Run(func(tb testing.TB) {
		s := NewServer(tb)
		s.cfg.closeLimit = 20 * time.Millisecond
		run := prepare(s, release)
		go func() {
			defer close(over)
			run()
		}()
		waitFor(t, func() bool { return begun(s) })
	})
	close(release)
	<-over
	if len(fake.Failures) != 1 || !strings.Contains(fake.Failures[0], "still runs after 20ms") {
		t.Errorf("the test is told %q, want one failure: still runs after 20ms", fake.Failures)
	}
}
