package upstashtest

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// endless is a script that ends for no one.
const endless = `["EVAL","while true do end","0"]`

// quickToKill is a Redis that lets a script be killed at once, not after the
// five seconds of its default.
func quickToKill(t *testing.T) Option {
	t.Helper()
	addr := testenv.Redis(t)
	db, err := database.DialRedis(addr, database.Limits{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if r := db.Do([]string{"CONFIG", "SET", "busy-reply-threshold", "20"}); r != database.Status("OK") {
		t.Fatal(r)
	}
	return WithRedis(addr)
}

// inMemory is the default.
func inMemory(*testing.T) Option { return func(*config) {} }

// TestEndlessScript runs one on both backends, with others that wait: each has
// its answer in the end, and the database works again.
func TestEndlessScript(t *testing.T) {
	for name, opt := range map[string]func(*testing.T) Option{"memory": inMemory, "redis": quickToKill} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(t, opt(t), WithTimeout(200*time.Millisecond))
			var running sync.WaitGroup
			running.Go(func() {
				if got := do(t, s, call{body: endless}); got.status != http.StatusInternalServerError {
					t.Errorf("%d %s", got.status, got.body)
				}
			})
			waitFor(t, func() bool { return len(s.turn) == 1 })
			for range 4 {
				running.Go(func() {
					do(t, s, call{body: `["INCR","n"]`}) // some answer comes
				})
			}
			running.Wait()
			waitFor(t, func() bool { return do(t, s, call{body: `["PING"]`}).status == http.StatusOK })
		})
	}
}

// TestCloseEndsAScript would hang if Close waited for the script, or for what
// waits for it.
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
				t.Error("the database answers")
			}
		})
	}
}

// TestLimitsHoldInScripts has a script ask for the longest string there is.
func TestLimitsHoldInScripts(t *testing.T) {
	s := NewServer(t, WithMaxRecord(1000))
	for _, command := range []string{
		`'SETBIT','k','4294967295','1'`, `'SETRANGE','k','1000','x'`,
		`'BITFIELD','k','SET','u8','#1000','1'`, `'SET','k',string.rep('x',1001)`,
	} {
		got := do(t, s, call{body: `["EVAL","return redis.call(` + command + `)","1","k"]`})
		if !strings.Contains(got.body, "ERR max single record size exceeded") {
			t.Errorf("%s: %s", command, got.body)
		}
	}
	if v := exec(t, s, "EXISTS", "k"); v != int64(0) {
		t.Error("the key was made")
	}
}
