package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
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
	if err != nil {
		t.Fatal(err)
	}
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

// If the reply to an Add was lost, the Add is uncertain if it finds its bits in
// its own layer. Other layers decide nothing: a client with an older layer
// finds the bits too, is told "seen", and sets bits in that layer.
func TestScalableUncertain(t *testing.T) {
	neverByLot(t)
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), impatient(s)
		f := scalable(t, c, rare())
		if added, err := f.Add(ctx, "first layer"); !added || err != nil {
			t.Fatalf("Add = %v, %v, want true", added, err)
		}
		if _, err := f.AddAll(ctx, numbered("item", 2000)); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			item string
			want error
		}{{"first layer", bloom.ErrUncertain}, {"item-1999", bloom.ErrUncertain}, {"other", bloom.ErrUncertain}} {
			s.Inject(upstashtest.Drop(upstashtest.AfterExec))
			added, err := f.Add(ctx, step.item)
			if added || !errors.Is(err, step.want) {
				t.Errorf("%s: %v, %v, want %v", step.item, added, err, step.want)
			}
		}
	})
}

// Other clients act between the Add that made the filter again and the script
// that shortens it. Nothing they added, or were told about, gets lost.
func TestScalableShortensItsOwnAlone(t *testing.T) {
	neverByLot(t)
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		for name, step := range map[string]struct {
			act    func(other *bloom.Scalable) error
			layers int64
		}{
			"nothing": {func(*bloom.Scalable) error { return nil }, 1},
			"another item": {func(other *bloom.Scalable) error {
				return errorOf(other.Add(ctx, "b"))
			}, 2},
			"the same item": {func(other *bloom.Scalable) error {
				if added, err := other.Add(ctx, "a"); added || err != nil {
					return fmt.Errorf("Add = %v, %w", added, err)
				}
				return nil
			}, 1},
			"a TTL": {func(other *bloom.Scalable) error { return errorOf(other.Expire(ctx, time.Hour)) }, 2},
			"a new filter": {func(other *bloom.Scalable) error {
				_, err := other.Delete(ctx)
				return errors.Join(err, errorOf(other.Add(ctx, "b")), errorOf(other.Add(ctx, "a")))
			}, 1},
		} {
			s.FlushAll()
			c, requests := timedClient(t, s, newServerClock())
			f, other := scalable(t, c, rare()), scalable(t, s.Client(), rare())
			if _, err := f.AddAll(ctx, numbered("item", 1100)); err != nil {
				t.Fatal(err)
			}
			if found, err := other.Exists(ctx, "item-7"); !found || err != nil {
				t.Fatalf("Exists = %v, %v, want true", found, err)
			}
			do(t, s, "DEL", key)
			requests.before = func(body string) error {
				if !strings.HasPrefix(body, `["EVAL`) {
					return nil
				}
				requests.before = nil
				return step.act(other)
			}
			if added, err := f.Add(ctx, "a"); !added || err != nil {
				t.Fatalf("%s: Add = %v, %v, want true", name, added, err)
			}
			if requests.before != nil {
				t.Fatalf("%s: no script followed", name)
			}
			if n := layersAt(t, s); n != step.layers {
				t.Errorf("%s: %d layers, want %d", name, n, step.layers)
			}
			items := []string{"a"}
			if strings.Contains(name, "another") || strings.Contains(name, "new") {
				items = append(items, "b")
			}
			for _, h := range []*bloom.Scalable{f, other, scalable(t, s.Client(), rare())} {
				if found, err := h.ExistsAll(ctx, items); err != nil || count(found) != len(items) {
					t.Errorf("%s: %d of %d found, %v", name, count(found), len(items), err)
				}
			}
		}
	})
}

// The look before a first AddAll fails, or finds nothing. No item was sent.
func TestScalableAddAllLooksInVain(t *testing.T) {
	s := upstashtest.NewServer(t)
	must := growing()
	must.MustExist = true
	for name, c := range map[string]struct {
		cfg  bloom.ScalableConfig
		deny bool
		want error
	}{"refused": {growing(), true, upstash.ErrNoPermission}, "missing": {must, false, bloom.ErrNotFound}} {
		s.DenyFunc(func([]string) bool { return c.deny })
		answers, err := scalable(t, s.Client(), c.cfg).AddAll(t.Context(), []string{"a", "b"})
		var b *bloom.BatchError
		if !errors.Is(err, c.want) || !errors.As(err, &b) || b.Count(bloom.ItemNotDone) != 2 || len(answers) != 2 ||
			!upstash.SafeToRetry(err) {
			t.Errorf("%s: %v, %v, want a BatchError of two items not done, and %v", name, answers, err, c.want)
		}
	}
}
