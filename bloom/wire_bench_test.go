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
			q := engine.NewRequest(&f.rec.Core)
			call := "Exists"
			encode, judge := func() { testRead(q, n) }, func() error {
				q.Found = q.Found[:0]
				return q.JudgeRead(true)
			}
			if write {
				call, encode, judge = "Add", func() { testWrite(q, n) }, q.JudgeWrite
			}
			b.Run(fmt.Sprintf("call=%s/items=%d/step=encode", call, n), func(b *testing.B) {
				encode() // the request grows once
				b.ReportAllocs()
				for b.Loop() {
					encode()
				}
			})
			encode()
			answered(q, b, write)
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
			q := engine.NewRequest(rec)
			for call, encode := range map[string]func(){
				"Add": func() { testWrite(q, n) }, "Exists": func() { testRead(q, n) },
			} {
				b.Run(fmt.Sprintf("kind=%s/call=%s/items=%d", kind, call, n), func(b *testing.B) {
					encode() // the request grows once
					b.ReportAllocs()
					for b.Loop() {
						encode()
					}
				})
			}
			q.Free()
		}
	}
}

// newWireKinds makes handles that must send nothing.
func newWireKinds(tb testing.TB) map[string]*engine.Core {
	tb.Helper()
	c := newWireFilter(tb, SchemeBlocked, nil).rec.Client
	recs := map[string]*engine.Core{}
	for _, panes := range []int{1, 4} {
		w, err := NewWindow(c, "seen:webhooks", WindowConfig{
			Capacity: 1_000_000, FPRate: 0.01, Span: time.Hour, Panes: panes,
		})
		if err != nil {
			tb.Fatal(err)
		}
		recs[fmt.Sprintf("Window/panes=%d", panes)] = &w.rec.Core
	}
	f, err := NewCuckoo(c, "names", CuckooConfig{Capacity: 1_000_000, FPRate: 0.01})
	if err != nil {
		tb.Fatal(err)
	}
	recs["Cuckoo"] = &f.rec.Core
	return recs
}
