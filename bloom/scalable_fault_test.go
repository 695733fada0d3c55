package bloom_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// rare is a filter that grows, and whose false positives would be a surprise.
func rare() bloom.ScalableConfig { return bloom.ScalableConfig{Capacity: 1000, FPRate: 1e-8} }

// tallies counts the answers to clients about each item.
type tallies struct {
	mu sync.Mutex
	of []tally
}

type tally struct{ isNew, seen, uncertain, unknown int }

// note counts one answer.
func (t *tallies) note(i int, isNew bool, state bloom.ItemState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case state == bloom.ItemUncertain:
		t.of[i].uncertain++
	case state != bloom.ItemDone:
		t.of[i].unknown++
	case isNew:
		t.of[i].isNew++
	default:
		t.of[i].seen++
	}
}

// add adds an item and counts the answer.
func (t *tallies) add(ctx context.Context, f *bloom.Scalable, items []string, i int) {
	isNew, err := f.Add(ctx, items[i])
	switch {
	case errors.Is(err, bloom.ErrUncertain):
		t.note(i, false, bloom.ItemUncertain)
	case err != nil:
		t.note(i, false, bloom.ItemUnknown)
	default:
		t.note(i, isNew, bloom.ItemDone)
	}
}

// addAll adds n items from the first on and counts the answers.
func (t *tallies) addAll(ctx context.Context, f *bloom.Scalable, items []string, first, n int) {
	answers, err := f.AddAll(ctx, items[first:first+n])
	var b *bloom.BatchError
	for i := range n {
		state := bloom.ItemDone
		if errors.As(err, &b) {
			state = b.Items[i]
		} else if err != nil {
			state = bloom.ItemUnknown
		}
		t.note(first+i, i < len(answers) && answers[i], state)
	}
}

// oneInFive injects one of the faults into one request in five.
func oneInFive(s *upstashtest.Server, faults ...upstashtest.Fault) {
	rng := rand.New(rand.NewPCG(1, 2))
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		if rng.IntN(5) == 0 {
			return faults[rng.IntN(len(faults))]
		}
		return upstashtest.Fault{}
	})
}

// Four clients add the same items, through handles of any age, while the filter
// grows and replies are lost, come late or twice. No item is new to two of
// them. If it is new to nobody, it is uncertain or unknown to someone. Every
// acknowledged item is found afterwards.
func TestScalableUnderFaults(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, items := t.Context(), numbered("item", 1500)
	oneInFive(s, upstashtest.Drop(upstashtest.AfterExec), upstashtest.Drop(upstashtest.BeforeExec),
		upstashtest.BadGateway(upstashtest.AfterExec), upstashtest.Twice(0),
		upstashtest.LateExec(time.Millisecond), upstashtest.ShortResult())
	told := tallies{of: make([]tally, len(items))}
	var workers sync.WaitGroup
	for worker := range 4 {
		rng := rand.New(rand.NewPCG(3, uint64(worker)))
		c := impatient(s)
		workers.Go(func() {
			f := scalable(t, c, rare())
			for first := 0; first < len(items); {
				if rng.IntN(20) == 0 {
					f = scalable(t, c, rare())
				}
				if n := rng.IntN(40); n > 1 && first+n <= len(items) {
					told.addAll(ctx, f, items, first, n)
					first += n
				} else {
					told.add(ctx, f, items, first)
					first++
				}
			}
		})
	}
	workers.Wait()
	s.InjectFunc(nil)
	if n := layersAt(t, s); n < 2 {
		t.Errorf("%d layers, want 2 or more", n)
	}
	found, err := scalable(t, s.Client(), rare()).ExistsAll(ctx, items)
	noError(t, err)
	certain, doubtful := 0, 0
	for i, n := range told.of {
		certain, doubtful = certain+n.isNew, doubtful+n.uncertain
		if n.isNew > 1 || n.isNew+n.uncertain+n.unknown == 0 || !found[i] && n.isNew+n.seen+n.uncertain > 0 {
			t.Errorf("item %d: %+v, found %v", i, n, found[i])
		}
	}
	if certain < len(items)/2 || doubtful == 0 {
		t.Errorf("%d certain answers, %d uncertain ones, want at least %d and 1",
			certain, doubtful, len(items)/2)
	}
}

// If the reply to an Add was lost and the item is found then, it may have been
// new, in whichever layer it is. In a batch each item is judged by itself.
func TestScalableUncertain(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		c, requests := timedClient(t, s, newServerClock())
		f, other := scalable(t, c, rare()), scalable(t, s.Client(), rare())
		mustAdd(t, f, numbered("item", 2000)...)
		for _, item := range []string{"item-7", "item-1999", "other"} {
			s.Inject(upstashtest.Drop(upstashtest.AfterExec))
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
		ctx, c := t.Context(), s.Client()
		cfg := growing()
		cfg.TTL = time.Hour
		for name, lost := range map[string]func(){
			"never set": func() {},
			"lost":      func() { do(t, s, "SETBIT", key, "127", "0"); do(t, s, "PERSIST", key) },
		} {
			s.FlushAll()
			noError(t, errorOf(scalable(t, c, growing()).Add(ctx, "a")))
			lost()
			if added, err := scalable(t, c, cfg).Add(ctx, "a"); added || err != nil {
				t.Errorf("%s: Add = %v, %v, want false", name, added, err)
			}
			wantTTL(t, s, time.Hour)
			noError(t, errorOf(scalable(t, c, cfg).Persist(ctx)))
			mustAdd(t, scalable(t, c, cfg), "a", "b")
			if ttl := do(t, s, "PTTL", key); ttl != int64(-1) {
				t.Errorf("%s: PTTL = %v after Persist, want -1", name, ttl)
			}
		}
	})
}
