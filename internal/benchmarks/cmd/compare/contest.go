package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// In a contest, several contestants do the same work in turns.
type contest struct {
	name    string
	callers int
	// apart is true if the client has a processor of its own. The server then
	// has another one from its start.
	apart       bool
	contestants []*contestant
}

// A contestant does a contest's work, or sets its limit.
type contestant struct {
	name string
	// items is the number of items in a call of do.
	items int
	// do makes the n-th call. Several callers use it at once.
	do func(n uint64) error
	// run replaces do for a contestant in another program. It has callers make
	// calls for d and returns their number.
	run func(callers int, d time.Duration) (effort, error)

	// foreign is true if do runs in another process, whose CPU time is not known.
	foreign bool

	calls   atomic.Uint64 // of do, over all turns
	samples []sample
}

// effort is the cost of a turn.
type effort struct {
	calls     uint64
	took, cpu time.Duration // cpu of the client's process, user and system
}

// sample is the outcome of one turn.
type sample struct {
	perSecond float64 // items
	cpu       float64 // microseconds of the client's CPU a call
}

// settings are the settings of a run.
type settings struct {
	rounds int
	turn   time.Duration
}

// play runs the rounds.
func (c *contest) play(ctx context.Context, s settings) error {
	if c.apart {
		return playApart(ctx, func() error { return c.rounds(ctx, s) })
	}
	return c.rounds(ctx, s)
}

// rounds has the contestants take turns. In each round all contestants have one
// turn. Every other round goes backwards, so nobody always follows the same
// neighbour. A first round warms up and is not counted.
func (c *contest) rounds(ctx context.Context, s settings) error {
	for _, one := range c.contestants {
		one.samples = nil
	}
	for round := -1; round < s.rounds; round++ {
		order := slices.Clone(c.contestants)
		if round%2 != 0 {
			slices.Reverse(order)
		}
		d := s.turn
		if round < 0 {
			d = s.turn / 4
		}
		for _, one := range order {
			if err := ctx.Err(); err != nil {
				return err
			}
			e, err := one.turn(c.callers, d)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", c.name, one.name, err)
			}
			if e.calls == 0 || e.took <= 0 {
				return fmt.Errorf("%s: %s: no call was done", c.name, one.name)
			}
			if round >= 0 {
				one.samples = append(one.samples, sample{
					perSecond: float64(e.calls) * float64(one.items) / e.took.Seconds(),
					cpu:       float64(e.cpu.Microseconds()) / float64(e.calls),
				})
			}
		}
	}
	return nil
}

// turn has the callers make calls for d.
func (c *contestant) turn(callers int, d time.Duration) (effort, error) {
	if c.run != nil {
		return c.run(callers, d)
	}
	var (
		wg   sync.WaitGroup
		done atomic.Uint64
		errs = make([]error, callers)
	)
	cpu, start := cpuTime(), time.Now()
	for caller := range callers {
		wg.Go(func() {
			var n uint64
			defer func() { done.Add(n) }()
			for time.Since(start) < d || n == 0 {
				if err := c.do(c.calls.Add(1)); err != nil {
					errs[caller] = err
					return
				}
				n++
			}
		})
	}
	wg.Wait()
	e := effort{calls: done.Load(), took: time.Since(start), cpu: cpuTime() - cpu}
	return e, errors.Join(errs...)
}

// find returns the contestant with this name.
func (c *contest) find(name string) *contestant {
	i := slices.IndexFunc(c.contestants, func(one *contestant) bool { return one.name == name })
	if i < 0 {
		return nil
	}
	return c.contestants[i]
}

// spread is a median between its quartiles.
type spread struct{ low, median, high float64 }

// spreadOf returns the quartiles of values, each interpolated between the two
// nearest.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	at := func(share float64) float64 {
		x := share * float64(len(v)-1)
		i := int(x)
		if i+1 == len(v) {
			return v[i]
		}
		return v[i] + (v[i+1]-v[i])*(x-float64(i))
	}
	return spread{at(0.25), at(0.5), at(0.75)}
}

// over calls f with the samples of each round.
func over(samples []sample, f func(i int) float64) spread {
	values := make([]float64, len(samples))
	for i := range samples {
		values[i] = f(i)
	}
	return spreadOf(values)
}

func (c *contestant) perSecond() spread {
	return over(c.samples, func(i int) float64 { return c.samples[i].perSecond })
}

func (c *contestant) cpu() spread {
	return over(c.samples, func(i int) float64 { return c.samples[i].cpu })
}

// ratio returns how many times as fast c is as other, round by round.
func (c *contestant) ratio(other *contestant) spread {
	return over(c.samples, func(i int) float64 {
		return c.samples[i].perSecond / other.samples[i].perSecond
	})
}

// cpuBeyond returns how much more CPU time a call of c takes than one of other,
// in microseconds, round by round.
func (c *contestant) cpuBeyond(other *contestant) spread {
	return over(c.samples, func(i int) float64 { return c.samples[i].cpu - other.samples[i].cpu })
}

// operation names the work of a contest: "Add" or "Exists".
func operation(write bool) string {
	if write {
		return "Add"
	}
	return "Exists"
}

func enter(e entrant, size int, write bool) *contestant {
	if write {
		return adding(e.name, e.set, size)
	}
	return asking(e.name, e.set, size)
}

// single returns the contests of one item a call, in front of Redis. Every
// entrant has been checked.
func (a *arena) single(callers []int) ([]*contest, error) {
	entrants, err := a.rest(a.url)
	if err != nil {
		return nil, err
	}
	resp, err := a.resp()
	if err != nil {
		return nil, err
	}
	entrants = append(entrants, resp...)
	w, err := a.windowEntrant()
	if err != nil {
		return nil, err
	}
	entrants = append(entrants, w)
	return a.contests(place{name: "Redis", url: a.url}, entrants, callers)
}

// windowEntrant is a Window of the same size.
func (a *arena) windowEntrant() (entrant, error) {
	c, err := a.client(a.url)
	if err != nil {
		return entrant{}, err
	}
	w, err := bloom.NewWindow(c, a.key("window"), bloom.WindowConfig{
		Capacity: capacity, FPRate: rate, Span: day,
	})
	return entrant{windowName, filterSet{a.calls, w}}, err
}

// place is where contests meet.
type place struct {
	name, url string
	apart     bool
}

// start starts a process of the place.
func (p place) start(client bool, start func() error) error {
	if p.apart {
		return startApart(client, start)
	}
	return start()
}

// stubbed returns the same contests against a server with answers from memory.
// They measure only the client. One caller and its server wait for each other:
// the system would decide who runs when and which processor sleeps. So the
// client and the server get a processor each, which stays awake.
func (a *arena) stubbed(callers []int) (all []*contest, err error) {
	for _, n := range callers {
		p := place{name: "memory", apart: n == 1}
		err := p.start(false, func() (err error) {
			p.url, err = startRole(a.ctx, "stub", a.url)
			return err
		})
		if err != nil {
			return nil, err
		}
		entrants, err := a.rest(p.url)
		if err != nil {
			return nil, err
		}
		ours := entrants[0].set.(filterSet)
		// What is kept in Redis makes no difference here.
		entrants = []entrant{entrants[0], {endlessName, filterSet{nil, ours.f}}, entrants[1]}
		part, err := a.contests(p, entrants, []int{n})
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// contests checks the entrants, adds the limit and Node, and returns a contest
// for each operation and number of callers.
func (a *arena) contests(at place, entrants []entrant, callers []int) ([]*contest, error) {
	if a.nodeFolder != "" {
		var node *nodeSet
		err := at.start(true, func() (err error) {
			node, err = startNode(a.ctx, a.nodeFolder, at.url, a.token, a.key("node"))
			return err
		})
		if err != nil {
			return nil, err
		}
		entrants = append(entrants, entrant{nodeName, node})
	}
	for _, e := range entrants {
		if err := a.check(e.set, at.url); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	var all []*contest
	for _, write := range []bool{true, false} {
		for _, n := range callers {
			name := fmt.Sprintf("%s, callers: %d, server: %s", operation(write), n, at.name)
			c := &contest{name: name, callers: n, apart: at.apart}
			limit, err := a.limit(at.url, 1, write)
			if err != nil {
				return nil, err
			}
			for _, e := range entrants {
				one := enter(e, 1, write)
				if node, ok := e.set.(*nodeSet); ok {
					one = node.contestant(e.name, write)
				}
				c.contestants = append(c.contestants, one)
			}
			c.contestants = append(c.contestants, limit)
			all = append(all, c)
		}
	}
	return all, nil
}

// check checks a set. If a server answers from memory, it gives each request
// the answer to the first one like it. Only one member can then be checked.
func (a *arena) check(s set, url string) error {
	if url == a.url {
		return check(s, 1)
	}
	part := members[:1]
	for range 3 {
		if err := s.add(part); err != nil {
			return err
		}
		if _, err := count(s, part, true); err != nil {
			return err
		}
	}
	return nil
}

// batches returns the contests of many items a call.
func (a *arena) batches(sizes []int) ([]*contest, error) {
	var all []*contest
	for _, write := range []bool{true, false} {
		for _, size := range sizes {
			entrants, err := a.rest(a.url)
			if err != nil {
				return nil, err
			}
			resp, err := a.resp()
			if err != nil {
				return nil, err
			}
			w, err := a.windowEntrant()
			if err != nil {
				return nil, err
			}
			entrants = append(append(entrants, resp...), w)
			limit, err := a.limit(a.url, size, write)
			if err != nil {
				return nil, err
			}
			c := &contest{name: fmt.Sprintf("%sAll(%d)", operation(write), size), callers: 1}
			for _, e := range entrants {
				if err := check(e.set, min(size, checked)); err != nil {
					return nil, fmt.Errorf("%s: %w", e.name, err)
				}
				c.contestants = append(c.contestants, enter(e, size, write))
			}
			c.contestants = append(c.contestants, limit)
			all = append(all, c)
		}
	}
	return all, nil
}
