package bloom_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
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

// note counts the answers to a call about n items from the first on.
func (t *tallies) note(first, n int, answers []bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var batch *bloom.BatchError
	isBatch := errors.As(err, &batch)
	for i := range n {
		of := &t.of[first+i]
		switch {
		case isBatch && batch.Items[i] == bloom.ItemUncertain, !isBatch && errors.Is(err, bloom.ErrUncertain):
			of.uncertain++
		case isBatch && batch.Items[i] != bloom.ItemDone, !isBatch && err != nil:
			of.unknown++
		case answers[i]:
			of.isNew++
		default:
			of.seen++
		}
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
	ctx, items := t.Context(), numbered("item", 400)
	create(t, scalable(t, s.Client(patient), rare()), true)
	setTaken(t, s, 800)
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
					areNew, err := f.AddAll(ctx, items[first:first+n])
					told.note(first, n, areNew, err)
					first += n
				} else {
					isNew, err := f.Add(ctx, items[first])
					told.note(first, 1, []bool{isNew}, err)
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
	found, err := scalable(t, s.Client(patient), rare()).ExistsAll(ctx, items)
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
	may := func(rule string) { // also for the server's own user, by which scripts run
		for line := range strings.Lines(testenv.Ask(t, addr, "ACL USERS")) {
			if user := strings.TrimSpace(line); !strings.ContainsAny(user[:1], "*$") {
				if reply := testenv.Ask(t, addr, "ACL SETUSER "+user+" "+rule); reply != "+OK\r\n" {
					t.Fatalf("ACL SETUSER: got %q, want +OK", reply)
				}
			}
		}
	}
	may("-pexpire")
	for _, isNew := range []bool{true, false} {
		added, err := f.Add(t.Context(), "a")
		if added != isNew || !errors.Is(err, bloom.ErrNoTTL) || !bloom.InFilter(err) {
			t.Errorf("Add = %v, %v, want %v and ErrNoTTL", added, err, isNew)
		}
	}
	may("+pexpire")
	add(t, f, "a", false)
	wantTTL(t, s, time.Hour)
}

// A script makes room for a batch, and then the batch fails: its items are not
// done, and the string is another. The call is safe to retry only if the script
// certainly changed nothing.
func TestScalableSafeToRetryAfterGrowth(t *testing.T) {
	cfg := bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01}
	for _, full := range []bool{false, true} {
		for request := range int64(4) {
			for name, fault := range map[string]upstashtest.Fault{
				"lost":    upstashtest.Drop(upstashtest.AfterExec),
				"refused": upstashtest.ErrorObject("ERR max daily request limit exceeded"),
			} {
				s := upstashtest.NewServer(t)
				f, err := bloom.NewScalable(s.Client(upstash.WithRetry(0)), key, cfg)
				noError(t, err)
				if full {
					create(t, f, true)
					setTaken(t, s, 990)
				}
				before := do(t, s, "GET", key)
				s.Inject(append(make([]upstashtest.Fault, request), fault)...)
				_, err = f.AddAll(t.Context(), slices.Collect(mails(1000, 1040)))
				what := fmt.Sprintf("full %t, request %d %s", full, request, name)
				if err == nil {
					continue // there was no such request
				}
				var batch *bloom.BatchError
				if !errors.As(err, &batch) {
					t.Fatalf("%s: %v, want a BatchError", what, err)
				}
				changed := do(t, s, "GET", key) != before
				if upstash.SafeToRetry(err) && changed {
					t.Errorf("%s: safe to retry, and the string is another: %v", what, err)
				}
				scripts := batch.Count(bloom.ItemNotDone) == 40
				if !changed && scripts && name == "refused" && !upstash.SafeToRetry(err) {
					t.Errorf("%s: nothing was changed, and it is not safe to retry: %v", what, err)
				}
				if name == "refused" && !scripts {
					t.Errorf("%s: %v, want 40 items not done", what, err)
				}
			}
		}
	}
}

// Another filter takes the place of ours during a batch, or between two rounds
// of a sequence: what was added before is gone.
func TestBatchMeetsAnotherFilter(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := small()
	// an item a request
	create(t, handle(t, s.Client(), middling()), true)
	do(t, s, "RENAME", key, "other")
	replace := func() { do(t, s, "COPY", "other", key, "REPLACE") }
	fresh := func() *bloom.Filter {
		do(t, s, "DEL", key)
		f := batched(handle(t, s.Client(), cfg), 1, 1)
		create(t, f, true)
		return f
	}
	for _, elsewhere := range []bool{false, true} { // another call of the handle meets it
		f, asked := fresh(), 0
		seq := func(yield func(string) bool) {
			for item := range mails(0, 5) {
				if asked++; asked == 3 {
					replace()
					if elsewhere {
						_, _ = f.Exists(t.Context(), "x")
					}
				}
				if !yield(item) {
					return
				}
			}
		}
		r, err := f.AddSeq(t.Context(), seq)
		wantMismatch(t, err)
		if r != (bloom.AddResult{}) || upstash.SafeToRetry(err) || bloom.InFilter(err) {
			t.Errorf("AddSeq = %+v, %v, safe to retry %t, in the filter %t, want zeros and false",
				r, err, upstash.SafeToRetry(err), bloom.InFilter(err))
		}
	}
	f := fresh()
	during(s, 3, replace)
	_, err := f.AddAll(t.Context(), slices.Collect(mails(0, 4)))
	var batch *bloom.BatchError
	want := []bloom.ItemState{bloom.ItemUnknown, bloom.ItemUnknown, bloom.ItemNotDone, bloom.ItemNotDone}
	if !errors.As(err, &batch) || !slices.Equal(batch.Items, want) {
		t.Errorf("AddAll = %v, want the states %v", err, want)
	}
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
