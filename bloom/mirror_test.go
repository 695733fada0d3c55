package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
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
	m := newMirror(t, f, cfg)
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

// By default a "yes" is remembered for a minute. A "no" is always the server's.
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
		m, c := mirror(t, f, bloom.MirrorConfig{})
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

// If a filter is deleted and made again, the old one's items are found for a
// minute, and Add reports them as seen. AddThrough does not, and the first answer
// drops the copy.
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
		m, c := mirror(t, f, bloom.MirrorConfig{})
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
		check("ExistsAll after a minute", got, err, "101", inOneRequest)

		stale, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
		got, err = stale.ExistsAll(t.Context(), []string{"c", "x", "b"})
		check("ExistsAll with MaxStale", got, err, "101", inOneRequest)
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
	bare := bloom.Config{Bits: 1000, Hashes: 7, Scheme: bloom.SchemeXXH3, Layout: bloom.LayoutBare}
	filter, w := handle(t, s.Client(), roomy()), window(t, s.Client(), tenMinutes())
	for _, tt := range []struct {
		of   bloom.Mirrorable
		cfg  bloom.MirrorConfig
		want []string
	}{
		{handle(t, s.Client(), bare), bloom.MirrorConfig{}, []string{"Config.Layout", "bare"}},
		{filter, bloom.MirrorConfig{MaxStale: -1}, []string{"MirrorConfig.MaxStale", "-1ns"}},
		{filter, bloom.MirrorConfig{StaleIfError: -1}, []string{"MirrorConfig.StaleIfError", "-1ns"}},
		{w, bloom.MirrorConfig{MaxStale: 10 * time.Minute}, []string{"MirrorConfig.MaxStale", "10m0s"}}, // the Span
		{w, bloom.MirrorConfig{MaxStale: time.Hour}, []string{"MirrorConfig.MaxStale", "10m0s"}},
	} {
		_, err := bloom.NewMirror(tt.of, tt.cfg)
		if _, is := errors.AsType[*bloom.ConfigError](err); !is {
			t.Errorf("%+v: %v, want a ConfigError", tt.cfg, err)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: %q does not say %q", tt.cfg, err, part)
			}
		}
	}
	reader := handle(t, s.ReadOnlyClient(), roomy())
	wantError(t, errorOf(bloom.NewMirror(reader, bloom.MirrorConfig{})), upstash.ErrReadOnly)
	for _, f := range []bloom.Mirrorable{nil, (*bloom.Filter)(nil), (*bloom.Window)(nil)} {
		if _, err := bloom.NewMirror(f, bloom.MirrorConfig{}); err == nil {
			t.Errorf("a nil %T was mirrored", f)
		}
	}
}

// TestMirrorGrowsOldInABubble makes a copy older as the doc of FastForward says: the
// server is outside of the bubble, and its client inside.
func TestMirrorGrowsOldInABubble(t *testing.T) {
	s := upstashtest.NewServer(t)
	other := handle(t, s.Client(), roomy())
	mustAdd(t, other, "before")
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, handle(t, s.Client(), roomy()), bloom.MirrorConfig{MaxStale: time.Hour})
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

// Saved counts only calls for which nobody sent a request.
func TestMirrorStatsSaved(t *testing.T) {
	s := upstashtest.NewServer(t)
	synctest.Test(t, func(t *testing.T) {
		f := handle(t, slowly(s, time.Second), roomy())
		mustAdd(t, f, "a")
		m := newMirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
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

// The cost of a look-up without a filter is that in COSTS.md.
func TestMirrorCostOfAMissingFilter(t *testing.T) {
	s := upstashtest.NewServer(t)
	synctest.Test(t, func(t *testing.T) {
		for missingIsEmpty, want := range map[bool]int64{false: 3, true: 2} {
			cfg := roomy()
			cfg.MissingIsEmpty = missingIsEmpty
			m := newMirror(t, handle(t, s.Client(), cfg), bloom.MirrorConfig{MaxStale: time.Minute})
			s.ResetStats()
			_, err := m.Exists(t.Context(), "x")
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

// A database that comes back without an acknowledged write has the same birth
// number, and after another Add the same count. The copy believes that for
// an hour, and not without end.
func TestMirrorAfterLostWrites(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a")
		do(t, s, "COPY", key, "backup")
		mustAdd(t, f, "lost")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
		wantLookUp(t, s, m, "lost", present, inOneRequest)

		do(t, s, "COPY", "backup", key, "REPLACE")
		mustAdd(t, f, "later") // as many bits as "lost" had
		c.pass(2 * time.Minute)
		wantLookUp(t, s, m, "later", absent, inOneRequest) // the counts are equal

		c.pass(58*time.Minute + 1)
		wantLookUp(t, s, m, "later", present, inTwoRequests)
		wantLookUp(t, s, m, "lost", absent, fromCopy)
	})
}

// Without MaxStale the copy never downloads. A "seen" of a lost write ends too.
func TestMirrorForgetsAfterAnHour(t *testing.T) {
	s, f, m, c := mirrored(t, bloom.MirrorConfig{})
	do(t, s, "COPY", key, "backup")
	mustAdd(t, f, "lost")
	wantLookUp(t, s, m, "lost", present, inOneRequest)
	do(t, s, "COPY", "backup", key, "REPLACE")
	c.pass(time.Hour - time.Second)
	wantLookUp(t, s, m, "a", present, inOneRequest) // a proof, and no more
	c.pass(time.Second)
	wantLookUp(t, s, m, "lost", present, fromCopy)
	c.pass(1)
	wantLookUp(t, s, m, "lost", absent, inOneRequest)
	wantLookUp(t, s, m, "lost", absent, inOneRequest)
	wantLookUp(t, s, m, "a", present, inOneRequest) // the copy has started over
	wantLookUp(t, s, m, "a", present, fromCopy)
}

// An hour after the last download, or MaxStale if that is longer, a refresh makes
// another. Until then, for MaxStale, the copy counts.
func TestMirrorDownloadsAfterAnHour(t *testing.T) {
	for stale, full := range map[time.Duration]time.Duration{time.Minute: time.Hour, 2 * time.Hour: 2 * time.Hour} {
		s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: stale})
		wantLookUp(t, s, m, "x", absent, inOneRequest)
		c.pass(full)
		s.ResetStats()
		noError(t, m.Refresh(t.Context()))
		wantRequests(t, s, 1) // the count alone
		c.pass(stale)
		wantLookUp(t, s, m, "x", absent, fromCopy)
		c.pass(1)
		wantLookUp(t, s, m, "x", absent, inTwoRequests)
	}
}

// COPY keeps the birth number: two filters of one number stand at the key, one
// after the other. What a download brings is the filter that is there.
func TestMirrorOfACopiedFilter(t *testing.T) {
	s, f, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
	do(t, s, "COPY", key, "other")
	mustAdd(t, f, "old")
	wantLookUp(t, s, m, "old", present, inOneRequest)

	other := handleAt(t, s.Client(), "other", roomy())
	mustAdd(t, other, "new-1", "new-2")
	do(t, s, "RENAME", "other", key)
	c.pass(time.Minute + 1)
	wantLookUp(t, s, m, "new-1", present, inTwoRequests)
	wantLookUp(t, s, m, "old", absent, fromCopy)
}

// nearAStuckRegion makes a filter with "a", and a handle near a region that has it and
// learns nothing more.
func nearAStuckRegion(t *testing.T, readsNearest bool, opts ...upstash.Option,
) (s *upstashtest.Server, writer, near *bloom.Filter) {
	t.Helper()
	s = upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	cfg := roomy()
	writer = handle(t, s.Client(), cfg)
	mustAdd(t, writer, "a")
	s.CatchUp()
	cfg.ReadsNearest = readsNearest
	return s, writer, handle(t, s.RegionClient("far", opts...), cfg)
}

// A lagging region neither makes a copy look complete nor proves that a filter
// is still there.
func TestMirrorNearALaggingRegion(t *testing.T) {
	for _, reads := range []bool{false, true} {
		for name, opts := range map[string][]upstash.Option{
			"sync tokens": nil, "none": {upstash.WithoutSyncToken()},
		} {
			t.Run(fmt.Sprintf("nearest=%v/tokens=%s", reads, name), func(t *testing.T) {
				s, writer, f := nearAStuckRegion(t, reads, opts...)
				mustAdd(t, writer, "b")
				m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Second})
				wantLookUp(t, s, m, "b", present, inOneRequest)
				wantLookUp(t, s, m, "a", present, fromCopy)

				// The region has the old filter while the primary already has
				// another.
				noError(t, errorOf(writer.Delete(t.Context())))
				mustAdd(t, writer, "c")
				c.pass(2 * time.Second)
				wantLookUp(t, s, m, "c", present, inTwoRequests)
				wantLookUp(t, s, m, "a", absent, fromCopy)

				// Without MaxStale, proofs also come from the primary.
				d, c := mirror(t, f, bloom.MirrorConfig{})
				wantLookUp(t, s, d, "c", present, inOneRequest)
				wantLookUp(t, s, d, "c", present, fromCopy)
				c.pass(time.Hour)
				wantLookUp(t, s, d, "c", present, inOneRequest)
				wantLookUp(t, s, d, "c", present, fromCopy)
			})
		}
	}
}

// In an outage the copy answers for StaleIfError beyond its limits, and one call
// a second asks.
func TestMirrorStaleIfError(t *testing.T) {
	s, f, m, c := mirrored(t, bloom.MirrorConfig{
		MaxStale: 10 * time.Second, StaleIfError: time.Minute,
	}, upstash.WithRetry(0))
	wantLookUp(t, s, m, "a", present, inOneRequest)
	bloomtest.StrikeAll(s, notSent)
	c.pass(10*time.Second + 1)
	began := c.Now()
	wantLookUp(t, s, m, "x", absent, inOneRequest) // the refresh that fails
	if since := m.Stats().StaleSince; !since.Equal(began) {
		t.Errorf("stale since %v, want %v", since, began)
	}
	wantLookUp(t, s, m, "a", present, fromCopy)
	found, err := m.ExistsAll(t.Context(), []string{"a", "x"})
	if err != nil || !found[0] || found[1] {
		t.Errorf("ExistsAll in an outage: %v, %v, want [true false]", found, err)
	}
	c.pass(time.Second + 1)
	wantLookUp(t, s, m, "a", present, inOneRequest)

	c.pass(59 * time.Second) // past the sum of the limits
	for _, item := range []string{"a", "x"} {
		if _, err := m.Exists(t.Context(), item); err == nil {
			t.Errorf("Exists(%s) of a copy that is too old: no error", item)
		}
	}
	s.InjectFunc(nil)
	mustAdd(t, f, "x")
	c.pass(time.Second + 1)
	wantLookUp(t, s, m, "x", present, inTwoRequests)
	if since := m.Stats().StaleSince; !since.IsZero() {
		t.Errorf("stale since %v, want not at all", since)
	}
}

// While one call waits for a server that does not answer, the others do not.
func TestMirrorStaleIfErrorAsksOnce(t *testing.T) {
	aged(t, time.Minute, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		w.Hold("EVAL", false).Free <- bloomtest.ErrCut
		exists(t, m, "x", absent)
		wantOutage(t, m, true)
		time.Sleep(2 * time.Second)
		asks := w.Hold("EVAL", false) // whether it is over
		var call sync.WaitGroup
		call.Go(func() { exists(t, m, "x", absent) })
		<-asks.Here
		time.Sleep(10 * time.Second)
		wantLookUp(t, s, m, "x", absent, fromCopy)
		asks.Free <- bloomtest.ErrCut
		call.Wait()
		time.Sleep(2 * time.Second)
		wantLookUp(t, s, m, "x", absent, inOneRequest)
	})
}

// The time that a call waits for an answer counts: it may take the copy past the
// sum of the limits.
func TestMirrorStaleIfErrorCountsTheWait(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Second, StaleIfError: 10 * time.Second},
		upstash.WithRetry(0))
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	wait := 5 * time.Second
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		c.pass(wait)
		return notSent
	})
	c.pass(2 * time.Second)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	wait = time.Minute
	c.pass(2 * time.Second)
	if found, err := m.Exists(t.Context(), "x"); err == nil {
		t.Errorf("Exists is %t a minute beyond the limits, want an error", found)
	}
}

// Without MaxStale the copy says no "no", in an outage either.
func TestMirrorStaleIfErrorWithoutMaxStale(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{StaleIfError: time.Hour}, upstash.WithRetry(0))
	wantLookUp(t, s, m, "a", present, inOneRequest)
	bloomtest.StrikeAll(s, notSent)
	c.pass(2 * time.Minute)
	wantLookUp(t, s, m, "a", present, inOneRequest)
	if _, err := m.Exists(t.Context(), "x"); err == nil {
		t.Error("Exists of an item that is not in the copy: no error")
	}
	found, err := m.ExistsAll(t.Context(), []string{"x", "a"})
	var batch *bloom.BatchError
	if !errors.As(err, &batch) {
		t.Fatalf("ExistsAll with such an item: %v, want a BatchError", err)
	}
	want := []bloom.ItemState{bloom.ItemNotDone, bloom.ItemDone}
	if !slices.Equal(batch.Items, want) || !slices.Equal(found, []bool{false, true}) {
		t.Errorf("ExistsAll with such an item: %v, %v, want %v and true", found, batch.Items, want)
	}
	if _, err := m.Add(t.Context(), "x"); err == nil {
		t.Error("Add in an outage: no error")
	}
}

// A filter that is gone, is another one or was made again is an answer. A refusal
// is none.
func TestMirrorStaleIfErrorEndsWithAnAnswer(t *testing.T) {
	refused := false // the server does not say what is at the key
	// afterAnOutage looks up "a", which was in the filter before the change.
	afterAnOutage := func(change func(s *upstashtest.Server)) (bool, error) {
		t.Helper()
		s, _, m, c := mirrored(t, bloom.MirrorConfig{
			MaxStale: time.Second, StaleIfError: time.Hour,
		}, upstash.WithRetry(0))
		wantLookUp(t, s, m, "a", present, inOneRequest)
		bloomtest.StrikeAll(s, notSent)
		c.pass(time.Minute)
		wantLookUp(t, s, m, "a", present, inOneRequest)
		s.InjectFunc(nil)
		change(s)
		c.pass(2 * time.Second)
		found, err := m.Exists(t.Context(), "a")
		if since := m.Stats().StaleSince; since.IsZero() == refused {
			t.Errorf("stale since %v, and refused is %t", since, refused)
		}
		return found, err
	}
	makeAgain := func(cfg bloom.Config, item string) func(*upstashtest.Server) {
		return func(s *upstashtest.Server) {
			do(t, s, "DEL", key)
			mustAdd(t, handle(t, s.Client(), cfg), item)
		}
	}

	_, err := afterAnOutage(func(s *upstashtest.Server) { do(t, s, "DEL", key) })
	wantError(t, err, bloom.ErrNotFound)
	_, err = afterAnOutage(makeAgain(bloom.Config{Capacity: 55, FPRate: 0.01}, "a"))
	wantMismatch(t, err)
	if found, err := afterAnOutage(makeAgain(roomy(), "b")); found || err != nil {
		t.Errorf("Exists in a filter that was made again: %t, %v, want false", found, err)
	}
	refused = true
	deny := func(s *upstashtest.Server) { s.DenyFunc(func([]string) bool { return true }) }
	if found, err := afterAnOutage(deny); !found || err != nil {
		t.Errorf("Exists while the server refuses all: %t, %v, want true", found, err)
	}
}

// A server without RESP2 sends base64.
func TestMirrorWithoutRESP2(t *testing.T) {
	s, f, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Hour}, upstash.WithTransport(noRESP2{overHTTP(t)}))
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	wantLookUp(t, s, m, "a", present, fromCopy)
	if got, want := m.Stats().SetBits, stats(t, f).SetBits; got != want {
		t.Errorf("the copy has %d bits set, the filter %d", got, want)
	}
}

// The part of a short string has no time of its own.
func TestMirrorPartsOfAShortString(t *testing.T) {
	limits := &limited{Transport: overHTTP(t)}
	_, _, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute},
		upstash.WithTransport(limits), upstash.WithTimeout(testenv.Patience))
	if err := m.Refresh(t.Context()); err != nil || limits.longest == 0 || limits.longest > testenv.Patience {
		t.Errorf("%v; an attempt has %v, want %v at most", err, limits.longest, testenv.Patience)
	}
}

// A callback that panics in a download leaves no half of a copy behind: without
// MaxStale no later refresh would end it, and the copy would never start over.
func TestMirrorAfterAPanicInADownload(t *testing.T) {
	calls := -1 // not counted
	s, _, m, c := mirrored(t, bloom.MirrorConfig{}, upstash.WithCallObserver(func(context.Context, upstash.Event) {
		if calls < 0 {
			return
		}
		calls++
		if calls == 2 {
			panic("observer")
		}
	}))
	noError(t, m.Refresh(t.Context()))
	other := handle(t, s.Client(), roomy())
	mustAdd(t, other, "b")
	calls = 0
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the observer did not panic in the download")
			}
		}()
		_ = m.Refresh(t.Context())
	}()
	calls = -1
	c.pass(3 * time.Hour)
	wantLookUp(t, s, m, "a", present, inOneRequest) // the copy starts over
	wantLookUp(t, s, m, "a", present, fromCopy)
}
