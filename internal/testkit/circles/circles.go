// Package circles finds files of a package that use each other in circles:
// whoever reads one file of a circle has to know all of them.
package circles

import (
	"maps"
	"slices"
)

// Find returns the groups of files that all reach each other, each in order.
// uses has the files that each file uses.
func Find(uses map[string][]string) (all [][]string) {
	reached := make(map[string]map[string]bool)
	for file := range uses {
		seen := make(map[string]bool)
		for next := slices.Clone(uses[file]); len(next) > 0; next = next[1:] {
			if !seen[next[0]] {
				seen[next[0]] = true
				next = append(next, uses[next[0]]...)
			}
		}
		reached[file] = seen
	}
	done := make(map[string]bool)
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if done[file] || !reached[file][file] {
			continue
		}
		var circle []string
		for _, other := range slices.Sorted(maps.Keys(reached[file])) {
			if reached[other][file] {
				circle = append(circle, other)
				done[other] = true
			}
		}
		all = append(all, circle)
	}
	return all
}
