package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// In a contest, several contestants do the same work in turns.
type contest struct {
	name        string
	callers     int
	contestants []*contestant // ours is the first
}

// A contestant does a contest's work, or sets its limit.
type contestant struct {
	name string
	// items is the number of items in a call of do.
	items int
	// do makes the n-th call. Several callers use it at once.
	do func(n uint64) error
	// run replaces do for a contestant in another program. It has callers make
	// calls for d.
	run func(callers int, d time.Duration) (effort, error)

	calls   atomic.Uint64 // of do, over all turns
	samples []sample
}

// effort is the cost of a turn.
type effort struct {
	calls     uint64
	took, cpu time.Duration // cpu of the client's process, user and system; 0 if unknown
}

// sample is the outcome of one turn.
type sample struct {
	perSecond float64 // items
	cpu       float64 // microseconds of the client's CPU a call
}

// settings are the settings of a contest.
type settings struct {
	rounds int
	turn   time.Duration
}

// play has the contestants take turns. In each round all contestants have one
// turn. Every other round goes backwards, so nobody always follows the same
// neighbour. A first round warms up and is not counted.
func (c *contest) play(ctx context.Context, s settings) error {
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
			if err == nil && (e.calls == 0 || e.took <= 0) {
				err = errors.New("no call was done")
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", c.name, one.name, err)
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

// table returns a contest as Markdown: how much each contestant did, the cost in
// the client's CPU, and both of ours in proportion.
func (c *contest) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n", c.name)
	fmt.Fprintln(&b, "| | items/s | client CPU a call, µs | upbloom's items/s to it | upbloom's CPU to it |")
	fmt.Fprintln(&b, "|---|---|---|---|---|")
	ours := c.contestants[0]
	for _, one := range c.contestants {
		cpu, share := "-", "-"
		if m := one.cpu().median; m > 0 {
			cpu, share = figure(m), ours.cpuRatio(one).String()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", one.name, figure(one.perSecond().median), cpu,
			ours.ratio(one), share)
	}
	return b.String()
}

// find returns the contestant with this name, or nil.
func (c *contest) find(name string) *contestant {
	i := slices.IndexFunc(c.contestants, func(one *contestant) bool { return one.name == name })
	if i < 0 {
		return nil
	}
	return c.contestants[i]
}

// over returns the spread of a value of each round.
func (c *contestant) over(value func(i int) float64) spread {
	values := make([]float64, len(c.samples))
	for i := range values {
		values[i] = value(i)
	}
	return spreadOf(values)
}

func (c *contestant) perSecond() spread {
	return c.over(func(i int) float64 { return c.samples[i].perSecond })
}

func (c *contestant) cpu() spread {
	return c.over(func(i int) float64 { return c.samples[i].cpu })
}

// ratio returns how many times as fast c is as other, round by round.
func (c *contestant) ratio(other *contestant) spread {
	return c.over(func(i int) float64 { return c.samples[i].perSecond / other.samples[i].perSecond })
}

// cpuRatio returns how many times the CPU of other a call of c takes, round by
// round.
func (c *contestant) cpuRatio(other *contestant) spread {
	return c.over(func(i int) float64 { return c.samples[i].cpu / other.samples[i].cpu })
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

// String returns the median, and the quartiles in brackets.
func (s spread) String() string {
	return fmt.Sprintf("%s (%s to %s)", ratioText(s.median), ratioText(s.low), ratioText(s.high))
}
