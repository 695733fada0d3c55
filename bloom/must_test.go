package bloom_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func must(cfg bloom.Config) bloom.Config {
	cfg.MustExist = true
	return cfg
}

// With MustExist, Add and AddAll do not replace an evicted filter by an empty
// one.
func TestMustExistCreatesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), must(expiring(time.Hour)))
		check := func() {
			t.Helper()
			for name, call := range adds {
				err := call(t.Context(), f)
				if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) || strings.Contains(err.Error(), "MissingIsEmpty") ||
					!strings.Contains(err.Error(), "Create") {
					t.Errorf("%s: %v, want ErrNotFound, safe to retry, and what to do", name, err)
				}
			}
			wantNoKey(t, s, key)
		}
		check()
		create(t, f, true)
		add(t, f, "a", true)
		add(t, f, "a", false)
		exists(t, f, "a", true)
		wantTTL(t, s, time.Hour)
		do(t, s, "DEL", key)
		check()
	})
}

// An AddSeq that has added items to a filter that went away is not safe to
// retry: it has changed something. One that found none is.
func TestAddSeqIsSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := must(small())
	// a round of one item
	f := batched(handle(t, s.Client(), cfg), 1, 1)
	items := slices.Values([]string{"a", "b", "c"})
	_, err := f.AddSeq(t.Context(), items)
	if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) {
		t.Errorf("no filter: %v, safe to retry %t, want true", err, upstash.SafeToRetry(err))
	}
	create(t, f, true)
	result, err := f.AddSeq(t.Context(), items, bloom.WithProgress(func(int64, int64) { do(t, s, "DEL", key) }))
	if !errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) || result != (bloom.AddResult{}) {
		t.Errorf("it went away: %+v, %v, safe to retry %t, want nothing and false",
			result, err, upstash.SafeToRetry(err))
	}
	// Nothing of the second round was done, but the first one was.
	f = batched(handle(t, s.Client(), cfg), 1, 1)
	create(t, f, true)
	result, err = f.AddSeq(t.Context(), items, bloom.WithProgress(func(int64, int64) {
		s.DenyFunc(func([]string) bool { return true })
	}))
	if !errors.Is(err, upstash.ErrNoPermission) || upstash.SafeToRetry(err) || result.Items != 1 {
		t.Errorf("denied after one: %+v, %v, safe to retry %t, want 1 and false", result, err, upstash.SafeToRetry(err))
	}
}
