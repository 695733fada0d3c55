package bloom_test

import (
	"errors"
	"fmt"
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

// freeze lets time pass on the wall clock alone, as it does in a process that
// is suspended.
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

// asks checks what a look-up answers and how many requests it takes.
func asks(t *testing.T, s *upstashtest.Server, m *bloom.Mirror, item string, want bool, requests int64) {
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

func mustAdd(t *testing.T, f *bloom.Filter, items ...string) {
	t.Helper()
	if _, err := f.AddAll(t.Context(), items); err != nil {
		t.Fatal(err)
	}
}

// By default a "yes" is learned from the answer, for MaxTrust; a "no" is always
// the server's.
func TestMirrorLearnsYesFromAnswers(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a} {
			s.FlushAll()
			cfg := bloom.Config{Capacity: 10_000, FPRate: 1e-6, Scheme: scheme}
			f := handle(t, s.Client(), cfg)
			mustAdd(t, f, "a", "b")
			m, c := mirror(t, f, bloom.MirrorConfig{})
			asks(t, s, m, "a", true, 1)
			asks(t, s, m, "a", true, 0)
			asks(t, s, m, "x", false, 1)
			asks(t, s, m, "x", false, 1)
			c.pass(time.Minute)
			asks(t, s, m, "b", true, 1) // which proves that the filter is still the one
			c.pass(time.Minute)
			asks(t, s, m, "a", true, 0)
			c.pass(time.Nanosecond)
			asks(t, s, m, "a", true, 1)
			c.pass(-time.Second) // the clock is set back
			asks(t, s, m, "a", true, 1)
		}
	})
}

func TestMirrorAdd(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		m, c := mirror(t, f, bloom.MirrorConfig{MaxTrust: time.Hour})
		add := func(item string, want bool, requests int64, call func(string) (bool, error)) {
			t.Helper()
			before := s.Stats().Requests
			got, err := call(item)
			if err != nil || got != want || s.Stats().Requests-before != requests {
				t.Errorf("%v, %v with %d requests, want %v with %d", got, err,
					s.Stats().Requests-before, want, requests)
			}
		}
		seen := func(item string) (bool, error) { return m.Add(t.Context(), item) }
		through := func(item string) (bool, error) { return m.AddThrough(t.Context(), item) }
		add("a", true, 1, seen) // makes the filter
		add("a", false, 0, seen)
		add("a", false, 1, through)
		asks(t, s, m, "a", true, 0)
		mustAdd(t, f, "b")
		add("b", false, 1, seen)
		add("b", false, 0, seen)
		c.pass(2 * time.Hour)
		add("b", false, 1, seen)
	})
}

// If a filter is made anew, the old one's items are found within MaxTrust, and
// Add takes them for seen. AddThrough does not, and the first answer drops the
// copy.
func TestMirrorOfAFilterThatWasMadeAnew(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a", "b", "c")
		m, _ := mirror(t, f, bloom.MirrorConfig{})
		for _, item := range []string{"a", "b", "c"} {
			asks(t, s, m, item, true, 1)
		}
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		asks(t, s, m, "a", true, 0)
		mustAdd(t, f, "new")
		if added, err := m.Add(t.Context(), "b"); added || err != nil {
			t.Errorf("Add within MaxTrust: %v, %v", added, err)
		}
		if added, err := m.AddThrough(t.Context(), "c"); !added || err != nil {
			t.Errorf("AddThrough: %v, %v, want new", added, err)
		}
		asks(t, s, m, "c", true, 0)
		asks(t, s, m, "a", false, 1)
		asks(t, s, m, "new", true, 1)

		// The filter is gone: an error, and the copy forgets its items.
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Exists(t.Context(), "x"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Exists of a missing filter: %v", err)
		}
		if _, err := m.Exists(t.Context(), "c"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("an item of a filter that is known to be gone: %v", err)
		}
		// Another filter.
		mustAdd(t, f, "c")
		asks(t, s, m, "c", true, 1)
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, handle(t, s.Client(), bloom.Config{Capacity: 55, FPRate: 0.01}), "c")
		var mismatch *bloom.MismatchError
		if _, err := m.Exists(t.Context(), "x"); !errors.As(err, &mismatch) {
			t.Errorf("Exists of another filter: %v", err)
		}
		if _, err := m.Exists(t.Context(), "c"); !errors.As(err, &mismatch) {
			t.Errorf("an item of a filter that is known to be gone: %v", err)
		}
	})
}

// With MaxStale the copy answers "no" too, until it is too old.
func TestMirrorMaxStale(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		const stale = 10 * time.Second
		f := handle(t, s.Client(), roomy()) // 128 KiB: one part
		mustAdd(t, f, "a")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale, MaxTrust: time.Hour})
		asks(t, s, m, "x", false, 2) // the count, and one part
		asks(t, s, m, "x", false, 0)
		asks(t, s, m, "a", true, 0)
		mustAdd(t, f, "b")
		c.pass(stale)
		asks(t, s, m, "b", false, 0) // added no more than MaxStale ago
		c.pass(1)
		asks(t, s, m, "b", true, 2)
		c.pass(stale + 1)
		asks(t, s, m, "x", false, 1) // nothing changed: the count alone
		c.pass(-1)                   // the clock is set back: too old
		asks(t, s, m, "x", false, 1)
		c.freeze(5 * time.Hour)
		asks(t, s, m, "a", true, 1)
		asks(t, s, m, "x", false, 0)

		// Its own Adds are in the copy, which then has what the server has.
		if added, err := m.Add(t.Context(), "own"); !added || err != nil {
			t.Error(added, err)
		}
		c.pass(stale + 1)
		asks(t, s, m, "x", false, 1)

		st := m.Stats()
		if !st.Copied || st.Age != 0 || st.Refreshes != 6 || st.Failures != 0 || st.Bytes < 128<<10 {
			t.Errorf("%+v", st)
		}
	})
}

// With MissingIsEmpty a missing filter is a state like any other: it answers "no"
// for MaxStale, without a request.
func TestMirrorRemembersAMissingFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		const stale = 10 * time.Second
		cfg := roomy()
		cfg.MissingIsEmpty = true
		f, writer := handle(t, s.Client(), cfg), handle(t, s.Client(), roomy())
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale, MaxTrust: time.Hour})
		asks(t, s, m, "x", false, 1)
		asks(t, s, m, "x", false, 0)
		if st := m.Stats(); !st.Copied || st.Refreshes != 1 || st.Failures != 0 || st.SetBits != 0 {
			t.Errorf("%+v", st)
		}
		mustAdd(t, writer, "a")
		c.pass(stale)
		asks(t, s, m, "a", false, 0) // added no more than MaxStale ago
		c.pass(1)
		asks(t, s, m, "a", true, 2)
		asks(t, s, m, "x", false, 0)

		// It goes away, and the copy's own Add makes it anew.
		if _, err := writer.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.pass(stale + 1)
		asks(t, s, m, "b", false, 1)
		asks(t, s, m, "a", false, 0)
		if added, err := m.Add(t.Context(), "b"); !added || err != nil {
			t.Error(added, err)
		}
		asks(t, s, m, "b", true, 0)
		asks(t, s, m, "a", false, 1)

		// By hand too, and the default mode asks about each "no".
		if _, err := writer.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		d, _ := mirror(t, f, bloom.MirrorConfig{})
		if err := d.Refresh(t.Context()); err != nil {
			t.Errorf("Refresh: %v", err)
		}
		asks(t, s, d, "b", false, 1)

		// Another filter or other data is an error at each look-up.
		do(t, s, "SET", key, "some text that is long enough")
		c.pass(stale + 1)
		for range 2 {
			if _, err := m.Exists(t.Context(), "x"); !errors.Is(err, bloom.ErrNotFilter) {
				t.Errorf("Exists beside other data: %v, want ErrNotFilter", err)
			}
			c.pass(2 * time.Second)
		}
	})
}

// A refresh that finds a filter with another birth number drops the copy of the
// old one and brings the new one.
func TestMirrorRefreshOfANewFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a", "b")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Second})
		asks(t, s, m, "x", false, 2)
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, f, "c", "d") // as many bits
		c.pass(2 * time.Second)
		asks(t, s, m, "x", false, 2)
		asks(t, s, m, "a", false, 0)
		asks(t, s, m, "c", true, 0)

		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Refresh(t.Context()); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Refresh: %v, want ErrNotFound", err)
		}
		if _, err := m.Exists(t.Context(), "c"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Exists: %v, want ErrNotFound", err)
		}
		if st := m.Stats(); st.Copied || st.SetBits != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A filter that was put back from a backup has the same birth number and fewer
// bits. The copy is begun anew.
func TestMirrorOfAFilterFromABackup(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	do(t, s, "COPY", key, "backup")
	mustAdd(t, f, "b", "c")
	m, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Second})
	asks(t, s, m, "b", true, 2)
	do(t, s, "COPY", "backup", key, "REPLACE")
	if err := m.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	asks(t, s, m, "b", false, 0)
	asks(t, s, m, "a", true, 0)
}

// A Refresh by hand serves the default mode too: a "yes" needs no request then,
// and a "no" is the server's.
func TestMirrorRefreshByHand(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), bloom.Config{Capacity: 1_000_000, FPRate: 0.00001}) // two parts
	mustAdd(t, f, numbered("item", 500)...)
	m, _ := mirror(t, f, bloom.MirrorConfig{})
	s.ResetStats()
	if err := m.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.Stats().Requests; n != 3 {
		t.Errorf("%d requests to refresh 3.2 MiB, want 3", n)
	}
	for _, item := range numbered("item", 500) {
		asks(t, s, m, item, true, 0)
	}
	asks(t, s, m, "x", false, 1)
	if got, want := m.Stats().SetBits, stats(t, f).SetBits; got != want {
		t.Errorf("the copy has %d bits set, the filter %d", got, want)
	}
}

func stats(t *testing.T, f *bloom.Filter) bloom.Stats {
	t.Helper()
	s, err := f.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// All calls that find the copy too old wait for one refresh.
func TestMirrorRefreshesOnceForAllCallers(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	m, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
	s.ResetStats()
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			if found, err := m.Exists(t.Context(), fmt.Sprint("x", i)); found || err != nil {
				t.Error(found, err)
			}
			if found, err := m.Exists(t.Context(), "a"); !found || err != nil {
				t.Error(found, err)
			}
		})
	}
	callers.Wait()
	if n := s.Stats().Requests; n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	if st := m.Stats(); st.Hits != 100 || st.Saved != 100 || st.Asked != 0 || st.Refreshes != 1 {
		t.Errorf("%+v", st)
	}
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
		check("AddAll", got, err, "110", 1)
		got, err = m.AddAll(t.Context(), []string{"a", "c", "b"})
		check("AddAll again", got, err, "010", 1)
		got, err = m.AddAll(t.Context(), []string{"a", "b"})
		check("AddAll of seen items", got, err, "00", 0)
		got, err = m.ExistsAll(t.Context(), []string{"x", "a", "y", "c"})
		check("ExistsAll", got, err, "0101", 1)
		got, err = m.ExistsAll(t.Context(), []string{"c", "b"})
		check("ExistsAll of learned items", got, err, "11", 0)
		got, err = m.ExistsAll(t.Context(), nil)
		check("ExistsAll of nothing", got, err, "", 0)
		got, err = m.AddAll(t.Context(), nil)
		check("AddAll of nothing", got, err, "", 0)
		c.pass(time.Hour)
		got, err = m.ExistsAll(t.Context(), []string{"c", "x", "b"})
		check("ExistsAll after MaxTrust", got, err, "101", 1)

		stale, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
		got, err = stale.ExistsAll(t.Context(), []string{"c", "x", "b"})
		check("ExistsAll with MaxStale", got, err, "101", 2)
		got, err = stale.ExistsAll(t.Context(), []string{"y", "a"})
		check("ExistsAll from the copy", got, err, "01", 0)
	})
}

// roomy is a filter of 128 KiB, in which a test meets no false positive.
func roomy() bloom.Config { return bloom.Config{Bits: 53 * 19785, Hashes: 8} }
