package main

import (
	"time"
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
