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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// These must never appear in an error or a log line.
const (
	secretToken = "token-that-is-secret"
	secretKey   = "key-that-is-secret"
	secretItem  = "item-that-is-secret"
)

// TestUnderFaults runs random operations on each type while a quarter of all
// requests meet a fault, and compares every answer with an exact set.
// UPBLOOM_FAULT_OPS sets the number of operations.
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
	share := max(1, ops/(each*len(faultTypes)))
	reports := make(map[string]*faultReport)
	var running sync.WaitGroup
	for i, of := range faultTypes {
		reports[of.name] = newFaultReport()
		for j := range each {
			w := newFaultWorker(t, uint64(i*each+j), of, reports[of.name])
			running.Go(func() { w.run(share) })
		}
	}
	running.Wait()
	all := newFaultReport()
	for _, of := range faultTypes {
		t.Logf("%-8s %v", of.name, reports[of.name].summary())
		all.merge(reports[of.name])
	}
	t.Logf("%d operations\n%s", share*each*len(faultTypes), all)
	for _, f := range append(upstashtest.EveryFault(), upstashtest.Evict()) {
		if ops >= 2000 && all.count(f.String()) == 0 {
			t.Errorf("no operation met the fault %v", f)
		}
	}
}

// A faultType is a type of filter. Its key is evicted before one request in
// evicted.
type faultType struct {
	name    string
	evicted int
	open    func(w *faultWorker, c *upstash.Client) faultSubject
}

// A faultSubject runs operations on a filter, and knows what is in it.
type faultSubject interface {
	create(ctx context.Context) error
	one(ctx context.Context) error
	// forget notes that the filter may have been gone at any time until now.
	forget()
	// revive makes a missing filter again, if no Add does.
	revive(ctx context.Context) error
	// finish compares everything stored with what is known. other is a handle
	// without faults.
	finish(other faultSubject)
}

// A faultWorker has its own database, filter and counter.
type faultWorker struct {
	t       *testing.T
	of      faultType
	rng     *rand.Rand
	server  *upstashtest.Server
	client  *upstash.Client
	subject faultSubject
	report  *faultReport
	log     bytes.Buffer
	faults  []upstashtest.Fault

	next int // items below it were offered to the filter

	added, maybeAdded int64 // to the counter

	mu      sync.Mutex
	met     []string // faults of the operation under way
	evicted bool     // the filter went away during it
	ever    bool     // or before
	calm    bool     // no fault strikes
}

func newFaultWorker(t *testing.T, seed uint64, of faultType, report *faultReport) *faultWorker {
	w := &faultWorker{
		t: t, of: of, rng: rand.New(rand.NewPCG(seed, 42)), report: report,
		server: upstashtest.NewServer(t, upstashtest.WithToken(secretToken)),
		faults: append(upstashtest.EveryFault(),
			upstashtest.NoPermission("EVAL"), upstashtest.NoPermission("TIME"),
			upstashtest.LateExec(30*time.Millisecond)),
	}
	logger := slog.New(slog.NewTextHandler(&w.log, nil))
	w.client = w.server.Client(
		upstash.WithTimeout(250*time.Millisecond), upstash.WithRetry(3),
		upstash.WithBackoff(time.Millisecond, 4*time.Millisecond), upstash.WithMaxResponse(32<<10),
		upstash.WithObserver(func(_ context.Context, e upstash.Event) {
			logger.Info("attempt", "event", fmt.Sprintf("%+v", e), "err", e.Err)
		}))
	w.subject = of.open(w, w.client)
	noError(t, of.open(w, w.server.Client()).create(t.Context()))
	w.server.InjectFunc(w.draw)
	return w
}

// draw strikes one request in four, and evicts the filter before some. It does
// not evict the counter, whose value would then be unknown.
func (w *faultWorker) draw(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm {
		return upstashtest.Fault{}
	}
	if w.rng.IntN(w.of.evicted) == 0 && !slices.Contains(r.Commands, "INCRBY") {
		w.evicted, w.ever = true, true
		w.met = append(w.met, upstashtest.Evict().String())
		return upstashtest.Evict()
	}
	if w.rng.IntN(4) != 0 {
		return upstashtest.Fault{}
	}
	f := w.faults[w.rng.IntN(len(w.faults))]
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

// revive makes a missing filter again, if no Add does. The first attempt may
// fail: an EarlyRefusal waits for the next request, which can be this one.
func (w *faultWorker) revive() {
	s := w.of.open(w, w.server.Client())
	if s.revive(w.t.Context()) == nil {
		return
	}
	if err := s.revive(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}

func (w *faultWorker) setCalm(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm = on
}

func (w *faultWorker) intN(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *faultWorker) run(ops int) {
	for range ops {
		// Most operations give up before a Retry-After of a second is over.
		limit := time.Second
		if w.intN(20) == 0 {
			limit = 10 * time.Second
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), limit)
		err := w.one(ctx)
		cancel()
		w.checkError(err)
		if outcome(err) == "filter gone" && !w.everEvicted() {
			w.t.Errorf("%s: %v, but the filter was never gone", w.of.name, err)
		}
		if w.isEvicted() { // neither earlier items nor this operation's are certain
			w.subject.forget()
		}
		if outcome(err) == "filter gone" {
			w.setCalm(true)
			w.revive()
			w.setCalm(false)
			w.subject.forget()
		}
		w.mu.Lock()
		w.evicted = false
		w.report.add(w.met, outcome(err))
		w.met = nil
		w.mu.Unlock()
	}
	w.server.InjectFunc(nil)
	// An EarlyRefusal may be waiting for the next request.
	_, _ = w.server.Client().Do(w.t.Context(), upstash.Cmd("PING"))
	w.subject.finish(w.of.open(w, w.server.Client()))
	w.finish()
}

func (w *faultWorker) one(ctx context.Context) error {
	switch w.intN(20) {
	case 0:
		return w.subject.create(ctx)
	case 1, 2:
		return w.increment(ctx)
	}
	return w.subject.one(ctx)
}

// item returns one of the last items or, half of the time, a new one.
func (w *faultWorker) item(last int) string {
	n := w.next
	if last = min(last, w.next); w.intN(2) == 0 && last > 0 {
		n = w.next - 1 - w.intN(last)
	} else {
		w.next++
	}
	return secretItem + strconv.Itoa(n)
}

func (w *faultWorker) items(last int) []string {
	items := make([]string, w.intN(30))
	for i := range items {
		items[i] = w.item(last)
	}
	return items
}

func (w *faultWorker) wrong(what string) {
	w.t.Helper()
	w.t.Errorf("%s: %s", w.of.name, what)
}

// statesOf returns the state of each item in a batch's error.
func statesOf(n int, err error) []bloom.ItemState {
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

// finish compares the counter with the increments, and searches the log for
// secrets.
func (w *faultWorker) finish() {
	c := w.server.Client()
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

// outcomes are the columns of the report, in order.
var outcomes = []string{"answered", "full", "uncertain", "filter gone", "did not run", "may have run", "undocumented"}

// outcome classifies the end of an operation by its documented error type.
func outcome(err error) string {
	var call *upstash.CallError
	var server *upstash.Error
	switch {
	case err == nil, errors.Is(err, bloom.ErrNoTTL) && !errors.Is(err, bloom.ErrUncertain):
		return "answered"
	case errors.Is(err, bloom.ErrFull):
		return "full"
	case errors.Is(err, bloom.ErrUncertain):
		return "uncertain"
	case errors.Is(err, bloom.ErrNotFound), errors.Is(err, bloom.ErrRecreated):
		return "filter gone"
	case !errors.As(err, &call) && !errors.As(err, &server) && !errors.Is(err, upstash.ErrBadResponse) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, upstash.ErrReadOnly):
		return "undocumented"
	case upstash.SafeToRetry(err):
		return "did not run"
	}
	return "may have run"
}

// checkError fails on errors of no documented type, and on those that show
// secrets under any verb.
func (w *faultWorker) checkError(err error) {
	if outcome(err) == "undocumented" {
		w.t.Errorf("an error of no documented type: %v (%T)", err, err)
	}
	if leaks(fmt.Sprintf("%v|%+v|%#v|%q", err, err, err, err)) {
		w.t.Error("an error holds the token, a key or an item")
	}
}

func leaks(text string) bool {
	return strings.Contains(text, secretToken) || strings.Contains(text, secretKey) ||
		strings.Contains(text, secretItem)
}

// faultReport counts, for each kind of fault, the ends of the operations that
// met it.
type faultReport struct {
	mu   sync.Mutex
	ends map[string]map[string]int
}

func newFaultReport() *faultReport {
	return &faultReport{ends: make(map[string]map[string]int)}
}

func (r *faultReport) add(met []string, end string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(met) == 0 {
		met = []string{"(none)"}
	}
	for _, fault := range met {
		if r.ends[fault] == nil {
			r.ends[fault] = make(map[string]int)
		}
		r.ends[fault][end]++
	}
}

// merge adds the counts of another report.
func (r *faultReport) merge(other *faultReport) {
	for fault, ends := range other.ends {
		if r.ends[fault] == nil {
			r.ends[fault] = make(map[string]int)
		}
		for end, n := range ends {
			r.ends[fault][end] += n
		}
	}
}

// summary returns the number of faults, and the ends of the operations that met
// one.
func (r *faultReport) summary() string {
	faults, ends := 0, make(map[string]int)
	for fault, counts := range r.ends {
		for end, n := range counts {
			if ends[end] += n; fault != "(none)" {
				faults += n
			}
		}
	}
	return fmt.Sprintf("%d faults; %v", faults, ends)
}

func (r *faultReport) count(fault string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.ends[fault] {
		n += c
	}
	return n
}

// String returns a table with a row for each fault: how often it was met, and
// how the operations ended.
func (r *faultReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s %8s", "fault", "met")
	for _, end := range outcomes {
		fmt.Fprintf(&b, " %13s", end)
	}
	names := make([]string, 0, len(r.ends))
	for name := range r.ends {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\n%-26s %8d", name, r.count(name))
		for _, end := range outcomes {
			fmt.Fprintf(&b, " %13d", r.ends[name][end])
		}
	}
	return b.String()
}
