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

// TestMirrorGrowsOldInABubble makes a copy older as the doc of Mirror says: the
// server is outside of the bubble, and its client inside.
func TestMirrorGrowsOldInABubble(t *testing.T) {
	s := upstashtest.NewServer(t)
	other := handle(t, s.Client(), roomy())
	mustAdd(t, other, "before")
	synctest.Test(t, func(t *testing.T) {
		m, err := bloom.NewMirror(handle(t, s.Client(), roomy()), bloom.MirrorConfig{MaxStale: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
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
			if found, err := m.Exists(t.Context(), "old"); !found || err != nil {
				t.Errorf("Exists(old) = %v, %v, want true", found, err)
			}
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
		if err != nil {
			t.Fatal(err)
		}
		s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
		if added, err := m.AddThrough(t.Context(), "own"); !added || err != nil {
			t.Errorf("AddThrough(own) = %v, %v, want true", added, err)
		}
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
				if err != nil {
					t.Fatal(err)
				}
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
		if err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				if err := m.Refresh(t.Context()); !errors.Is(err, bloom.ErrNotFound) {
					t.Errorf("Refresh: %v, want ErrNotFound", err)
				}
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
		if err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() { _, _ = m.Exists(t.Context(), "x") })
		}
		callers.Wait()
		if st := m.Stats(); st.Saved != 0 || st.Hits != 10 || st.Asked != 0 {
			t.Errorf("after a refresh: %+v, want 10 hits, none saved", st)
		}
		if _, err := m.ExistsAll(t.Context(), []string{"a", "x"}); err != nil {
			t.Fatal(err)
		}
		if st := m.Stats(); st.Saved != 1 || st.Hits != 12 {
			t.Errorf("after a call without a request: %+v, want 12 hits, 1 saved", st)
		}
		time.Sleep(2 * time.Minute)
		if _, err := m.ExistsAll(t.Context(), []string{"a", "x"}); err != nil {
			t.Fatal(err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
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
