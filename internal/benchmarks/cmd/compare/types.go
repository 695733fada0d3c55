package main

import (
	"fmt"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// shards is the number of shards of a Sharded, all in one database.
const shards = 4

// typed returns a set of each type. n is the number of items that it is for.
func (a *arena) typed(c *upstash.Client, n uint64) ([]entrant, error) {
	f, err := bloom.New(c, a.key("type-filter"), bloom.Config{Capacity: n, FPRate: rate})
	if err != nil {
		return nil, err
	}
	w, err := bloom.NewWindow(c, a.key("type-window"), bloom.WindowConfig{Capacity: n, FPRate: rate, Span: day})
	if err != nil {
		return nil, err
	}
	grows, err := bloom.NewScalable(c, a.key("type-scalable"), bloom.ScalableConfig{Capacity: n, FPRate: rate})
	if err != nil {
		return nil, err
	}
	spread, err := bloom.NewSharded([]*upstash.Client{c}, a.key("type-sharded"),
		bloom.ShardedConfig{Capacity: n, FPRate: rate, Shards: shards})
	if err == nil {
		_, err = spread.Create(a.ctx)
	}
	if err != nil {
		return nil, err
	}
	cuckoo, err := bloom.NewCuckoo(c, a.key("type-cuckoo"), bloom.CuckooConfig{Capacity: n, FPRate: rate})
	if err != nil {
		return nil, err
	}
	return []entrant{
		{filterName, filterSet{a.calls, f}},
		{windowName, filterSet{a.calls, w}},
		{"upbloom Scalable", filterSet{a.calls, grows}},
		{"upbloom Sharded", filterSet{a.calls, spread}},
		{cuckooName, filterSet{a.calls, cuckoo}},
	}, nil
}

const cuckooName = "upbloom Cuckoo"

// playTypes compares the types in front of Redis. They add new items each time,
// because a Cuckoo keeps every copy of an item.
func playTypes(a *arena, o options, r *report) error {
	c, err := a.client(a.url)
	if err != nil {
		return err
	}
	entrants, err := a.typed(c, capacity)
	if err != nil {
		return err
	}
	for _, e := range entrants {
		if err := check(e.set, checked/2); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	fresh := emails("fresh-", 1<<19)
	for _, size := range []int{1, 1000} {
		for _, write := range []bool{true, false} {
			name := operation(write)
			if size > 1 {
				name = fmt.Sprintf("%sAll(%d)", name, size)
			}
			all := &contest{name: name + " of each type, 1 caller, server: Redis", callers: 1}
			for _, e := range entrants {
				one := enter(e, size, write)
				if write {
					one.do = func(n uint64) error { return e.set.add(window(fresh, n, size)) }
				}
				all.contestants = append(all.contestants, one)
			}
			if err := r.play(a, o, []*contest{all}); err != nil {
				return err
			}
		}
	}
	return nil
}
