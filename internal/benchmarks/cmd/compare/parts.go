package main

import (
	"fmt"
	"slices"

	"github.com/upbloom/upbloom/bloom"
)

// A part of a run measures one thing and prints it.
type part struct {
	name string
	run  func(a *arena, o options, r *report) error
}

var parts []part

func init() { // the flag's help names them, so that a literal would be a cycle
	parts = []part{
		{"local", playLocal},
		{"memory", func(a *arena, o options, r *report) error { return r.playAll(a, o, a.stubbed) }},
		{"redis", func(a *arena, o options, r *report) error { return r.playAll(a, o, a.single) }},
		{"batch", playBatches},
		{"bulk", playBulk},
		{"cold", playCold},
		{"billed", countBilled},
		{"rates", measureRates},
		{"growth", measureGrowth},
	}
}

func partNames() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

func (r *report) playAll(a *arena, o options, contests func(callers []int) ([]*contest, error)) error {
	all, err := contests(o.callers)
	if err != nil {
		return err
	}
	return r.play(a, o, all)
}

// playBatches plots the throughput against the size of a batch.
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
		for _, one := range part[0].contestants {
			l := line{name: one.name}
			for j, c := range part {
				m := c.find(one.name).perSecond().median
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

// countBilled counts the commands that Redis runs for each Add and Exists,
// those that a script calls among them, and the bytes and allocations of ours.
func countBilled(a *arena, _ options, r *report) error {
	entrants, err := a.rest(a.url)
	if err != nil {
		return err
	}
	resp, err := a.resp()
	if err != nil {
		return err
	}
	w, err := a.windowEntrant()
	if err != nil {
		return err
	}
	const calls = 100
	err = r.printf("**Commands that Redis runs for one call, those of a script counted too**\n\n" +
		"| | Add | Exists, found |\n|---|---|---|\n")
	for _, e := range append(append(entrants, resp...), w) {
		if err != nil {
			return err
		}
		if err = check(e.set, 1); err != nil {
			return err
		}
		counted := make([]float64, 2)
		for i, do := range []func(items []string) error{
			func(items []string) error { return e.set.add(items) },
			func(items []string) error { _, err := count(e.set, items, true); return err },
		} {
			before, err := a.called()
			if err != nil {
				return err
			}
			for n := range uint64(calls) {
				if err := do(window(members, n, 1)); err != nil {
					return err
				}
			}
			after, err := a.called()
			if err != nil {
				return err
			}
			counted[i] = float64(after-before) / calls
		}
		err = r.printf("| %s | %.3g | %.3g |\n", e.name, counted[0], counted[1])
	}
	if err != nil {
		return err
	}
	return r.printf("\n")
}

// measureRates plots how often absent items are found, beside the formula.
func measureRates(_ *arena, _ options, r *report) error {
	const n, asked = 20_000, 200_000
	items, others := emails("in-", 2*n), emails("out-", asked)
	schemes := []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a}
	var lines []line
	err := r.printf("**False positives at 1 in 100, %d items, %d look-ups; measured / formula**\n\n"+
		"| scheme | half of Capacity | Capacity | twice Capacity |\n|---|---|---|---|\n", n, asked)
	for _, scheme := range schemes {
		if err != nil {
			return err
		}
		g, err := bloom.Config{Capacity: n, FPRate: rate, Scheme: scheme}.Geometry()
		if err != nil {
			return err
		}
		measured := line{name: scheme.String() + ", measured", dots: true}
		formula := line{name: scheme.String() + ", formula"}
		l := bloom.NewLocal(g)
		var cells []string
		for step := range 8 {
			for _, item := range items[step*n/4 : (step+1)*n/4] {
				l.Add(item)
			}
			found := 0
			for _, item := range others {
				if l.Exists(item) {
					found++
				}
			}
			x, in := float64(step+1)/4, uint64(step+1)*n/4
			share, want := float64(found)/asked, g.FalsePositiveRate(in)
			measured.points = append(measured.points, point{x, 100 * share})
			formula.points = append(formula.points, point{x, 100 * want})
			if slices.Contains([]int{1, 3, 7}, step) {
				cells = append(cells, fmt.Sprintf("%.3f%% / %.3f%%", 100*share, 100*want))
			}
		}
		lines = append(lines, measured, formula)
		if err := r.printf("| %s | %s | %s | %s |\n", scheme, cells[0], cells[1], cells[2]); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if err := r.printf("\n"); err != nil {
		return err
	}
	return r.plot(chart{
		file: "rates", title: "False positives of a filter for 1 in 100",
		x: "items / Capacity", y: "absent items found, %", lines: lines,
	})
}
