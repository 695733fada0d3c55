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

// An Add to a window sets bits in one pane and reads all others.
func BenchmarkWindowRequest(b *testing.B) {
	f := newWireFilter(b, SchemeBlocked, nil)
	for _, panes := range []int{1, 4} {
		w, err := NewWindow(f.rec.client, "seen:webhooks", WindowConfig{
			Capacity: 1_000_000, FPRate: 0.01, Span: time.Hour, Panes: panes,
		})
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range []int{1, 1000} {
			q := newRequest(&w.rec)
			for call, encode := range map[string]func(){
				"Add": func() { q.testWrite(n) }, "Exists": func() { q.testRead(n) },
			} {
				b.Run(fmt.Sprintf("call=%s/panes=%d/items=%d/step=encode", call, panes, n), func(b *testing.B) {
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
