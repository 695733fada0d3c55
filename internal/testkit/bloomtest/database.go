package bloomtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Do runs a command directly on the database, without the client.
func Do(t *testing.T, s *upstashtest.Server, args ...string) any {
	t.Helper()
	v, err := s.Exec(args...)
	if err != nil {
		t.Fatalf("%v: %v", args[0], err)
	}
	return v
}

// WantNoKey fails if the database has the key.
func WantNoKey(t *testing.T, s *upstashtest.Server, key string) {
	t.Helper()
	if n := Do(t, s, "EXISTS", key); n != int64(0) {
		t.Errorf("there is a key %q, want none", key)
	}
}

// Stored returns the string at Key, or "" if there is none.
func Stored(t *testing.T, s *upstashtest.Server) string {
	t.Helper()
	return StoredAt(t, s, Key)
}

// StoredAt returns the string at another key, or "".
func StoredAt(t *testing.T, s *upstashtest.Server, key string) string {
	t.Helper()
	v, _ := Do(t, s, "GET", key).(string)
	return v
}

// PTTL returns the remaining time of Key, -1 if it has no TTL, and -2 if there
// is no key.
func PTTL(t *testing.T, s *upstashtest.Server) time.Duration {
	t.Helper()
	n := Do(t, s, "PTTL", Key).(int64)
	if n < 0 {
		return time.Duration(n)
	}
	return time.Duration(n) * time.Millisecond
}

// WantTTL checks the TTL of Key: this one, or up to a minute less.
func WantTTL(t *testing.T, s *upstashtest.Server, want time.Duration) {
	t.Helper()
	if got := PTTL(t, s); got <= 0 || !IsLeft(got, want) {
		t.Errorf("TTL %v, want %v", got, want)
	}
}

// began is when the tests began: none of their times to live has run for longer.
var began = time.Now()

// IsLeft reports whether got may be left of a TTL that was want. In a bubble, in
// which no time passes for the database, it may have run for a minute.
func IsLeft(got, want time.Duration) bool {
	return got <= want && got >= want-max(time.Since(began), time.Minute)
}

// WantNoTTL wants Key to be there, without a TTL.
func WantNoTTL(t *testing.T, s *upstashtest.Server) {
	t.Helper()
	if got := PTTL(t, s); got != -1 {
		t.Errorf("TTL %v, want none", got)
	}
}

// Settled reports whether bit 127 of the filter at Key is set: its TTL was set,
// or its user decided.
func Settled(t *testing.T, s *upstashtest.Server) bool {
	t.Helper()
	return Do(t, s, "GETBIT", Key, "127") == int64(1)
}

// FillUp makes the Redis at addr refuse every command that may take memory.
func FillUp(t *testing.T, addr string) {
	t.Helper()
	if reply := testenv.Ask(t, addr, "CONFIG SET maxmemory 1"); reply != "+OK\r\n" {
		t.Fatalf("CONFIG SET: got %q, want +OK", reply)
	}
}

// OwnWords returns bits 64 to 127 of a filter's string, which belong to the key.
func OwnWords(t *testing.T, s string) string {
	t.Helper()
	if len(s) < 16 {
		t.Fatalf("the filter's string has %d bytes, want 16 for its first words", len(s))
	}
	return s[8:16]
}

// WithoutOwn returns a filter's string without the key's own bits.
func WithoutOwn(t *testing.T, s string) string {
	return s[:8] + s[8+len(OwnWords(t, s)):]
}

// IsSettled reports whether bit 127 of a filter's string is set.
func IsSettled(t *testing.T, s string) bool { return OwnWords(t, s)[7]&1 == 1 }

// BirthOf returns the birth number in a filter's string.
func BirthOf(t *testing.T, s string) string { return OwnWords(t, s)[:7] }

// WantScratchExpires fails if a key of the database, except the filters, has no
// TTL.
func WantScratchExpires(t *testing.T, s *upstashtest.Server, filters ...string) {
	t.Helper()
	keys, _ := Do(t, s, "KEYS", "*").([]any)
next:
	for _, k := range keys {
		name := fmt.Sprint(k)
		for _, f := range filters {
			if name == f {
				continue next
			}
		}
		if !strings.Contains(name, ":load:") && !strings.Contains(name, ":save:") {
			t.Errorf("the key %q is left behind, want scratch keys alone", name)
		}
		if n := Do(t, s, "PTTL", name).(int64); n <= 0 || time.Duration(n)*time.Millisecond > time.Hour {
			t.Errorf("PTTL of the scratch key %q: %d ms, want 1 ms to 1 h", name, n)
		}
	}
}

// WantNoScratch fails if more than the filters is left.
func WantNoScratch(t *testing.T, s *upstashtest.Server, filters int) {
	t.Helper()
	if keys, _ := Do(t, s, "KEYS", "*").([]any); len(keys) != filters {
		t.Errorf("%d keys are left, want %d: %v", len(keys), filters, keys)
	}
}
