package bloom_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A clock stands still until a test moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// freeze moves the wall clock alone, as if the process had been suspended.
func (c *clock) freeze(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Round(0).Add(d)
}

func mirror(t testing.TB, f *bloom.Filter, cfg bloom.MirrorConfig) (*bloom.Mirror, *clock) {
	t.Helper()
	m, err := bloom.NewMirror(f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := newClock()
	m.SetClock(c.Now)
	return m, c
}

// What a look-up or an Add answers, and from where: a Mirror's copy, or so many
// requests.
const (
	present, absent                       = true, false
	isNew, isSeen                         = true, false
	fromCopy, inOneRequest, inTwoRequests = 0, 1, 2
)

// wantLookUp checks what a look-up answers and how many requests it takes.
func wantLookUp(t *testing.T, s *upstashtest.Server, m *bloom.Mirror, item string,
	want bool, requests int64,
) {
	t.Helper()
	before := s.Stats().Requests
	got, err := m.Exists(t.Context(), item)
	if err != nil || got != want {
		t.Errorf("Exists(%s) is %v, %v, want %v", item, got, err, want)
	}
	if n := s.Stats().Requests - before; n != requests {
		t.Errorf("Exists(%s): %d requests, want %d", item, n, requests)
	}
}

// By default a "yes" is remembered for MaxTrust. A "no" is always the server's.
func TestMirrorLearnsYesFromAnswers(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a} {
			s.FlushAll()
			cfg := bloom.Config{Capacity: 10_000, FPRate: 1e-6, Scheme: scheme}
			f := handle(t, s.Client(), cfg)
			mustAdd(t, f, "a", "b")
			m, c := mirror(t, f, bloom.MirrorConfig{})
			wantLookUp(t, s, m, "a", present, inOneRequest)
			wantLookUp(t, s, m, "a", present, fromCopy)
			wantLookUp(t, s, m, "x", absent, inOneRequest)
			wantLookUp(t, s, m, "x", absent, inOneRequest)
			c.pass(time.Minute)
			wantLookUp(t, s, m, "b", present, inOneRequest) // a proof: the filter is the same
			c.pass(time.Minute)
			wantLookUp(t, s, m, "a", present, fromCopy)
			c.pass(time.Nanosecond)
			wantLookUp(t, s, m, "a", present, inOneRequest)
			c.pass(-time.Second) // the clock is set back
			wantLookUp(t, s, m, "a", present, inOneRequest)
		}
	})
}

func TestMirrorAdd(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		m, c := mirror(t, f, bloom.MirrorConfig{MaxTrust: time.Hour})
		wantAdd := func(add func(context.Context, string) (bool, error), item string, want bool, requests int64) {
			t.Helper()
			before := s.Stats().Requests
			got, err := add(t.Context(), item)
			if err != nil || got != want || s.Stats().Requests-before != requests {
				t.Errorf("Add(%s) is %v, %v with %d requests, want %v with %d", item, got, err,
					s.Stats().Requests-before, want, requests)
			}
		}
		wantAdd(m.Add, "a", isNew, inOneRequest) // makes the filter
		wantAdd(m.Add, "a", isSeen, fromCopy)
		wantAdd(m.AddThrough, "a", isSeen, inOneRequest)
		wantLookUp(t, s, m, "a", present, fromCopy)
		mustAdd(t, f, "b")
		wantAdd(m.Add, "b", isSeen, inOneRequest)
		wantAdd(m.Add, "b", isSeen, fromCopy)
		c.pass(2 * time.Hour)
		wantAdd(m.Add, "b", isSeen, inOneRequest)
	})
}

// If a filter is deleted and made again, the old one's items are found until
// MaxTrust, and Add reports them as seen. AddThrough does not, and the first
// answer drops the copy.
func TestMirrorOfAFilterMadeAgain(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a", "b", "c")
		m, _ := mirror(t, f, bloom.MirrorConfig{})
		for _, item := range []string{"a", "b", "c"} {
			wantLookUp(t, s, m, item, present, inOneRequest)
		}
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantLookUp(t, s, m, "a", present, fromCopy)
		mustAdd(t, f, "new")
		if added, err := m.Add(t.Context(), "b"); added || err != nil {
			t.Errorf("Add within MaxTrust: %v, %v, want false", added, err)
		}
		if added, err := m.AddThrough(t.Context(), "c"); !added || err != nil {
			t.Errorf("AddThrough: %v, %v, want new", added, err)
		}
		wantLookUp(t, s, m, "c", present, fromCopy)
		wantLookUp(t, s, m, "a", absent, inOneRequest)
		wantLookUp(t, s, m, "new", present, inOneRequest)

		// The filter is gone. Calls fail, and the copy forgets its items.
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Exists(t.Context(), "x"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Exists of a missing filter: %v, want ErrNotFound", err)
		}
		if _, err := m.Exists(t.Context(), "c"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("an item of a filter that is known to be gone: %v, want ErrNotFound", err)
		}
		// Another filter takes its place.
		mustAdd(t, f, "c")
		wantLookUp(t, s, m, "c", present, inOneRequest)
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, handle(t, s.Client(), bloom.Config{Capacity: 55, FPRate: 0.01}), "c")
		var mismatch *bloom.MismatchError
		if _, err := m.Exists(t.Context(), "x"); !errors.As(err, &mismatch) {
			t.Errorf("Exists of another filter: %v, want a MismatchError", err)
		}
		if _, err := m.Exists(t.Context(), "c"); !errors.As(err, &mismatch) {
			t.Errorf("an item, once another filter is known: %v, want a MismatchError", err)
		}
	})
}

func stats(t *testing.T, f *bloom.Filter) bloom.Stats {
	t.Helper()
	s, err := f.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMirrorExistsAllAndAddAll(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		m, c := mirror(t, f, bloom.MirrorConfig{MaxTrust: time.Minute})
		check := func(what string, got []bool, err error, want string, requests int64) {
			t.Helper()
			text := ""
			for _, b := range got {
				text += map[bool]string{true: "1", false: "0"}[b]
			}
			if err != nil || text != want || s.Stats().Requests != requests {
				t.Errorf("%s: %s, %v, %d requests, want %s, %d",
					what, text, err, s.Stats().Requests, want, requests)
			}
			s.ResetStats()
		}
		s.ResetStats()
		got, err := m.AddAll(t.Context(), []string{"a", "b", "a"})
		check("AddAll", got, err, "110", inOneRequest)
		got, err = m.AddAll(t.Context(), []string{"a", "c", "b"})
		check("AddAll again", got, err, "010", inOneRequest)
		got, err = m.AddAll(t.Context(), []string{"a", "b"})
		check("AddAll of seen items", got, err, "00", fromCopy)
		got, err = m.ExistsAll(t.Context(), []string{"x", "a", "y", "c"})
		check("ExistsAll", got, err, "0101", inOneRequest)
		got, err = m.ExistsAll(t.Context(), []string{"c", "b"})
		check("ExistsAll of learned items", got, err, "11", fromCopy)
		got, err = m.ExistsAll(t.Context(), nil)
		check("ExistsAll of nothing", got, err, "", fromCopy)
		got, err = m.AddAll(t.Context(), nil)
		check("AddAll of nothing", got, err, "", fromCopy)
		c.pass(time.Hour)
		got, err = m.ExistsAll(t.Context(), []string{"c", "x", "b"})
		check("ExistsAll after MaxTrust", got, err, "101", inOneRequest)

		stale, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
		got, err = stale.ExistsAll(t.Context(), []string{"c", "x", "b"})
		check("ExistsAll with MaxStale", got, err, "101", inTwoRequests)
		got, err = stale.ExistsAll(t.Context(), []string{"y", "a"})
		check("ExistsAll from the copy", got, err, "01", fromCopy)
	})
}

// roomy is a filter of 128 KiB, in which a test meets no false positive.
func roomy() bloom.Config { return bloom.Config{Bits: 53 * 19785, Hashes: 8} }

func TestMirrorStatsText(t *testing.T) {
	s := bloom.MirrorStats{
		Hits: 1200, Asked: 3, Saved: 40, Refreshes: 2, Failures: 1, Bytes: 6742, SetBits: 12, Copied: true,
		Age: 39130606,
	}
	const want = `items            1,200 answered by the copy, 3 by the server
calls            40 without a request
refreshes        2, and 1 failed
copy             6,742 bytes, 12 bits set, 39ms old`
	if got := s.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if s.Copied = false; !strings.HasSuffix(s.String(), "12 bits set, not filled yet") {
		t.Errorf("without a copy: %s", s)
	}
}
