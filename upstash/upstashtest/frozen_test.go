package upstashtest

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// endless is a script that never ends.
const endless = `["EVAL","while true do end","0"]`

// quickToKill starts a Redis in which a script can be killed almost at once.
// The default is five seconds.
func quickToKill(t *testing.T) Option {
	t.Helper()
	addr := testenv.Redis(t)
	db, err := database.DialRedis(addr, database.Limits{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if r := db.Do([]string{"CONFIG", "SET", "busy-reply-threshold", "20"}); r != database.Status("OK") {
		t.Fatalf("CONFIG SET busy-reply-threshold: got %v, want OK", r)
	}
	return WithRedis(addr)
}

// inMemory is the default backend.
func inMemory(*testing.T) Option { return func(*config) {} }

// TestEndlessScript runs an endless script on both backends while other
// requests wait. Each request gets an answer, and afterwards the database works
// again.
func TestEndlessScript(t *testing.T) {
	for name, opt := range map[string]func(*testing.T) Option{"memory": inMemory, "redis": quickToKill} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(t, opt(t), WithTimeout(200*time.Millisecond))
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
		})
	}
}

// TestCloseEndsAScript would hang if Close waited for the script, or for the
// requests behind it.
func TestCloseEndsAScript(t *testing.T) {
	for name, opt := range map[string]func(*testing.T) Option{"memory": inMemory, "redis": quickToKill} {
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
	if v := exec(t, s, "EXISTS", "k"); v != int64(0) {
		t.Errorf("EXISTS: %v, want 0", v)
	}
}
