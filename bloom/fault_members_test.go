package bloom_test

import (
	"context"
	"errors"
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
		return w.members(f, err, func(ctx context.Context) error { _, err := f.Stats(ctx); return err })
	}},
	{"Window", 100, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.NewWindow(c, secretKey, bloom.WindowConfig{
			Capacity: 5000, FPRate: 1e-8, Span: 24 * time.Hour, BatchBytes: 4000,
		})
		return w.members(f, err, func(ctx context.Context) error { _, err := f.Stats(ctx); return err })
	}},
	{"Scalable", 3000, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.NewScalable(c, secretKey, bloom.ScalableConfig{
			Capacity: 1000, FPRate: 1e-8, TTL: time.Hour, BatchBytes: 8000,
		})
		return w.members(f, err, func(ctx context.Context) error { _, err := f.Stats(ctx); return err })
	}},
	{"Sharded", 300, func(w *faultWorker, c *upstash.Client) faultSubject {
		f, err := bloom.NewSharded([]*upstash.Client{c}, secretKey, bloom.ShardedConfig{
			Capacity: 60_000, FPRate: 1e-9, Shards: 3, BatchBytes: 2000,
		})
		m := w.members(f, err, func(ctx context.Context) error { _, err := f.Stats(ctx); return err })
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
