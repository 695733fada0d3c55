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
	report := faultReport{counts: make(map[metFault]int)}
	var running sync.WaitGroup
	for i, of := range faultTypes {
		for j := range each {
			w := newFaultWorker(t, uint64(i*each+j), of, &report)
			running.Go(func() { w.run(share) })
		}
	}
	running.Wait()
	for _, of := range faultTypes {
		t.Logf("%-8s %d faults", of.name, report.sum(func(m metFault) bool {
			return m.filter == of.name && m.fault != noFault
		}))
	}
	t.Logf("%d operations\n%s", share*each*len(faultTypes), &report)
	for _, f := range append(upstashtest.EveryFault(), upstashtest.Evict()) {
		if ops >= 2000 && report.sum(func(m metFault) bool { return m.fault == f.String() }) == 0 {
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

// is reports whether a flag is set, and set sets or clears it.
func (w *faultWorker) is(flag *bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *flag
}

func (w *faultWorker) set(flag *bool, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*flag = on
}

// revive makes a missing filter again, if no Add does. The first attempt may
// fail: an early-refusal waits for the next request, which can be this one.
func (w *faultWorker) revive() {
	s := w.of.open(w, w.server.Client())
	if s.revive(w.t.Context()) == nil {
		return
	}
	if err := s.revive(w.t.Context()); err != nil {
		w.t.Error(err)
	}
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
		if outcome(err) == "filter gone" && !w.is(&w.ever) {
			w.t.Errorf("%s: %v, but the filter was never gone", w.of.name, err)
		}
		if w.is(&w.evicted) { // neither earlier items nor this operation's are certain
			w.subject.forget()
		}
		if outcome(err) == "filter gone" {
			w.set(&w.calm, true)
			w.revive()
			w.set(&w.calm, false)
			w.subject.forget()
		}
		w.mu.Lock()
		w.evicted = false
		w.report.add(w.of.name, w.met, outcome(err))
		w.met = nil
		w.mu.Unlock()
	}
	w.server.InjectFunc(nil)
	// An early-refusal may be waiting for the next request.
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
	_, call := errors.AsType[*upstash.CallError](err)
	_, server := errors.AsType[*upstash.Error](err)
	switch {
	case err == nil, errors.Is(err, bloom.ErrNoTTL) && !errors.Is(err, bloom.ErrUncertain):
		return "answered"
	case errors.Is(err, bloom.ErrFull):
		return "full"
	case errors.Is(err, bloom.ErrUncertain):
		return "uncertain"
	case errors.Is(err, bloom.ErrNotFound), errors.Is(err, bloom.ErrRecreated):
		return "filter gone"
	case !call && !server && !errors.Is(err, upstash.ErrBadResponse) &&
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

// faultReport counts how operations ended that met a fault, or none.
type faultReport struct {
	mu     sync.Mutex
	counts map[metFault]int
}

type metFault struct{ filter, fault, end string }

const noFault = "(none)"

func (r *faultReport) add(filter string, met []string, end string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(met) == 0 {
		met = []string{noFault}
	}
	for _, fault := range met {
		r.counts[metFault{filter, fault, end}]++
	}
}

// sum adds up some of the counts.
func (r *faultReport) sum(of func(metFault) bool) (n int) {
	for m, count := range r.counts {
		if of(m) {
			n += count
		}
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
	faults := make(map[string]bool)
	for m := range r.counts {
		faults[m.fault] = true
	}
	for _, fault := range slices.Sorted(maps.Keys(faults)) {
		fmt.Fprintf(&b, "\n%-26s %8d", fault, r.sum(func(m metFault) bool { return m.fault == fault }))
		for _, end := range outcomes {
			fmt.Fprintf(&b, " %13d", r.sum(func(m metFault) bool { return m.fault == fault && m.end == end }))
		}
	}
	return b.String()
}

// faultTypes are the types in TestUnderFaults. Each filter is so large that a
// false positive would be a surprise. The Window's Span is too long to forget
// anything, and the Scalable is evicted seldom enough to grow.
var faultTypes = []faultType{
	{"Filter", 100, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.New(c, secretKey, bloom.Config{
			Bits: 53 * 20_000, Hashes: 10, TTL: time.Hour,
		})
		return w.members(batched(f, 2000, 0), err, func(ctx context.Context) error { return errorOf(f.Stats(ctx)) })
	}},
	{"Window", 100, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.NewWindow(c, secretKey, bloom.WindowConfig{
			Capacity: 5000, FPRate: 1e-8, Span: 24 * time.Hour,
		})
		return w.members(batched(f, 4000, 0), err, func(ctx context.Context) error { return errorOf(f.Stats(ctx)) })
	}},
	{"Scalable", 3000, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.NewScalable(c, secretKey, bloom.ScalableConfig{
			Capacity: 1000, FPRate: 1e-8, TTL: time.Hour,
		})
		return w.members(batched(f, 8000, 0), err, func(ctx context.Context) error { return errorOf(f.Stats(ctx)) })
	}},
	{"Sharded", 300, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.NewSharded([]*upstash.Client{c}, secretKey, bloom.ShardedConfig{
			Capacity: 60_000, FPRate: 1e-9, Shards: 3,
		})
		m := w.members(batched(f, 2000, 0), err, func(ctx context.Context) error { return errorOf(f.Stats(ctx)) })
		m.remove = f.Delete
		return m
	}},
	{"Cuckoo", 100, openCopies},
}

// members is a filter and the set of its items.
type members struct {
	*faultWorker
	filter bloomtest.Adder
	stats  func(context.Context) error
	// remove is Delete, for a type that can lose a part and whose Add does not
	// make a missing filter.
	remove func(context.Context) (bool, error)
	known  map[string]bool // true: certainly in; false: perhaps
}

func (w *faultWorker) members(f bloomtest.Adder, err error, stats func(context.Context) error) *members {
	noError(w.t, err)
	return &members{faultWorker: w, filter: f, stats: stats, known: make(map[string]bool)}
}

func (m *members) create(ctx context.Context) error {
	created, err := m.filter.Create(ctx)
	for _, in := range m.known {
		if created && err == nil && in && !m.is(&m.evicted) {
			m.wrong("Create made a filter that was there")
			break
		}
	}
	return err
}

func (m *members) forget() {
	for item := range m.known {
		m.known[item] = false
	}
}

func (m *members) revive(ctx context.Context) error {
	if m.remove == nil {
		return nil
	}
	if _, err := m.remove(ctx); err != nil {
		return err
	}
	_, err := m.filter.Create(ctx)
	return err
}

func (m *members) one(ctx context.Context) error {
	switch m.intN(9) {
	case 0, 1, 2:
		return m.add(ctx, m.item(m.next))
	case 3, 4:
		return m.exists(ctx, m.item(m.next))
	case 5, 6:
		return m.addAll(ctx, m.items(m.next))
	case 7:
		return m.existsAll(ctx, m.items(m.next))
	}
	return m.stats(ctx)
}

func (m *members) add(ctx context.Context, item string) error {
	added, err := m.filter.Add(ctx, item)
	m.judgeAdd(item, added, err == nil || errors.Is(err, bloom.ErrNoTTL) && !errors.Is(err, bloom.ErrUncertain))
	m.note(item, bloom.InFilter(err), upstash.SafeToRetry(err))
	return err
}

// isKnown returns what is known of an item while an operation is judged.
func (m *members) isKnown(item string) (in, offered bool) {
	in, offered = m.known[item]
	return in && !m.is(&m.evicted), offered
}

// judgeAdd compares an answer with what was known before it.
func (m *members) judgeAdd(item string, added, answered bool) {
	in, offered := m.isKnown(item)
	switch {
	case !answered:
	case added && in:
		m.wrong("an item that is in the filter was new: it had been lost")
	case !added && !offered:
		m.wrong("a new item was seen: its \"new\" is lost")
	}
}

// note records what is known of an item from now on.
func (m *members) note(item string, in, untouched bool) {
	if in {
		m.known[item] = true
	} else if _, offered := m.known[item]; !offered && !untouched {
		m.known[item] = false
	}
}

func (m *members) exists(ctx context.Context, item string) error {
	found, err := m.filter.Exists(ctx, item)
	m.judgeExists(item, found, err == nil)
	return err
}

func (m *members) judgeExists(item string, found, answered bool) {
	in, offered := m.isKnown(item)
	switch {
	case !answered:
	case !found && in:
		m.wrong("a false negative")
	case found && !offered:
		m.wrong("an item that was never offered was found")
	}
}

func (m *members) addAll(ctx context.Context, items []string) error {
	answers, err := m.filter.AddAll(ctx, items)
	states := statesOf(len(items), err)
	for i, item := range items {
		done := states[i] == bloom.ItemDone
		m.judgeAdd(item, done && answers[i], done)
		m.note(item, done || states[i] == bloom.ItemUncertain, states[i] == bloom.ItemNotDone)
	}
	return err
}

func (m *members) existsAll(ctx context.Context, items []string) error {
	answers, err := m.filter.ExistsAll(ctx, items)
	states := statesOf(len(items), err)
	for i, item := range items {
		done := states[i] == bloom.ItemDone
		m.judgeExists(item, done && answers[i], done)
	}
	return err
}

func (m *members) finish(other faultSubject) {
	var items []string
	for item, in := range m.known {
		if in {
			items = append(items, item)
		}
	}
	found, err := other.(*members).filter.ExistsAll(m.t.Context(), items)
	if err != nil && !(errors.Is(err, bloom.ErrNotFound) && len(items) == 0) {
		m.t.Error(err)
	}
	for _, yes := range found {
		if !yes {
			m.wrong("an item is missing at the end")
		}
	}
}

// copies is a Cuckoo, with the number of copies it holds of each item.
type copies struct {
	*faultWorker
	filter *bloom.Cuckoo
	known  map[string]*copyCount
	late   bool // the last call may still take effect
}

// copyCount bounds the copies of an item. It counts the Adds and Removes of
// unknown outcome that could still take effect.
type copyCount struct{ least, most, adds, removes int }

func openCopies(w *faultWorker, c *upstash.Client) faultSubject {
	f, err := bloom.NewCuckoo(c, secretKey, bloom.CuckooConfig{
		Capacity: 20_000, FPRate: 6e-8,
	})
	noError(w.t, err)
	batched(f, 6000, 1)
	return &copies{faultWorker: w, filter: f, known: make(map[string]*copyCount)}
}

func (c *copies) of(item string) *copyCount {
	if c.known[item] == nil {
		c.known[item] = new(copyCount)
	}
	return c.known[item]
}

// atLeast and atMost allow for calls that take effect late.
func (c *copies) atLeast(item string) int {
	if c.is(&c.evicted) {
		return 0
	}
	n := c.of(item)
	return max(0, n.least-n.removes)
}

func (c *copies) atMost(item string) int {
	n := c.of(item)
	return n.most + n.adds
}

func (c *copies) create(ctx context.Context) error {
	created, err := c.filter.Create(ctx)
	if created && err == nil {
		for item := range c.known {
			if c.atLeast(item) > 0 {
				c.wrong("Create made a filter that was there")
				break
			}
		}
	}
	return err
}

func (c *copies) forget() {
	for _, n := range c.known {
		n.least = 0
	}
}

func (c *copies) revive(context.Context) error { return nil }

func (c *copies) one(ctx context.Context) error {
	const last = 20 // few, so some are added once too often
	item := c.item(last)
	switch c.intN(10) {
	case 0, 1, 2:
		added, err := c.filter.Add(ctx, item)
		return c.judge(c.added, []string{item}, []bool{added}, err)
	case 3:
		removed, err := c.filter.Remove(ctx, item)
		return c.judge(c.removed, []string{item}, []bool{removed}, err)
	case 4:
		found, err := c.filter.Exists(ctx, item)
		return c.judge(c.found, []string{item}, []bool{found}, err)
	case 5, 6:
		items := c.items(last)
		added, err := c.filter.AddAll(ctx, items)
		return c.judge(c.added, items, added, err)
	case 7:
		items := c.items(last)
		removed, err := c.filter.RemoveAll(ctx, items)
		return c.judge(c.removed, items, removed, err)
	case 8:
		items := c.items(last)
		found, err := c.filter.ExistsAll(ctx, items)
		return c.judge(c.found, items, found, err)
	}
	st, err := c.filter.Stats(ctx)
	if err == nil && st.Damaged {
		c.wrong("the table is damaged")
	}
	return err
}

// judge calls take with the answer or the state of each item.
func (c *copies) judge(
	take func(item string, yes bool, state bloom.ItemState), items []string, yes []bool, err error,
) error {
	states := statesOf(len(items), err)
	if batch := (*bloom.BatchError)(nil); err != nil && !errors.As(err, &batch) && !upstash.SafeToRetry(err) {
		states[0] = bloom.ItemUnknown
	}
	var refused []string
	for i, item := range items {
		take(item, yes[i], states[i])
		if states[i] == bloom.ItemNotDone {
			refused = append(refused, item)
		}
	}
	if errors.Is(err, bloom.ErrFull) && !c.late && c.hasRoom(refused) {
		c.wrong("full, and there is room")
	}
	// An attempt without an answer can still run later.
	c.late = err != nil && !errors.Is(err, bloom.ErrFull)
	return err
}

// hasRoom reports whether the stored table has room for items.
func (c *copies) hasRoom(items []string) bool {
	reply, err := c.server.Exec("GET", secretKey)
	if err != nil {
		c.t.Error(err)
	}
	text, _ := reply.(string)
	now := newTable(c.filter.Geometry())
	for bucket := range now.buckets() {
		if w := wordIn(text, bucket); w != 0 {
			now.words[bucket] = w
		}
	}
	_, full := now.add(items)
	return full < 0
}

func (c *copies) added(item string, isNew bool, state bloom.ItemState) {
	n := c.of(item)
	switch {
	case state == bloom.ItemNotDone:
	case state != bloom.ItemDone:
		n.adds++
	case isNew:
		if c.atLeast(item) > 0 {
			c.wrong("an item that is in the filter was new")
		}
		n.least, n.most = 1, 1
	default:
		if c.atMost(item) == 0 {
			c.wrong("an item of which there is no copy was seen")
		}
		n.least, n.most = max(2, n.least+1), n.most+1
	}
}

func (c *copies) removed(item string, was bool, state bloom.ItemState) {
	n := c.of(item)
	switch {
	case state == bloom.ItemNotDone:
	case state != bloom.ItemDone:
		n.removes++
	case was:
		if c.atMost(item) == 0 {
			c.wrong("an item of which there is no copy was removed")
		}
		n.least, n.most = max(0, n.least-1), n.most-1
	default:
		if c.atLeast(item) > 0 {
			c.wrong("an item that is in the filter was not there to be removed")
		}
		n.least, n.most = 0, 0
	}
}

func (c *copies) found(item string, was bool, state bloom.ItemState) {
	n := c.of(item)
	switch {
	case state != bloom.ItemDone:
	case was:
		if c.atMost(item) == 0 {
			c.wrong("an item of which there is no copy was found")
		}
		n.least = max(1, n.least)
	default:
		if c.atLeast(item) > 0 {
			c.wrong("a false negative")
		}
		n.least, n.most = 0, 0
	}
}

func (c *copies) finish(other faultSubject) {
	f, ctx := other.(*copies).filter, c.t.Context()
	items := slices.Collect(maps.Keys(c.known))
	found, err := f.ExistsAll(ctx, items)
	if errors.Is(err, bloom.ErrNotFound) {
		found, err = make([]bool, len(items)), nil
	}
	if c.judge(c.found, items, found, err) != nil {
		c.t.Error(err)
	}
	least, most := 0, 0
	for _, item := range items {
		least, most = least+c.atLeast(item), most+c.atMost(item)
	}
	st, err := f.Stats(ctx)
	switch {
	case errors.Is(err, bloom.ErrNotFound) && least == 0:
	case err != nil:
		c.t.Error(err)
	case st.Damaged, st.Items < uint64(least), st.Items > uint64(most):
		c.t.Errorf("at the end: %v; want %d to %d items", st, least, most)
	}
}
