package bloom_test

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

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
