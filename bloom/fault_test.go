package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// What must never be read in an error or a log line.
const (
	secretToken = "token-that-is-secret"
	secretKey   = "key-that-is-secret"
	secretItem  = "item-that-is-secret"
)

// TestUnderFaults runs random operations while a quarter of all requests meet a
// fault, and holds every answer against an exact set. UPBLOOM_FAULT_OPS sets
// how many.
func TestUnderFaults(t *testing.T) {
	ops := 2000
	if s := os.Getenv("UPBLOOM_FAULT_OPS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("UPBLOOM_FAULT_OPS=%q: want a number of operations", s)
		}
		ops = n
	}
	const workers = 4
	report := newFaultReport()
	var running sync.WaitGroup
	for i := range workers {
		w := newFaultWorker(t, uint64(i), report)
		running.Go(func() { w.run(ops / workers) })
	}
	running.Wait()
	t.Logf("%d operations\n%s", ops/workers*workers, report)
	for _, f := range append(upstashtest.EveryFault(), upstashtest.Evict()) {
		if ops >= 2000 && report.count(f.String()) == 0 {
			t.Errorf("no operation met the fault %v", f)
		}
	}
}

// faultWorker works on a database, a filter and a counter of its own.
type faultWorker struct {
	t      *testing.T
	rng    *rand.Rand
	server *upstashtest.Server
	client *upstash.Client
	filter *bloom.Filter
	report *faultReport
	log    bytes.Buffer

	next  int             // items below it were offered to Add
	known map[string]bool // true: certainly in; false: perhaps

	added, maybeAdded int64 // to the counter

	mu      sync.Mutex
	met     []string // faults of the operation under way
	evicted bool     // the filter went away during it
	ever    bool     // or before
}

func newFaultWorker(t *testing.T, seed uint64, report *faultReport) *faultWorker {
	w := &faultWorker{
		t: t, rng: rand.New(rand.NewPCG(seed, 42)), report: report,
		server: upstashtest.NewServer(t, upstashtest.WithToken(secretToken)),
		known:  make(map[string]bool),
	}
	logger := slog.New(slog.NewTextHandler(&w.log, nil))
	w.client = w.server.Client(
		upstash.WithTimeout(100*time.Millisecond), upstash.WithRetry(3),
		upstash.WithBackoff(time.Millisecond, 4*time.Millisecond), upstash.WithMaxResponse(32<<10),
		upstash.WithObserver(func(_ context.Context, e upstash.Event) {
			logger.Info("attempt", "event", fmt.Sprintf("%+v", e), "err", e.Err)
		}))
	w.filter = w.handle(w.client)
	if _, err := w.handle(w.server.Client()).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.server.InjectFunc(w.draw)
	return w
}

// handle is so large that a false positive would be a surprise: 10^-13 at the
// end.
func (w *faultWorker) handle(c *upstash.Client) *bloom.Filter {
	f, err := bloom.New(c, secretKey, bloom.Config{
		Bits: 53 * 20_000, Hashes: 10, TTL: time.Hour, BatchBytes: 2000,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// draw strikes one request in four, and lets the filter vanish before one in a
// hundred. It does not evict the counter, whose value could not be known then.
func (w *faultWorker) draw(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rng.IntN(100) == 0 && !slices.Contains(r.Commands, "INCRBY") {
		w.evicted, w.ever = true, true
		w.met = append(w.met, upstashtest.Evict().String())
		return upstashtest.Evict()
	}
	if w.rng.IntN(4) != 0 {
		return upstashtest.Fault{}
	}
	all := upstashtest.EveryFault()
	f := all[w.rng.IntN(len(all))]
	w.met = append(w.met, f.String())
	return f
}

func (w *faultWorker) isEvicted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.evicted
}

func (w *faultWorker) everEvicted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ever
}

// isKnown is what is known of an item while an operation is judged.
func (w *faultWorker) isKnown(item string) (in, offered bool) {
	in, offered = w.known[item]
	return in && !w.isEvicted(), offered
}

func (w *faultWorker) intN(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *faultWorker) run(ops int) {
	for range ops {
		// A second of Retry-After is sat out now and then, not always.
		limit := 700 * time.Millisecond
		if w.intN(20) == 0 {
			limit = 10 * time.Second
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), limit)
		err := w.one(ctx)
		cancel()
		w.checkError(err)
		if outcome(err) == "filter gone" && !w.everEvicted() {
			w.t.Errorf("the filter never went away, but: %v", err)
		}
		if w.isEvicted() { // whatever was in, and what this operation added
			for item := range w.known {
				w.known[item] = false
			}
		}
		w.mu.Lock()
		w.evicted = false
		w.report.add(w.met, outcome(err))
		w.met = nil
		w.mu.Unlock()
	}
	w.server.InjectFunc(nil)
	w.finish()
}

func (w *faultWorker) one(ctx context.Context) error {
	switch w.intN(10) {
	case 0, 1, 2:
		return w.add(ctx, w.item())
	case 3, 4:
		return w.exists(ctx, w.item())
	case 5, 6:
		return w.addAll(ctx, w.items())
	case 7:
		return w.existsAll(ctx, w.items())
	case 8:
		return w.increment(ctx)
	}
	_, err := w.filter.Stats(ctx)
	return err
}

// item is an old item or, half of the time, a new one.
func (w *faultWorker) item() string {
	n := w.intN(2 * (w.next + 1))
	if n >= w.next {
		n = w.next
		w.next++
	}
	return secretItem + strconv.Itoa(n)
}

func (w *faultWorker) items() []string {
	items := make([]string, w.intN(30))
	for i := range items {
		items[i] = w.item()
	}
	return items
}

func (w *faultWorker) add(ctx context.Context, item string) error {
	added, err := w.filter.Add(ctx, item)
	w.judgeAdd(item, added, err == nil)
	w.note(item, err == nil || errors.Is(err, bloom.ErrUncertain), upstash.SafeToRetry(err))
	return err
}

// judgeAdd compares an answer with what was known before it.
func (w *faultWorker) judgeAdd(item string, added, answered bool) {
	in, offered := w.isKnown(item)
	switch {
	case !answered:
	case added && in:
		w.t.Error("an item that is in the filter was new: it had been lost")
	case !added && !offered:
		w.t.Error("a new item was seen: its \"new\" is lost")
	}
}

// note keeps what is known of an item from now on.
func (w *faultWorker) note(item string, in, untouched bool) {
	if in {
		w.known[item] = true
	} else if _, offered := w.known[item]; !offered && !untouched {
		w.known[item] = false
	}
}

func (w *faultWorker) exists(ctx context.Context, item string) error {
	found, err := w.filter.Exists(ctx, item)
	w.judgeExists(item, found, err == nil)
	return err
}

func (w *faultWorker) judgeExists(item string, found, answered bool) {
	in, offered := w.isKnown(item)
	switch {
	case !answered:
	case !found && in:
		w.t.Error("a false negative")
	case found && !offered:
		w.t.Error("an item that was never offered was found")
	}
}

func (w *faultWorker) addAll(ctx context.Context, items []string) error {
	answers, err := w.filter.AddAll(ctx, items)
	states := w.states(len(items), err)
	for i, item := range items {
		done := states[i] == bloom.ItemDone
		w.judgeAdd(item, done && answers[i], done)
		w.note(item, done || states[i] == bloom.ItemUncertain, states[i] == bloom.ItemNotDone)
	}
	return err
}

func (w *faultWorker) existsAll(ctx context.Context, items []string) error {
	answers, err := w.filter.ExistsAll(ctx, items)
	states := w.states(len(items), err)
	for i, item := range items {
		done := states[i] == bloom.ItemDone
		w.judgeExists(item, done && answers[i], done)
	}
	return err
}

// states is what a batch's error says of its items.
func (w *faultWorker) states(n int, err error) []bloom.ItemState {
	var batch *bloom.BatchError
	if errors.As(err, &batch) {
		return batch.Items
	}
	states := make([]bloom.ItemState, n)
	for i := range states {
		if err == nil {
			states[i] = bloom.ItemDone
		}
	}
	return states
}

func (w *faultWorker) increment(ctx context.Context) error {
	reply, err := w.client.Do(ctx, upstash.Cmd("INCRBY", "counter", "1"))
	switch {
	case err == nil:
		w.added++
		if _, err = reply.Int64(); err != nil {
			return err
		}
	case !upstash.SafeToRetry(err):
		w.maybeAdded++
	}
	return err
}

// finish compares all that is stored with what was done. Its client waits as
// long as it takes.
func (w *faultWorker) finish() {
	c := w.server.Client()
	var items []string
	for item, in := range w.known {
		if in {
			items = append(items, item)
		}
	}
	found, err := w.handle(c).ExistsAll(w.t.Context(), items)
	if err != nil && !(errors.Is(err, bloom.ErrNotFound) && len(items) == 0) {
		w.t.Error(err)
	}
	for _, yes := range found {
		if !yes {
			w.t.Error("an item is missing at the end")
		}
	}
	reply, err := c.Do(w.t.Context(), upstash.Cmd("INCRBY", "counter", "0"))
	if err != nil {
		w.t.Error(err)
		return
	}
	n, err := reply.Int64()
	if err != nil || n < w.added || n > w.added+w.maybeAdded {
		w.t.Errorf("the counter is %d after %d increments and %d of unknown outcome (%v)",
			n, w.added, w.maybeAdded, err)
	}
	if text := w.log.String(); leaks(text) {
		w.t.Error("a log line holds the token, a key or an item")
	} else if len(text) == 0 {
		w.t.Error("nothing was logged")
	}
}
