package bloom_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// faultTypes are the types in TestUnderFaults. Each filter is so large that a
// false positive would be a surprise. The Window's Span is too long to forget
// anything, and the Scalable is evicted seldom enough to grow.
var faultTypes = []faultType{
	{"Filter", 100, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.New(c, secretKey, bloom.Config{
			Bits: 53 * 20_000, Hashes: 10, TTL: time.Hour, BatchBytes: 2000,
		})
		return w.members(f, err, func(ctx context.Context) error { return errorOf(f.Stats(ctx)) })
	}},
	{"Window", 100, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.NewWindow(c, secretKey, bloom.WindowConfig{
			Capacity: 5000, FPRate: 1e-8, Span: 24 * time.Hour, BatchBytes: 4000,
		})
		return w.members(f, err, func(ctx context.Context) error { return errorOf(f.Stats(ctx)) })
	}},
	{"Scalable", 3000, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.NewScalable(c, secretKey, bloom.ScalableConfig{
			Capacity: 1000, FPRate: 1e-8, TTL: time.Hour, BatchBytes: 8000,
		})
		return w.members(f, err, func(ctx context.Context) error { return errorOf(f.Stats(ctx)) })
	}},
	{"Sharded", 300, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.NewSharded([]*upstash.Client{c}, secretKey, bloom.ShardedConfig{
			Capacity: 60_000, FPRate: 1e-9, Shards: 3, BatchBytes: 2000,
		})
		m := w.members(f, err, func(ctx context.Context) error { return errorOf(f.Stats(ctx)) })
		m.remove = f.Delete
		return m
	}},
	{"Cuckoo", 100, openCopies},
}

// memberFilter is the common part of the types for sets.
type memberFilter interface {
	Create(ctx context.Context) (bool, error)
	Add(ctx context.Context, item string) (bool, error)
	AddAll(ctx context.Context, items []string) ([]bool, error)
	Exists(ctx context.Context, item string) (bool, error)
	ExistsAll(ctx context.Context, items []string) ([]bool, error)
}

// members is a filter and the set of its items.
type members struct {
	*faultWorker
	filter memberFilter
	stats  func(context.Context) error
	// remove is Delete, for a type that can lose a part and whose Add does not
	// make a missing filter.
	remove func(context.Context) (bool, error)
	known  map[string]bool // true: certainly in; false: perhaps
}

func (w *faultWorker) members(f memberFilter, err error, stats func(context.Context) error) *members {
	if err != nil {
		w.t.Fatal(err)
	}
	return &members{faultWorker: w, filter: f, stats: stats, known: make(map[string]bool)}
}

func (m *members) create(ctx context.Context) error {
	created, err := m.filter.Create(ctx)
	for _, in := range m.known {
		if created && err == nil && in && !m.isEvicted() {
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
	return in && !m.isEvicted(), offered
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
		Capacity: 20_000, FPRate: 6e-8, BatchBytes: 6000, BatchParallel: 1,
	})
	if err != nil {
		w.t.Fatal(err)
	}
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
	if c.isEvicted() {
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
