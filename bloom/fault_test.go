package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// These must never appear in an error or a log line.
const (
	secretToken = "token-that-is-secret"
	secretKey   = "key-that-is-secret"
	secretItem  = "item-that-is-secret"
)

// Each of these filters is so large that a false positive would be a surprise. The
// Window's Span is too long to forget anything.
var faultTypes = []struct {
	cfg   any
	bytes int // of a request
}{
	{bloom.Config{Bits: 53 * 20_000, Hashes: 10, TTL: time.Hour}, 2000},
	{bloom.WindowConfig{Capacity: 5000, FPRate: 1e-8, Span: 24 * time.Hour}, 4000},
	{bloom.ScalableConfig{Capacity: 1000, FPRate: 1e-8, TTL: time.Hour}, 8000},
	{bloom.ShardedConfig{Capacity: 60_000, FPRate: 1e-9, Shards: 3}, 2000},
	{bloom.CuckooConfig{Capacity: 20_000, FPRate: 6e-8}, 6000},
}

// TestUnderFaults makes random calls of each type while a quarter of all requests
// meet a fault. No item that is in is missing, no item is seen that was never
// offered, each error is of a documented type, and none shows a secret.
// UPBLOOM_FAULT_OPS sets the number of calls. What else an answer may say, also of
// a filter that goes away, is for package proof.
func TestUnderFaults(t *testing.T) {
	ops := 1000
	if s := os.Getenv("UPBLOOM_FAULT_OPS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("UPBLOOM_FAULT_OPS=%q: want a number of operations", s)
		}
		ops = n
	}
	const each = 8 // workers of a type: they mostly wait for timeouts
	met := make(map[string]int)
	var workers []*faultWorker
	var running sync.WaitGroup
	for i, of := range faultTypes {
		for j := range each {
			w := newFaultWorker(t, uint64(i*each+j), of.cfg, of.bytes)
			workers = append(workers, w)
			running.Go(func() { w.run(max(1, ops/(each*len(faultTypes)))) })
		}
	}
	running.Wait()
	for _, w := range workers {
		for _, f := range w.met {
			met[f]++
		}
	}
	t.Logf("%d calls met %v", ops, met)
	for _, f := range upstashtest.EveryFault() {
		if ops >= 2000 && met[f.String()] == 0 {
			t.Errorf("no call met the fault %v", f)
		}
	}
}

// A faultWorker has its own database, filter and counter.
type faultWorker struct {
	t      *testing.T
	server *upstashtest.Server
	client *upstash.Client
	filter bloomtest.Adder
	sound  bloomtest.Adder // the same without faults and short limits
	log    bytes.Buffer

	next              int             // items below it were drawn
	known             map[string]bool // those offered; true: certainly in
	added, maybeAdded int64           // to the counter

	mu  sync.Mutex
	rng *rand.Rand
	met []string // the faults so far
}

func newFaultWorker(t *testing.T, seed uint64, cfg any, limit int) *faultWorker {
	w := &faultWorker{
		t: t, rng: rand.New(rand.NewPCG(seed, 42)), known: make(map[string]bool),
		server: upstashtest.NewServer(t, upstashtest.WithToken(secretToken)),
	}
	faults := append(upstashtest.EveryFault(), upstashtest.NoPermission("EVAL"), upstashtest.NoPermission("TIME"),
		upstashtest.LateExec(30*time.Millisecond))
	logger := slog.New(slog.NewTextHandler(&w.log, nil))
	w.client = w.server.Client(
		upstash.WithTimeout(250*time.Millisecond), upstash.WithRetry(3),
		upstash.WithBackoff(time.Millisecond, 4*time.Millisecond), upstash.WithMaxResponse(32<<10),
		upstash.WithObserver(func(_ context.Context, e upstash.Event) {
			logger.Info("attempt", "event", fmt.Sprintf("%+v", e), "err", e.Err)
		}))
	w.filter = batched(w.open(w.client, cfg), limit, 0)
	w.sound = w.open(w.server.Client(), cfg)
	create(t, w.sound, true)
	w.server.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		if w.intN(4) != 0 {
			return upstashtest.Fault{}
		}
		f := faults[w.intN(len(faults))]
		w.mu.Lock()
		defer w.mu.Unlock()
		w.met = append(w.met, f.String())
		return f
	})
	return w
}

func (w *faultWorker) open(c *upstash.Client, cfg any) bloomtest.Adder {
	return made(w.t, c, secretKey, cfg)
}

func (w *faultWorker) intN(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *faultWorker) run(ops int) {
	for range ops {
		// Most calls give up before a Retry-After of a second is over.
		limit := time.Second
		if w.intN(20) == 0 {
			limit = 10 * time.Second
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), limit)
		w.checkError(w.one(ctx))
		cancel()
	}
	w.finish()
}

func (w *faultWorker) one(ctx context.Context) error {
	switch w.intN(10) {
	case 0:
		return w.increment(ctx)
	case 1, 2, 3:
		item := w.item()
		added, err := w.filter.Add(ctx, item)
		in := bloom.InFilter(err)
		answered := err == nil || errors.Is(err, bloom.ErrNoTTL) && !errors.Is(err, bloom.ErrUncertain)
		w.judgeAdd(item, added, answered, in, upstash.SafeToRetry(err))
		return err
	case 4, 5:
		item := w.item()
		found, err := w.filter.Exists(ctx, item)
		w.judgeExists(item, found, err == nil)
		return err
	case 6, 7:
		items := w.items()
		answers, err := w.filter.AddAll(ctx, items)
		for i, state := range statesOf(len(items), err) {
			done := state == bloom.ItemDone
			w.judgeAdd(items[i], answers[i], done, done || state == bloom.ItemUncertain, state == bloom.ItemNotDone)
		}
		return err
	case 8:
		return w.existsAll(ctx, w.filter, w.items())
	}
	key := secretKey
	if _, is := w.filter.(*bloom.Sharded); is {
		key += ":0"
	}
	return errorOf(bloom.Inspect(ctx, w.client, key))
}

// item returns an item that may have been offered or, half of the time, a new one.
func (w *faultWorker) item() string {
	n := w.next
	if w.intN(2) == 0 && n > 0 {
		n = w.intN(n)
	} else {
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

// judgeAdd compares an answer with what was known before it, and notes what is
// known now.
func (w *faultWorker) judgeAdd(item string, added, answered, in, untouched bool) {
	wasIn, offered := w.known[item]
	switch {
	case !answered:
	case added && wasIn:
		w.t.Errorf("%T: an item that is in the filter was new: it had been lost", w.filter)
	case !added && !offered:
		w.t.Errorf("%T: a new item was seen: its \"new\" is lost", w.filter)
	}
	if in || !offered && !untouched {
		w.known[item] = in
	}
}

func (w *faultWorker) judgeExists(item string, found, answered bool) {
	in, offered := w.known[item]
	switch {
	case !answered:
	case !found && in:
		w.t.Errorf("%T: a false negative", w.filter)
	case found && !offered:
		w.t.Errorf("%T: an item that was never offered was found", w.filter)
	}
}

func (w *faultWorker) existsAll(ctx context.Context, f bloomtest.Adder, items []string) error {
	answers, err := f.ExistsAll(ctx, items)
	for i, state := range statesOf(len(items), err) {
		w.judgeExists(items[i], answers[i], state == bloom.ItemDone)
	}
	return err
}

// statesOf returns the state of each item in a batch's error.
func statesOf(n int, err error) []bloom.ItemState {
	if batch, is := errors.AsType[*bloom.BatchError](err); is {
		return batch.Items
	}
	state := bloom.ItemNotDone
	if err == nil {
		state = bloom.ItemDone
	}
	return slices.Repeat([]bloom.ItemState{state}, n)
}

func (w *faultWorker) increment(ctx context.Context) error {
	_, err := w.client.Do(ctx, upstash.Cmd("INCRBY", "counter", "1"))
	if err == nil {
		w.added++
	} else if !upstash.SafeToRetry(err) {
		w.maybeAdded++
	}
	return err
}

// finish looks all items up, and compares the counter with the increments.
func (w *faultWorker) finish() {
	w.server.InjectFunc(nil)
	// An early-refusal may be waiting for the next request.
	_, _ = w.server.Client().Do(w.t.Context(), upstash.Cmd("PING"))
	if err := w.existsAll(w.t.Context(), w.sound, slices.Collect(maps.Keys(w.known))); err != nil {
		w.t.Error(err)
	}
	reply, err := w.server.Exec("INCRBY", "counter", "0")
	if n, is := reply.(int64); err != nil || !is || n < w.added || n > w.added+w.maybeAdded {
		w.t.Errorf("the counter is %v after %d increments and %d of unknown outcome (%v)",
			reply, w.added, w.maybeAdded, err)
	}
	if text := w.log.String(); leaks(text) || text == "" {
		w.t.Error("a log line holds the token, a key or an item, or nothing was logged")
	}
}

// checkError fails on errors of no documented type, and on those that show
// secrets under any verb.
func (w *faultWorker) checkError(err error) {
	_, call := errors.AsType[*upstash.CallError](err)
	_, server := errors.AsType[*upstash.Error](err)
	if documented := []error{
		bloom.ErrNoTTL, bloom.ErrFull, bloom.ErrUncertain, upstash.ErrBadResponse, context.DeadlineExceeded,
	}; err != nil && !call && !server && !slices.ContainsFunc(documented, func(e error) bool { return errors.Is(err, e) }) {
		w.t.Errorf("%T: an error of no documented type: %v (%T)", w.filter, err, err)
	}
	if leaks(fmt.Sprintf("%v|%+v|%#v|%q", err, err, err, err)) {
		w.t.Errorf("%T: an error holds the token, a key or an item", w.filter)
	}
}

func leaks(text string) bool {
	return slices.ContainsFunc([]string{secretToken, secretKey, secretItem}, func(s string) bool {
		return strings.Contains(text, s)
	})
}

// immediateFaults are those that neither take effect later nor make the client
// wait.
func immediateFaults() []upstashtest.Fault {
	skipped := []string{
		upstashtest.LateExec(1).String(), upstashtest.Stall(upstashtest.BeforeExec).String(),
		upstashtest.Stall(upstashtest.AfterExec).String(), upstashtest.RateLimit(time.Second).String(),
	}
	faults := slices.DeleteFunc(upstashtest.EveryFault(), func(f upstashtest.Fault) bool {
		return slices.Contains(skipped, f.String())
	})
	return append(faults, upstashtest.RateLimit(0))
}
