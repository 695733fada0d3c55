package bloom

import (
	"fmt"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
)

// BenchmarkRequest measures what a request costs besides the network: encoding
// its operations and judging its reply. Neither allocates, however many items.
func BenchmarkRequest(b *testing.B) {
	f := newWireFilter(b, SchemeBlocked, nil)
	for _, n := range []int{1, 1000} {
		for _, write := range []bool{true, false} {
			r := &f.rec.Record
			call, build := "Exists", testRead
			if write {
				call, build = "Add", testWrite
			}
			q := answered(build(r, n), b, write)
			encode, judge := func() { build(r, n).Free() }, q.JudgeWrite
			if !write {
				judge = func() error {
					q.Found = q.Found[:0]
					return q.JudgeRead(true)
				}
			}
			b.Run(fmt.Sprintf("call=%s/items=%d/step=encode", call, n), func(b *testing.B) {
				encode() // the request grows once
				b.ReportAllocs()
				for b.Loop() {
					encode()
				}
			})
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
			q.Free()
		}
	}
}

// BenchmarkRequestOfAKind measures what encoding costs: an Add to a window sets bits
// in one pane and reads all others, an Add to a Cuckoo is a script whose arguments
// are texts.
func BenchmarkRequestOfAKind(b *testing.B) {
	for kind, rec := range newWireKinds(b) {
		for _, n := range []int{1, 1000} {
			for call, encode := range map[string]func(){
				"Add": func() { testWrite(rec, n).Free() }, "Exists": func() { testRead(rec, n).Free() },
			} {
				b.Run(fmt.Sprintf("kind=%s/call=%s/items=%d", kind, call, n), func(b *testing.B) {
					encode() // the request grows once
					b.ReportAllocs()
					for b.Loop() {
						encode()
					}
				})
			}
		}
	}
}

// newWireKinds makes handles that ask for the time at most.
func newWireKinds(tb testing.TB) map[string]*engine.Record {
	tb.Helper()
	c := newWireFilter(tb, SchemeBlocked, always(`{"result":["1800000000","0"]}`)).rec.Client
	recs := map[string]*engine.Record{}
	for _, panes := range []int{1, 4} {
		w, err := NewWindow(c, "seen:webhooks", WindowConfig{
			Capacity: 1_000_000, FPRate: 0.01, Span: time.Hour, Panes: panes,
		})
		if err != nil {
			tb.Fatal(err)
		}
		recs[fmt.Sprintf("Window/panes=%d", panes)] = &w.rec.Record
	}
	f, err := NewCuckoo(c, "names", CuckooConfig{Capacity: 1_000_000, FPRate: 0.01})
	if err != nil {
		tb.Fatal(err)
	}
	recs["Cuckoo"] = &f.rec.Record
	return recs
}
