package main

import (
	"fmt"
	"math"
	"sort"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// grow returns the states of a scalable filter with one layer, with two, and so
// on. Each layer is four times as long as the one before.
func grow(items uint64, first bloom.Geometry) (list []grown) {
	layer := first
	items = max(items, leastLayer)
	at := grown{Bytes: headerBytes}
	for range mostLayers {
		at.Items, at.Bytes = at.Items+items, at.Bytes+cells(layer)
		if len(list) > 0 && at.Bytes > longestRecord {
			break
		}
		list = append(list, at)
		items, layer.Bits = 4*items, 4*layer.Bits
	}
	return list
}

// endOfGrowth says where a scalable filter stops growing. It returns "" for one
// that can have all its layers, and for no layers.
func endOfGrowth(layers []grown) string {
	switch n := len(layers); n {
	case 0, mostLayers:
		return ""
	case 1:
		return "it does not grow, because a second layer would pass 100 MB: its programs may set a larger" +
			" MaxBytes on a larger plan"
	default:
		return fmt.Sprintf("it grows to %s, for %s items, and no further, because another layer would pass"+
			" 100 MB", human.Counted(uint64(n), "layer"), human.Count(layers[n-1].Items))
	}
}

// growth returns the commands with which a scalable filter looks whether it
// must grow, and grows. They are those of one request, on average over the
// layers the items fill.
func (b *bill) growth(items uint64) (commands float64) {
	if b.kind != scalableKind {
		return 0
	}
	all := max(b.items, 1)
	rest, capacity := all, float64(b.first)
	for layer := 1; rest > 0; layer++ {
		looks := min(1, float64(items)*growthLooks/capacity)
		if layer == len(b.grown) { // only an AddAll looks, and finds no need to count
			if looks < 1 || items == 1 {
				return commands
			}
			return commands + rest/all*scriptCommand
		}
		commands += min(rest, capacity) / all * looks * growthCost
		if rest > capacity {
			commands += growthStep * float64(items) / all
		}
		rest, capacity = rest-capacity, 4*capacity
	}
	return commands
}

// layers returns how many layers a scalable filter has with its items, and 0 for
// another filter.
func (b *bill) layers() (n int) {
	if b.kind != scalableKind {
		return 0
	}
	for n = 1; n < len(b.grown) && b.items > float64(b.grown[n-1].Items); {
		n++
	}
	return n
}

// layersAtMost returns how many layers the filter can have with its items, if
// they come in batches. An AddAll of a 64th of a layer leaves it if it has no
// room for all items. A handle of OpenScalable leaves a layer at a rate of one in
// ten to the power of k/2. What a layer holds is an estimate.
func (b *bill) layersAtMost(batch uint64) (n int) {
	if b.kind != scalableKind {
		return 0
	}
	share := float64(sort.Search(int(min(b.first, math.MaxInt32)), func(items int) bool {
		return b.part.FalsePositiveRate(uint64(items)) > math.Pow10(-b.part.Hashes/2)
	}))/float64(b.first) - 0.01
	rest, capacity := b.items, float64(b.first)
	for n = 1; n < len(b.grown); n++ {
		takes := share * capacity
		if float64(batch)*growthLooks >= capacity {
			takes -= float64(batch)
		}
		if rest -= max(0, takes); rest <= 0 {
			break
		}
		capacity *= 4
	}
	return n
}

// growsTo returns the smallest capacity with which a scalable filter of at most
// 100 MB holds n items at this rate, or n.
func growsTo(n uint64, rate float64) uint64 {
	for depth, firsts := mostLayers, uint64(341); depth > 0; depth, firsts = depth-1, firsts/4 {
		most := (n + firsts - 1) / firsts // a first layer is one of so many parts
		items := uint64(sort.Search(int(min(most, math.MaxInt32)), func(i int) bool {
			return len(growBelow(uint64(i)+1, rate)) < depth
		}))
		layers := growBelow(items, rate)
		if len(layers) == 0 {
			continue
		}
		last := layers[len(layers)-1].Items
		g, err := bloom.ScalableConfig{Capacity: items, FPRate: rate}.Geometry()
		if err == nil && (last >= n || rateOfLayers(g, items, len(layers), n-last) <= rate) {
			return items
		}
	}
	return n
}

// growBelow is grow, but it returns nil if even the first layer passes 100 MB.
func growBelow(items uint64, rate float64) []grown {
	g, err := bloom.ScalableConfig{Capacity: items, FPRate: rate}.Geometry()
	if err != nil || headerBytes+cells(g) > longestRecord {
		return nil
	}
	return grow(items, g)
}

// rateOfLayers returns the false positive rate of a scalable filter that is
// full, and has more items in its last layer.
func rateOfLayers(at bloom.Geometry, capacity uint64, layers int, more uint64) float64 {
	passes := 1.0
	for i := range layers {
		in := capacity
		if i == layers-1 {
			in += more
		}
		passes *= 1 - at.FalsePositiveRate(in)
		capacity, at.Bits = 4*capacity, 4*at.Bits
	}
	return 1 - passes
}
