//go:build !race

package bloom

import "testing"

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
