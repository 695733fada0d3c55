package main

import (
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// A part of a run measures one thing and prints it.
type part struct {
	name string
	turn time.Duration // the length of a turn, unless the command line says it
	run  func(a *arena, o options, r *report) error
}

const ms = time.Millisecond

var parts []part

// The parts with targets come first, in case a run is ended early.
func init() { // the flag's help names them, so that a literal would be a cycle
	parts = []part{
		{"memory", 400 * ms, playMemory},
		{"batch", 200 * ms, playBatches},
		{"cold", 400 * ms, playCold},
		{"billed", 0, countBilled},
		{"local", 250 * ms, playLocal},
		{"types", 250 * ms, playTypes},
		{"growth", 100 * ms, measureGrowth},
		{"rates", 0, measureRates},
		{"redis", 200 * ms, func(a *arena, o options, r *report) error { return r.playAll(a, o, a.single) }},
		{"tls", 200 * ms, playTLS},
		{"wasm", 400 * ms, playWasm},
		{"bulk", 250 * ms, playBulk},
		{"scale", 0, simulateScale},
	}
}

func partNames() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// playMemory also counts the allocations of an Add.
func playMemory(a *arena, o options, r *report) error {
	if err := r.playAll(a, o, a.stubbed); err != nil {
		return err
	}
	return r.weigh(a)
}

func (r *report) playAll(a *arena, o options, contests func(callers []int) ([]*contest, error)) error {
	all, err := contests(o.callers)
	if err != nil {
		return err
	}
	return r.play(a, o, all)
}

// playBatches plots the throughput against the size of a batch, of those that one
// would choose between. The table has them all.
func playBatches(a *arena, o options, r *report) error {
	contests, err := a.batches(o.sizes)
	if err != nil {
		return err
	}
	if err := r.play(a, o, contests); err != nil {
		return err
	}
	half := len(contests) / 2
	for i, part := range [][]*contest{contests[:half], contests[half:]} {
		var lines []line
		for _, name := range []string{filterName, plainName, resp7Name, respBName, setName} {
			if part[0].find(name) == nil {
				continue
			}
			l := line{name: name}
			for j, c := range part {
				m := c.find(name).perSecond().median
				l.points = append(l.points, point{float64(o.sizes[j]), m})
			}
			lines = append(lines, l)
		}
		name := operation(i == 0) + "All"
		err := r.plot(chart{
			file: "batch-" + operation(i == 0), title: name + ": items a second, one caller",
			x: "items a call", y: "items a second", logX: true, logY: true, lines: lines,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

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
