package bloom

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRequest measures what a request costs besides the network: encoding
// its operations and judging its reply. Neither allocates, however many items.
func BenchmarkRequest(b *testing.B) {
	f := newWireFilter(b, SchemeBlocked, nil)
	for _, n := range []int{1, 1000} {
		for _, write := range []bool{true, false} {
			q := newRequest(&f.rec)
			call := "Exists"
			encode, judge := func() { q.testRead(n) }, func() error {
				q.found = q.found[:0]
				return q.judgeRead(true)
			}
			if write {
				call, encode, judge = "Add", func() { q.testWrite(n) }, q.judgeWrite
			}
			b.Run(fmt.Sprintf("call=%s/items=%d/step=encode", call, n), func(b *testing.B) {
				encode() // the request grows once
				b.ReportAllocs()
				for b.Loop() {
					encode()
				}
			})
			encode()
			q.answered(b, write)
			b.Run(fmt.Sprintf("call=%s/items=%d/step=judge", call, n), func(b *testing.B) {
				if err := judge(); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := judge(); err != nil {
						b.Fatal(err)
					}
				}
			})
			q.free()
		}
	}
}

// BenchmarkRequestOfAKind measures what encoding costs: an Add to a window sets bits
// in one pane and reads all others, an Add to a Cuckoo is a script whose arguments
// are texts.
func BenchmarkRequestOfAKind(b *testing.B) {
	for kind, rec := range newWireKinds(b) {
		for _, n := range []int{1, 1000} {
			q := newRequest(rec)
			for call, encode := range map[string]func(){
				"Add": func() { q.testWrite(n) }, "Exists": func() { q.testRead(n) },
			} {
				b.Run(fmt.Sprintf("kind=%s/call=%s/items=%d", kind, call, n), func(b *testing.B) {
					encode() // the request grows once
					b.ReportAllocs()
					for b.Loop() {
						encode()
					}
				})
			}
			q.free()
		}
	}
}

// newWireKinds makes handles that must send nothing.
func newWireKinds(tb testing.TB) map[string]*record {
	tb.Helper()
	c := newWireFilter(tb, SchemeBlocked, nil).rec.client
	recs := map[string]*record{}
	for _, panes := range []int{1, 4} {
		w, err := NewWindow(c, "seen:webhooks", WindowConfig{
			Capacity: 1_000_000, FPRate: 0.01, Span: time.Hour, Panes: panes,
		})
		if err != nil {
			tb.Fatal(err)
		}
		recs[fmt.Sprintf("Window/panes=%d", panes)] = &w.rec
	}
	f, err := NewCuckoo(c, "names", CuckooConfig{Capacity: 1_000_000, FPRate: 0.01})
	if err != nil {
		tb.Fatal(err)
	}
	recs["Cuckoo"] = &f.rec
	return recs
}
