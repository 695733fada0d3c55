package upstashtest

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// panicking is a database whose engine panics at PING, with its lock held.
type panicking struct {
	database.DB
	broken database.Lost
}

const tornEngine = database.Lost("ERR the database is lost: PING made the engine panic: torn")

func (p *panicking) Do(args []string) database.Reply {
	if args[0] == "PING" {
		p.broken = tornEngine
	}
	if p.broken != "" {
		return p.broken
	}
	return p.DB.Do(args)
}

func (p *panicking) Multi(cmds [][]string) database.Reply {
	if p.broken != "" {
		return p.broken
	}
	return p.DB.Multi(cmds)
}

func (p *panicking) Broken() error {
	if p.broken == "" {
		return nil
	}
	return p.broken
}

// TestLostDatabase checks a server whose engine has panicked. It answers 500
// from then on, and fails its test once.
func TestLostDatabase(t *testing.T) {
	fake := faketest.Run(func(tb testing.TB) {
		s := NewServer(tb)
		s.db = &panicking{DB: s.db}
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

// TestHarmlessCommands runs commands that could make the engine panic with its
// lock held.
func TestHarmlessCommands(t *testing.T) {
	s := NewServer(t)
	for _, line := range []string{
		"SADD a x", "SADD b y", "SINTERSTORE d a b", "SADD d z", "DEL d", "SDIFFSTORE d a a",
		"SRANDMEMBER d", "SSCAN a -1", "ZADD z 1 m", "ZSCAN z -1", "HSET h f v", "HSCAN h -1",
		"HRANDFIELD h -9223372036854775808", "ZRANDMEMBER z -9223372036854775808", "KEYS [^",
		"RPUSH l x", "LPOS l x COUNT 9223372036854775807", "XADD s 1-1 f v", "XTRIM s MAXLEN -1",
		"XTRIM s MINID =", "HEXPIRE h 9 FIELDS 9223372036854775807 f", "HEXPIRE h 9 FIELDS 1 f FIELDS",
		"INCRBYFLOAT n 1e1000000000", "HINCRBYFLOAT h n 1e1000000000",
	} {
		body := `["` + strings.Join(strings.Fields(line), `","`) + `"]`
		if got := do(t, s, call{body: body}); got.status >= http.StatusInternalServerError {
			t.Errorf("%s: got %d %s, want a status below 500", line, got.status, got.body)
		}
	}
	if v := exec(t, s, "EXISTS", "d"); v != int64(0) {
		t.Errorf("EXISTS of an empty set: %v, want 0", v)
	}
}

// stuck is a database whose PING does not end, even if interrupted.
type stuck struct {
	database.DB
	release chan struct{}
}

func (s *stuck) Do(args []string) database.Reply {
	if args[0] == "PING" {
		<-s.release
	}
	return s.DB.Do(args)
}

// TestCloseGivesUp closes a server while a command does not end.
func TestCloseGivesUp(t *testing.T) {
	release := make(chan struct{})
	over := make(chan struct{})
	fake := faketest.Run(func(tb testing.TB) {
		s := NewServer(tb)
		s.cfg.closeLimit = 20 * time.Millisecond
		s.db = &stuck{DB: s.db, release: release}
		go func() {
			defer close(over)
			_, _ = s.Exec("PING")
		}()
		waitFor(t, func() bool { return len(s.turn) == 1 })
	})
	close(release)
	<-over
	if len(fake.Failures) != 1 || !strings.Contains(fake.Failures[0], "still runs after 20ms") {
		t.Errorf("the test is told %q, want one failure: still runs after 20ms", fake.Failures)
	}
}
