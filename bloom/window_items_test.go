package bloom

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"testing"
	"time"
)

// estimatedUnion makes two panes of so many items, of which some are in both, and
// returns what Stats estimates.
func estimatedUnion(s *windowShape, seed, items, both int) uint64 {
	u := unionOf{geo: s.geo, or: make([]uint64, len(s.sample())/len(s.areas))}
	for pane := range 2 {
		words := make([]uint64, s.geo.Bits/wordBits)
		var pos []uint64
		for i := range items {
			name := strconv.Itoa(seed) + "-" + strconv.Itoa(i)
			if i >= both {
				name += " in " + strconv.Itoa(pane)
			}
			pos = s.geo.Positions(pos[:0], name)
			for _, p := range pos {
				words[p/wordBits] |= 1 << (wordBits - 1 - p%wordBits)
			}
		}
		set, sample := 0, make([]int64, len(u.or))
		for i, w := range words {
			set += bits.OnesCount64(w)
			if i < len(sample) {
				sample[i] = int64(w)
			}
		}
		u.add(uint64(set), sample)
	}
	return u.items()
}

// TestWindowItemsSpread measures what the doc of WindowStats.Items says. Half of
// the items are in two panes: then the least is known. A pane that is read whole
// is as exact as a filter.
func TestWindowItemsSpread(t *testing.T) {
	for _, c := range []struct {
		panes, capacity, items int
		both, standardError    float64 // a share of the items; of the estimate
	}{
		{1, 1000, 1000, 0.5, 0.01},
		{1, 1000, 1000, 0, 0.01},
		{1, 1000, 1000, 1, 0.01},
		{1, 1000, 1, 1, 0},
		{1, 30_000, 30_000, 0.5, 0.01},
		{4, 30_000, 30_000, 0.5, 0.013},
		{1, 30_000, 3000, 0.5, 0.025},
		{4, 30_000, 3000, 0.5, 0.025},
		{1, 30_000, 300, 0.5, 0.08},
		{4, 30_000, 300, 0.5, 0.08},
		{1, 30_000, 30, 0.5, 0.25},
		{4, 30_000, 30, 0.5, 0.25},
		{4, 30_000, 3000, 0, 0.01},
		{4, 30_000, 3000, 1, 0.01},
		{4, 30_000, 1, 0, 0},
	} {
		geo, err := WindowConfig{Capacity: uint64(c.capacity), FPRate: 0.01, Span: time.Hour, Panes: c.panes}.Geometry()
		if err != nil {
			t.Fatal(err)
		}
		s := &windowShape{geo: geo, areas: windowAreas(geo, c.panes+2)}
		both, runs := int(c.both*float64(c.items)), min(60, max(10, 120_000/c.items))
		var bias, square float64
		for i := range runs {
			off := float64(estimatedUnion(s, i, c.items, both))/float64(2*c.items-both) - 1
			bias, square = bias+off/float64(runs), square+off*off/float64(runs)
		}
		name := fmt.Sprintf("Panes %d, Capacity %d: two panes of %d items, %d of them in both", c.panes, c.capacity, c.items, both)
		t.Logf("%s: bias %.2f%%, standard error %.2f%%", name, 100*bias, 100*math.Sqrt(square))
		// A few items are often in no word of the sample: then all count.
		sparse := 100*c.items < c.capacity
		if math.Sqrt(square) > c.standardError || !sparse && math.Abs(bias) > 3*c.standardError/math.Sqrt(float64(runs)) {
			t.Errorf("%s: bias %.4f, standard error %.4f, want %v", name, bias, math.Sqrt(square), c.standardError)
		}
	}
}

// The estimate lies between the largest pane and the sum of all, if no item of the
// panes is in the sample too.
func TestWindowItemsWithinBounds(t *testing.T) {
	geo, err := WindowConfig{Capacity: 100_000_000, FPRate: 0.01, Span: time.Hour}.Geometry()
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range [][2]int64{{0, 0}, {1, 1}, {1, 2}, {0, 1}, {1<<wordBits - 1, 0}, {1<<wordBits - 1, 1<<wordBits - 1}} {
		u := unionOf{geo: geo, or: make([]uint64, 1)}
		u.add(1000*6, words[:1])
		u.add(3000*6, words[1:])
		if n := u.items(); n < 3000 || n > 4000 {
			t.Errorf("samples %x: %d items, want from 3,000 to 4,000", words, n)
		}
	}
}
