//go:build !race

package bloom

import (
	"slices"
	"testing"
)

func TestLocalAddAndExistsAllocateNothing(t *testing.T) {
	for _, g := range localGeometries() {
		l := NewLocal(g)
		i := 0
		items := make([]string, 400)
		for i := range items {
			items[i] = nthItem("user", i)
		}
		n := testing.AllocsPerRun(100, func() {
			l.Add(items[i%400])
			l.Exists(items[(i+1)%400])
			i += 2
		})
		if n != 0 {
			t.Errorf("%v: %v allocations", g, n)
		}
	}
}

func TestLocalBatchesAllocateTheirAnswers(t *testing.T) {
	items := make([]string, 400)
	for i := range items {
		items[i] = nthItem("user", i)
	}
	for _, l := range []*Local{NewLocal(localGeometries()[0]), largeLocal(t)} {
		if n := testing.AllocsPerRun(100, func() { l.AddAll(items) }); n > 1 {
			t.Errorf("%v: AddAll allocates %v times", l, n)
		}
		if n := testing.AllocsPerRun(100, func() { l.ExistsAll(items) }); n > 1 {
			t.Errorf("%v: ExistsAll allocates %v times", l, n)
		}
		one := slices.Values(items[:1])
		few := testing.AllocsPerRun(100, func() { l.AddSeq(one) })
		all := slices.Values(items)
		if n := testing.AllocsPerRun(100, func() { l.AddSeq(all) }); n > few {
			t.Errorf("%v: AddSeq allocates %v times, %v for one item", l, n, few)
		}
	}
}
