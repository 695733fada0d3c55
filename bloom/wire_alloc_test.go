//go:build !race

package bloom

import (
	"testing"
)

func TestWireAllocatesNothing(t *testing.T) {
	for _, scheme := range wireSchemes {
		f := newWireFilter(t, scheme, nil)
		r := &f.rec.Record
		for name, work := range map[string]func(){
			"encode an Add":    func() { testWrite(r, 1).Free() },
			"encode an Exists": func() { testRead(r, 1).Free() },
		} {
			work() // the request grows once
			if n := testing.AllocsPerRun(100, work); n != 0 {
				t.Errorf("%v: %s: %v allocations, want 0", scheme, name, n)
			}
		}
		q := answered(testWrite(r, 1), t, true)
		judge := func() {
			if err := q.JudgeWrite(); err != nil || !q.Added[0] {
				t.Fatalf("added %v, %v, want true", q.Added, err)
			}
		}
		judge()
		if n := testing.AllocsPerRun(100, judge); n != 0 {
			t.Errorf("%v: judge the reply to an Add: %v allocations, want 0", scheme, n)
		}
		q = answered(testRead(r, 1), t, false)
		judge = func() {
			q.Found = q.Found[:0]
			if err := q.JudgeRead(true); err != nil || q.Found[0] {
				t.Fatal(q.Found, err)
			}
		}
		judge()
		if n := testing.AllocsPerRun(100, judge); n != 0 {
			t.Errorf("%v: judge the reply to an Exists: %v allocations, want 0", scheme, n)
		}
	}
}

// TestKindsAllocateNothing: an Add to a Cuckoo has a text for each item.
func TestKindsAllocateNothing(t *testing.T) {
	for kind, rec := range newWireKinds(t) {
		texts := 0.0
		if kind == "Cuckoo" {
			texts = 10
		}
		for name, work := range map[string]func(){
			"an Add":    func() { testWrite(rec, 10).Free() },
			"a look-up": func() { testRead(rec, 10).Free() },
		} {
			work() // the request grows once
			if n := testing.AllocsPerRun(100, work); n != 0 && (n != texts || name != "an Add") {
				t.Errorf("%s: encode %s of 10 items: %v allocations", kind, name, n)
			}
		}
	}
}
