package bloom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// refuseScripts makes the server refuse EVAL, as if the token may not run it.
func refuseScripts(s *upstashtest.Server) {
	s.InjectFunc(func(_ int64, q upstashtest.RequestInfo) upstashtest.Fault {
		if strings.HasPrefix(q.Commands[0], "EVAL") {
			return upstashtest.NoPermission(q.Commands[0])
		}
		return upstashtest.Fault{}
	})
}

// Without EVAL a token can add items and look them up. When an Add is due to
// look at the fill, it returns its answer, and an error: the filter cannot
// grow.
func TestScalableGrowthRefused(t *testing.T) {
	neverByLot(t)
	s := upstashtest.NewServer(t)
	ctx, f := t.Context(), scalable(t, s.Client(), growing())
	refuseScripts(s)
	if added, err := f.Add(ctx, "a"); !added || err != nil {
		t.Fatalf("without a look: Add = %v, %v, want true", added, err)
	}
	bloom.SetLot(func() float64 { return 0 })
	added, err := f.Add(ctx, "b")
	if !added || !errors.Is(err, bloom.ErrNoGrowth) || !bloom.InFilter(err) || upstash.SafeToRetry(err) {
		t.Errorf("with a look: Add = %v, %v, want true and ErrNoGrowth", added, err)
	}
	if added, err := f.Add(ctx, "b"); added || err != nil {
		t.Errorf("an item that is in: Add = %v, %v, want false", added, err)
	}
	answers, err := f.AddAll(ctx, []string{"b", "c"})
	if len(answers) != 2 || answers[0] || !answers[1] || !errors.Is(err, bloom.ErrNoGrowth) || !bloom.InFilter(err) {
		t.Errorf("a few: %v, %v, want seen, new and ErrNoGrowth, in the filter", answers, err)
	}
	many := numbered("many", 16)
	_, err = f.AddAll(ctx, many)
	if !errors.Is(err, bloom.ErrNoGrowth) || bloom.InFilter(err) || !upstash.SafeToRetry(err) {
		t.Errorf("many: %v, want ErrNoGrowth, not in the filter and safe to retry", err)
	}
	found, err := f.ExistsAll(ctx, append([]string{"a", "b", "c"}, many...))
	if err != nil || !found[0] || !found[1] || !found[2] || count(found) != 3 {
		t.Errorf("found %v, %v, want the first three", found, err)
	}
}

// In a full database the token is not to blame.
func TestScalableGrowthOutOfMemory(t *testing.T) {
	neverByLot(t)
	s := upstashtest.NewServer(t)
	f := scalable(t, s.Client(), growing())
	s.InjectFunc(func(_ int64, q upstashtest.RequestInfo) upstashtest.Fault {
		if strings.HasPrefix(q.Commands[0], "EVAL") {
			return upstashtest.CommandError("OOM command not allowed when used memory > 'maxmemory'.")
		}
		return upstashtest.Fault{}
	})
	_, err := f.AddAll(t.Context(), numbered("many", 16))
	if !errors.Is(err, bloom.ErrNoGrowth) || !errors.Is(err, upstash.ErrOutOfMemory) ||
		strings.Contains(err.Error(), "token") || !strings.HasSuffix(err.Error(), "delete keys, or choose a larger plan") {
		t.Errorf("%v, want ErrNoGrowth and what to do", err)
	}
}

// If the filter cannot grow, its TTL is settled all the same. If that is
// refused too, the error says both.
func TestScalableGrowthRefusedWithTTL(t *testing.T) {
	neverByLot(t)
	s := upstashtest.NewServer(t)
	cfg := growing()
	cfg.TTL = time.Hour
	f := scalable(t, s.Client(), cfg)
	bloom.SetLot(func() float64 { return 0 })
	refused := false // only the first script, which is the growth
	s.InjectFunc(func(_ int64, q upstashtest.RequestInfo) upstashtest.Fault {
		if strings.HasPrefix(q.Commands[0], "EVAL") && !refused {
			refused = true
			return upstashtest.NoPermission(q.Commands[0])
		}
		return upstashtest.Fault{}
	})
	added, err := f.Add(t.Context(), "a")
	if !added || !errors.Is(err, bloom.ErrNoGrowth) || errors.Is(err, bloom.ErrNoTTL) {
		t.Errorf("Add = %v, %v, want true and ErrNoGrowth alone", added, err)
	}
	if ttl := do(t, s, "PTTL", key); ttl.(int64) <= 0 {
		t.Errorf("PTTL = %v, want more than 0", ttl)
	}
	s.FlushAll()
	refuseScripts(s)
	added, err = f.Add(t.Context(), "a")
	if !added || !errors.Is(err, bloom.ErrNoGrowth) || !errors.Is(err, bloom.ErrNoTTL) || !bloom.InFilter(err) {
		t.Errorf("both refused: %v, %v, want true, ErrNoGrowth and ErrNoTTL", added, err)
	}
}
