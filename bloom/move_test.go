package bloom_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// What the tests of Load, Snapshot, Replace and Union share.

// mails is a sequence of e-mail addresses, from and up to, but without, to.
func mails(from, to int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := from; i < to; i++ {
			if !yield(mail(i)) {
				return
			}
		}
	}
}

func mail(i int) string { return fmt.Sprintf("user-%d@example.com", i) }

// middling is a filter of 13 KB.
func middling() bloom.Config { return bloom.Config{Capacity: 10_000, FPRate: 0.01} }

// inParts has a 13 KB filter travel in 7 parts, one after another.
func inParts(cfg bloom.Config) (bloom.Config, bloom.MoveOption) {
	cfg.BatchParallel = 1
	return cfg, bloom.MovePartBytes(2000)
}

// afterCommand makes a client that calls f once, after the nth attempt at a
// command.
func afterCommand(s *upstashtest.Server, name string, n int64, f func()) *upstash.Client {
	var seen atomic.Int64
	return impatient(s, upstash.WithObserver(func(_ context.Context, e upstash.Event) {
		if e.Command == name && seen.Add(1) == n {
			f()
		}
	}))
}

// handleAt is handle for another key.
func handleAt(t *testing.T, c *upstash.Client, key string, cfg bloom.Config) *bloom.Filter {
	t.Helper()
	f, err := bloom.New(c, key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// storedAt is the string at another key.
func storedAt(t *testing.T, s *upstashtest.Server, key string) string {
	t.Helper()
	v, _ := do(t, s, "GET", key).(string)
	return v
}

// ownWords is bits 64 to 127, which belong to the key.
func ownWords(t *testing.T, s string) string {
	t.Helper()
	if len(s) < 16 {
		t.Fatalf("a string of %d bytes has no header", len(s))
	}
	return s[8:16]
}

// withoutOwn is a filter's string without what belongs to the key.
func withoutOwn(t *testing.T, s string) string {
	return s[:8] + s[8+len(ownWords(t, s)):]
}

// isSettled reports bit 127, and birth the number before it.
func isSettled(t *testing.T, s string) bool { return ownWords(t, s)[7]&1 == 1 }

func birthOf(t *testing.T, s string) string { return ownWords(t, s)[:7] }

// wantScratchExpires wants every key of the database but the filters to have a
// TTL.
func wantScratchExpires(t *testing.T, s *upstashtest.Server, filters ...string) {
	t.Helper()
	keys, _ := do(t, s, "KEYS", "*").([]any)
next:
	for _, k := range keys {
		name := fmt.Sprint(k)
		for _, f := range filters {
			if name == f {
				continue next
			}
		}
		if !strings.Contains(name, ":load:") {
			t.Errorf("the key %q is left behind", name)
		}
		if n := do(t, s, "PTTL", name).(int64); n <= 0 || time.Duration(n)*time.Millisecond > time.Hour {
			t.Errorf("the key %q has a TTL of %d ms", name, n)
		}
	}
}

// wantNoScratch wants nothing but the filters to be left.
func wantNoScratch(t *testing.T, s *upstashtest.Server, filters int) {
	t.Helper()
	if keys, _ := do(t, s, "KEYS", "*").([]any); len(keys) != filters {
		t.Errorf("%d keys are left, want %d: %v", len(keys), filters, keys)
	}
}

// wantMails looks all mails of a range up.
func wantMails(t *testing.T, f *bloom.Filter, from, to int) {
	t.Helper()
	var items []string
	for m := range mails(from, to) {
		items = append(items, m)
	}
	found, err := f.ExistsAll(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(found); n != to-from {
		t.Errorf("%d of %d items are found", n, to-from)
	}
}

// A part of unknown outcome is a key of its own: the filter is as it was.
func TestLoadThatLosesAPartIsSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, once(s), middling())
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	if _, err := f.Load(t.Context(), mails(0, 9)); err == nil || !upstash.SafeToRetry(err) {
		t.Errorf("Load: %v, want an error that is safe to retry", err)
	}
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	if err := f.Replace(t.Context(), localOf(f, 0, 9)); err == nil || !upstash.SafeToRetry(err) {
		t.Errorf("Replace: %v, want an error that is safe to retry", err)
	}
}
