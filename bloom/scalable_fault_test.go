package bloom_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// rare is a filter that grows, and whose false positives would be a surprise.
func rare() bloom.ScalableConfig { return bloom.ScalableConfig{Capacity: 1000, FPRate: 1e-8} }

// If the reply to an Add was lost and the item is found then, it may have been
// new, in whichever layer it is. In a batch each item is judged by itself.
func TestScalableUncertain(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		c, requests := timedClient(t, s, newServerClock())
		f, other := scalable(t, c, rare()), scalable(t, s.Client(patient), rare())
		mustAdd(t, f, numbered("item", 1100)...)
		for _, item := range []string{"item-7", "item-1099", "other"} {
			s.Inject(noReply)
			if added, err := f.Add(ctx, item); added || !errors.Is(err, bloom.ErrUncertain) || !bloom.InFilter(err) {
				t.Errorf("%s: %v, %v, want ErrUncertain", item, added, err)
			}
		}
		// Between the two attempts the filter is deleted, and another client
		// adds one of the items to a new one.
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		sent := 0
		requests.before = func(string) error {
			if sent++; sent != 2 {
				return nil
			}
			_, err := other.Delete(ctx)
			return errors.Join(err, errorOf(other.Add(ctx, "x")))
		}
		answers, err := f.AddAll(ctx, []string{"x", "y", "y"})
		var b *bloom.BatchError
		if !errors.As(err, &b) || !errors.Is(err, bloom.ErrUncertain) || b.Items[0] != bloom.ItemUncertain ||
			b.Items[1] != bloom.ItemDone || b.Items[2] != bloom.ItemDone || !answers[1] || answers[2] {
			t.Errorf("AddAll = %v, %v, want an uncertain item, a new one, and a seen one", answers, err)
		}
	})
}

// An EXPIRE that did not run is run by the next Add, also by one that finds its
// item, and whoever made the filter.
func TestScalableTTLIsMadeUpFor(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c, cfg := s.Client(), growing()
		cfg.TTL = time.Hour
		add(t, scalable(t, c, growing()), "a", true)
		for _, why := range []string{"never set", "lost"} {
			add(t, scalable(t, c, cfg), "a", false)
			wantTTL(t, s, time.Hour)
			noError(t, errorOf(scalable(t, c, cfg).Persist(t.Context())))
			mustAdd(t, scalable(t, c, cfg), "a", "b")
			if got := pttl(t, s); got != -1 {
				t.Errorf("%s: PTTL = %v after Persist, want -1", why, got)
			}
			do(t, s, "SETBIT", key, "127", "0")
		}
	})
}

// A token that may not run EVAL looks items up, but adds nothing.
func TestScalableWithoutScripts(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, f := t.Context(), scalable(t, s.Client(patient), growing())
	noError(t, errorOf(f.Add(ctx, "a")))
	s.DenyFunc(func(command []string) bool { return strings.HasPrefix(command[0], "EVAL") })
	for name, err := range map[string]error{
		"Add": errorOf(f.Add(ctx, "b")), "AddAll": errorOf(f.AddAll(ctx, []string{"b", "c"})),
	} {
		if !errors.Is(err, upstash.ErrNoPermission) || bloom.InFilter(err) || !upstash.SafeToRetry(err) ||
			!strings.Contains(err.Error(), "a Scalable adds by a script: use a token that may run EVAL") {
			t.Errorf("%s: %v, want one that says what the token lacks", name, err)
		}
	}
	found, err := f.ExistsAll(ctx, []string{"a", "b", "c"})
	if err != nil || !found[0] || count(found) != 1 {
		t.Errorf("found %v, %v, want the first", found, err)
	}
}

// The items are in, but the user may not run PEXPIRE, in the script or after it.
// The next Add tries again.
func TestScalableTTLRefused(t *testing.T) {
	addr := testenv.Redis(t)
	s := upstashtest.NewServer(t, upstashtest.WithRedis(addr))
	cfg := growing()
	cfg.TTL = time.Hour
	f := scalable(t, s.Client(patient), cfg)
	if _, err := f.Exists(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
		t.Fatal(err)
	}
	testenv.UsersMay(t, addr, "-pexpire")
	for _, isNew := range []bool{true, false} {
		added, err := f.Add(t.Context(), "a")
		if added != isNew || !errors.Is(err, bloom.ErrNoTTL) || !bloom.InFilter(err) {
			t.Errorf("Add = %v, %v, want %v and ErrNoTTL", added, err, isNew)
		}
	}
	testenv.UsersMay(t, addr, "+pexpire")
	add(t, f, "a", false)
	wantTTL(t, s, time.Hour)
}

// A Scalable whose MaxBytes is above the database's limit stays as it is when the
// next layer is refused: items are added on. Its Stats say that it is over its
// capacity, although they count on a layer that the database refuses.
func TestScalableGrowsBeyondTheRecordLimit(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(5000)) // one layer, of 1.8 KB
	ctx, f := t.Context(), scalable(t, s.Client(patient), growing())
	for i := range 2 {
		added, err := f.AddAll(ctx, numbered(fmt.Sprint(i), 900))
		if err != nil || count(added) < 800 {
			t.Fatalf("%d new, %v, want most of 900", count(added), err)
		}
	}
	add(t, f, "one", true)
	st, err := f.Stats(ctx)
	if err != nil || len(st.Parts) != 1 || st.Parts[0].Items < 1700 || st.Parts[0].Capacity != 1000 || !st.OverCapacity() {
		t.Errorf("Stats %+v, %v, want 1,700 items in one layer for 1,000, over its capacity", st, err)
	}
}
