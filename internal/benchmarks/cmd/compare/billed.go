package main

import "fmt"

// countBilled counts the commands Redis runs for an Add and an Exists, with
// those called by scripts.
func countBilled(a *arena, _ options, r *report) error {
	entrants, err := a.rest(a.url)
	if err != nil {
		return err
	}
	resp, err := a.resp()
	if err != nil {
		return err
	}
	c, err := a.client(a.url)
	if err != nil {
		return err
	}
	types, err := a.typed(c, capacity)
	if err != nil {
		return err
	}
	var ourAdd float64
	r.printf("**Commands that Redis runs for one call, those of a script counted too**\n\n" +
		"| | Add | Exists, found |\n|---|---|---|\n")
	for _, e := range append(append(entrants, resp...), types[1:]...) {
		if err := check(e.set, checked/2); err != nil {
			return err
		}
		counted, err := a.billedBy(e)
		if err != nil {
			return err
		}
		switch e.name {
		case filterName:
			ourAdd = counted[0]
			r.atMost("commands billed for an Add", 1, exactly(ourAdd))
		case zeroName:
			r.facts = append(r.facts, fmt.Sprintf("An `Add` is %.3g billed command; with go-zero's filter it is %.3g.",
				ourAdd, counted[0]))
			r.atLeast("commands billed for an Add of go-zero's script", 15, exactly(counted[0]))
		case scriptName:
			r.atLeast("commands billed for an Add by a script of SETBITs", 9, exactly(counted[0]))
		}
		r.printf("| %s | %.3g | %.3g |\n", e.name, counted[0], counted[1])
	}
	r.printf("\n")
	return nil
}

// billedBy returns how many commands Redis runs for one Add and one Exists.
func (a *arena) billedBy(e entrant) (counted [2]float64, err error) {
	const calls = 100
	for i, do := range []func(items []string) error{
		func(items []string) error { return e.set.add(items) },
		func(items []string) error { _, err := count(e.set, items, true); return err },
	} {
		before, err := a.called()
		if err != nil {
			return counted, err
		}
		for n := range uint64(calls) {
			if err := do(window(members, n, 1)); err != nil {
				return counted, err
			}
		}
		after, err := a.called()
		if err != nil {
			return counted, err
		}
		counted[i] = float64(after-before) / calls
	}
	return counted, nil
}
