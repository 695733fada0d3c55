//go:build !race

package bloom

import "testing"

func TestWireAllocatesNothing(t *testing.T) {
	for _, scheme := range wireSchemes {
		f := newWireFilter(t, scheme, nil)
		q := newRequest(&f.rec)
		for name, work := range map[string]func(){
			"encode an Add":    func() { q.testWrite(1) },
			"encode an Exists": func() { q.testRead(1) },
		} {
			work() // the request grows once
			if n := testing.AllocsPerRun(100, work); n != 0 {
				t.Errorf("%v: %s: %v allocations, want 0", scheme, name, n)
			}
		}
		q.testWrite(1).answered(t, true)
		judge := func() {
			if err := q.judgeWrite(); err != nil || !q.added[0] {
				t.Fatalf("added %v, %v, want true", q.added, err)
			}
		}
		judge()
		if n := testing.AllocsPerRun(100, judge); n != 0 {
			t.Errorf("%v: judge the reply to an Add: %v allocations, want 0", scheme, n)
		}
		q.testRead(1).answered(t, false)
		judge = func() {
			q.found = q.found[:0]
			if err := q.judgeRead(true); err != nil || q.found[0] {
				t.Fatal(q.found, err)
			}
		}
		judge()
		if n := testing.AllocsPerRun(100, judge); n != 0 {
			t.Errorf("%v: judge the reply to an Exists: %v allocations, want 0", scheme, n)
		}
		q.free()
	}
}

// TestKindsAllocateNothing: an Add to a Cuckoo has a text for each item.
func TestKindsAllocateNothing(t *testing.T) {
	for kind, rec := range newWireKinds(t) {
		q := newRequest(rec)
		texts := 0.0
		if kind == "Cuckoo" {
			texts = 10
		}
		for name, work := range map[string]func(){
			"an Add":    func() { q.testWrite(10) },
			"a look-up": func() { q.testRead(10) },
		} {
			work() // the request grows once
			if n := testing.AllocsPerRun(100, work); n != 0 && (n != texts || name != "an Add") {
				t.Errorf("%s: encode %s of 10 items: %v allocations", kind, name, n)
			}
		}
		q.free()
	}
}
