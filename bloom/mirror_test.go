package bloom_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
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
	noError(t, err)
	c := newClock()
	m.SetClock(c.Now)
	return m, c
}

// mirrored makes a Mirror of a filter that holds "a".
func mirrored(t *testing.T, cfg bloom.MirrorConfig, opts ...upstash.Option,
) (*upstashtest.Server, *bloom.Filter, *bloom.Mirror, *clock) {
	t.Helper()
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(opts...), roomy())
	mustAdd(t, f, "a")
	m, c := mirror(t, f, cfg)
	return s, f, m, c
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

// wantNew adds an item past the copy, to which it is new.
func wantNew(t *testing.T, m *bloom.Mirror, item string) {
	t.Helper()
	if added, err := m.AddThrough(t.Context(), item); !added || err != nil {
		t.Errorf("AddThrough(%s) = %v, %v, want true", item, added, err)
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
		noError(t, errorOf(f.Delete(t.Context())))
		wantLookUp(t, s, m, "a", present, fromCopy)
		mustAdd(t, f, "new")
		add(t, m, "b", false)
		wantNew(t, m, "c")
		wantLookUp(t, s, m, "c", present, fromCopy)
		wantLookUp(t, s, m, "a", absent, inOneRequest)
		wantLookUp(t, s, m, "new", present, inOneRequest)

		// The filter is gone. Calls fail, and the copy forgets its items.
		noError(t, errorOf(f.Delete(t.Context())))
		wantError(t, errorOf(m.Exists(t.Context(), "x")), bloom.ErrNotFound)
		wantError(t, errorOf(m.Exists(t.Context(), "c")), bloom.ErrNotFound)
		// Another filter takes its place.
		mustAdd(t, f, "c")
		wantLookUp(t, s, m, "c", present, inOneRequest)
		noError(t, errorOf(f.Delete(t.Context())))
		mustAdd(t, handle(t, s.Client(), bloom.Config{Capacity: 55, FPRate: 0.01}), "c")
		wantMismatch(t, errorOf(m.Exists(t.Context(), "x")))
		wantMismatch(t, errorOf(m.Exists(t.Context(), "c")))
	})
}

func stats(t *testing.T, f *bloom.Filter) bloom.Stats {
	t.Helper()
	s, err := f.Stats(t.Context())
	noError(t, err)
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

// A BatchError covers all items. Those answered by the copy are done.
func TestMirrorBatchError(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, once(s), roomy())
	m, _ := mirror(t, f, bloom.MirrorConfig{})
	mustAdd(t, m, "a", "b")
	s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
	got, err := m.ExistsAll(t.Context(), []string{"x", "a", "y", "b"})
	var batch *bloom.BatchError
	if !errors.As(err, &batch) || len(got) != 4 {
		t.Fatalf("ExistsAll = %v, %v, want 4 answers and a BatchError", got, err)
	}
	done, not := bloom.ItemDone, bloom.ItemNotDone
	for i, want := range []bloom.ItemState{not, done, not, done} {
		if batch.Items[i] != want || got[i] != (want == done) {
			t.Errorf("item %d: %v, %v, want %v", i, got[i], batch.Items[i], want)
		}
	}
}

func TestNewMirrorRefuses(t *testing.T) {
	s := upstashtest.NewServer(t)
	big := bloom.Config{Capacity: 100_000_000, FPRate: 0.01}
	bare := bloom.Config{Bits: 1000, Hashes: 7, Scheme: bloom.SchemeXXH3, Layout: bloom.LayoutBare}
	for name, c := range map[string]struct {
		cfg    bloom.Config
		mirror bloom.MirrorConfig
		want   []string
	}{
		"size":   {big, bloom.MirrorConfig{}, []string{"MirrorConfig.MaxBytes", "64.0 MiB", "128.1 MiB"}},
		"a byte": {roomy(), bloom.MirrorConfig{MaxBytes: 131099}, []string{"131099", "131100"}},
		"bare":   {bare, bloom.MirrorConfig{}, []string{"Config.Layout", "bare"}},
		"trust":  {roomy(), bloom.MirrorConfig{MaxTrust: -1}, []string{"MirrorConfig.MaxTrust", "-1ns"}},
		"stale":  {roomy(), bloom.MirrorConfig{MaxStale: -1}, []string{"MirrorConfig.MaxStale", "-1ns"}},
		"copy": {
			roomy(),
			bloom.MirrorConfig{MaxStale: time.Minute, MaxCopy: time.Second},
			[]string{"MirrorConfig.MaxCopy", "1s", "1m0s"},
		},
		"error": {roomy(), bloom.MirrorConfig{StaleIfError: -1}, []string{"MirrorConfig.StaleIfError", "-1ns"}},
		"bytes": {roomy(), bloom.MirrorConfig{MaxBytes: -1}, []string{"MirrorConfig.MaxBytes", "-1"}},
	} {
		_, err := bloom.NewMirror(handle(t, s.Client(), c.cfg), c.mirror)
		var cerr *bloom.ConfigError
		if !errors.As(err, &cerr) {
			t.Errorf("%s: %v, want a ConfigError", name, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
	}
	reader := handle(t, s.ReadOnlyClient(), roomy())
	wantError(t, errorOf(bloom.NewMirror(reader, bloom.MirrorConfig{})), upstash.ErrReadOnly)
	if _, err := bloom.NewMirror(nil, bloom.MirrorConfig{}); err == nil {
		t.Error("a nil Filter was mirrored")
	}
	f := handle(t, s.Client(), roomy())
	if _, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxBytes: 131100}); err != nil {
		t.Error(err)
	}
}

// TestMirrorGrowsOldInABubble makes a copy older as the doc of Mirror says: the
// server is outside of the bubble, and its client inside.
func TestMirrorGrowsOldInABubble(t *testing.T) {
	s := upstashtest.NewServer(t)
	other := handle(t, s.Client(), roomy())
	mustAdd(t, other, "before")
	synctest.Test(t, func(t *testing.T) {
		m, err := bloom.NewMirror(handle(t, s.Client(), roomy()), bloom.MirrorConfig{MaxStale: time.Hour})
		noError(t, err)
		noError(t, m.Refresh(t.Context()))
		mustAdd(t, other, "since")
		for _, tt := range []struct {
			after time.Duration
			want  bool
		}{{0, false}, {59 * time.Minute, false}, {2 * time.Minute, true}} {
			time.Sleep(tt.after)
			if found, err := m.Exists(t.Context(), "since"); found != tt.want || err != nil {
				t.Errorf("Exists after %v more = %v, %v, want %v", tt.after, found, err, tt.want)
			}
		}
	})
}

// If the copy is too old, the primary answers. A stuck region cannot keep the
// promise of MaxStale.
func TestMirrorAsksThePrimaryAfterARefusedRefresh(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	synctest.Test(t, func(t *testing.T) {
		writer := handle(t, s.Client(), roomy())
		mustAdd(t, writer, "a")
		s.CatchUp()
		mustAdd(t, writer, "b")
		s.DenyFunc(func(command []string) bool { return strings.HasPrefix(command[0], "EVAL") })
		for _, reads := range []bloom.Reads{bloom.ReadsPrimary, bloom.ReadsNearest, bloom.ReadsNearestFirst} {
			cfg := roomy()
			cfg.Reads = reads
			c := s.RegionClient("far", upstash.WithoutSyncToken())
			m, err := bloom.NewMirror(handle(t, c, cfg), bloom.MirrorConfig{MaxStale: 50 * time.Millisecond})
			noError(t, err)
			for range 3 {
				if found, err := m.Exists(t.Context(), "a"); !found || err != nil {
					t.Errorf("%v: Exists(a) = %v, %v, want true", reads, found, err)
				}
				time.Sleep(200 * time.Millisecond)
				got, err := m.ExistsAll(t.Context(), []string{"b", "x"})
				if err != nil || !got[0] || got[1] {
					t.Errorf("%v: ExistsAll(b, x) is %v, %v", reads, got, err)
				}
			}
		}
	})
}

// An Add is answered at its second attempt. An answer in between is older,
// because the filter was replaced after it.
func TestMirrorKeepsAnAddThatWasRepeated(t *testing.T) {
	s := upstashtest.NewServer(t)
	synctest.Test(t, func(t *testing.T) {
		writer := handle(t, s.Client(), roomy())
		mustAdd(t, writer, "old")
		var m *bloom.Mirror
		between := func() {
			time.Sleep(time.Second)
			exists(t, m, "old", true)
			time.Sleep(time.Second)
			if err := writer.Replace(t.Context(), bloom.NewLocal(writer.Geometry())); err != nil {
				t.Error(err)
			}
		}
		c := impatient(s, upstash.WithObserver(func(_ context.Context, e upstash.Event) {
			if e.Err != nil {
				between()
			}
		}))
		m, err := bloom.NewMirror(handle(t, c, roomy()), bloom.MirrorConfig{})
		noError(t, err)
		s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
		wantNew(t, m, "own")
		wantLookUp(t, s, m, "own", present, fromCopy)
		wantLookUp(t, s, m, "old", absent, inOneRequest)
	})
}

// slowly makes a client whose attempts take d each.
func slowly(s *upstashtest.Server, d time.Duration) *upstash.Client {
	return s.Client(upstash.WithObserver(func(context.Context, upstash.Event) { time.Sleep(d) }))
}

// A refresh serves all earlier calls, even if it takes longer than MaxStale.
func TestMirrorRefreshThatTakesLongerThanMaxStale(t *testing.T) {
	s := upstashtest.NewServer(t)
	mustAdd(t, handle(t, s.Client(), roomy()), "a")
	for name, call := range map[string]func(ctx context.Context, m *bloom.Mirror) error{
		"Exists": func(ctx context.Context, m *bloom.Mirror) error {
			if found, err := m.Exists(ctx, "x"); found || err != nil {
				return errors.Join(errors.New("x was found"), err)
			}
			if found, err := m.Exists(ctx, "a"); !found || err != nil {
				return errors.Join(errors.New("a was not found"), err)
			}
			return nil
		},
		"ExistsAll": func(ctx context.Context, m *bloom.Mirror) error {
			got, err := m.ExistsAll(ctx, []string{"x", "a"})
			if err == nil && (got[0] || !got[1]) {
				err = errors.New("wrong answers")
			}
			return err
		},
		"Refresh": func(ctx context.Context, m *bloom.Mirror) error { return m.Refresh(ctx) },
	} {
		for pause, most := range map[time.Duration]int64{0: 3, 20 * time.Millisecond: 4} {
			synctest.Test(t, func(t *testing.T) {
				const slow = 300 * time.Millisecond
				f := handle(t, slowly(s, slow), roomy())
				m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: 50 * time.Millisecond, MaxTrust: time.Hour})
				noError(t, err)
				s.ResetStats()
				start := time.Now()
				var callers sync.WaitGroup
				for range 20 {
					callers.Go(func() {
						if err := call(t.Context(), m); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					})
					time.Sleep(pause)
				}
				callers.Wait()
				if n := s.Stats().Requests; n > most {
					t.Errorf("%s: 20 callers %v apart sent %d requests, want %d at most",
						name, pause, n, most)
				}
				if took := time.Since(start); took > 4*slow+20*pause {
					t.Errorf("%s: the slowest of callers %v apart took %v", name, pause, took)
				}
			})
		}
	}
}

// If a refresh that began after the call fails, all waiting callers get its
// error.
func TestMirrorRefreshFailsOnceForAllCallers(t *testing.T) {
	s := upstashtest.NewServer(t)
	synctest.Test(t, func(t *testing.T) {
		m, err := bloom.NewMirror(handle(t, slowly(s, time.Second), roomy()), bloom.MirrorConfig{})
		noError(t, err)
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				wantError(t, m.Refresh(t.Context()), bloom.ErrNotFound)
			})
		}
		callers.Wait()
		if st := m.Stats(); st.Failures > 2 {
			t.Errorf("%d refreshes, want 2 at most", st.Failures)
		}
	})
}

// Saved counts only calls for which nobody sent a request.
func TestMirrorStatsSaved(t *testing.T) {
	s := upstashtest.NewServer(t)
	synctest.Test(t, func(t *testing.T) {
		f := handle(t, slowly(s, time.Second), roomy())
		mustAdd(t, f, "a")
		m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: time.Minute})
		noError(t, err)
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() { _, _ = m.Exists(t.Context(), "x") })
		}
		callers.Wait()
		if st := m.Stats(); st.Saved != 0 || st.Hits != 10 || st.Asked != 0 {
			t.Errorf("after a refresh: %+v, want 10 hits, none saved", st)
		}
		noError(t, errorOf(m.ExistsAll(t.Context(), []string{"a", "x"})))
		if st := m.Stats(); st.Saved != 1 || st.Hits != 12 {
			t.Errorf("after a call without a request: %+v, want 12 hits, 1 saved", st)
		}
		time.Sleep(2 * time.Minute)
		noError(t, errorOf(m.ExistsAll(t.Context(), []string{"a", "x"})))
		if st := m.Stats(); st.Saved != 1 || st.Hits != 14 {
			t.Errorf("after a second refresh: %+v, want 14 hits, 1 saved", st)
		}
	})
}

// The cost of a look-up without a filter is that in Mirror's doc.
func TestMirrorCostOfAMissingFilter(t *testing.T) {
	s := upstashtest.NewServer(t)
	synctest.Test(t, func(t *testing.T) {
		for missingIsEmpty, want := range map[bool]int64{false: 3, true: 2} {
			cfg := roomy()
			cfg.MissingIsEmpty = missingIsEmpty
			m, err := bloom.NewMirror(handle(t, s.Client(), cfg), bloom.MirrorConfig{MaxStale: time.Minute})
			noError(t, err)
			s.ResetStats()
			_, err = m.Exists(t.Context(), "x")
			if missing := errors.Is(err, bloom.ErrNotFound); missing == missingIsEmpty {
				t.Errorf("MissingIsEmpty is %v, and the error is %v", missingIsEmpty, err)
			}
			if st := s.Stats(); st.Commands+st.Called != want {
				t.Errorf("MissingIsEmpty %v: %d commands, want %d",
					missingIsEmpty, st.Commands+st.Called, want)
			}
		}
	})
}
