package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestLongIDs: a guest refuses an id over 1 MiB, because its memory never
// shrinks.
func TestLongIDs(t *testing.T) {
	const limit = 1 << 20
	srv := upstashtest.NewServer(t)
	g := load(t, srv.URL, srv.Token)
	longest := strings.Repeat("x", limit)
	for _, want := range []Verdict{New, Seen} {
		if got := seen(t, g, longest); got != want {
			t.Errorf("the longest id: %v, want %v", got, want)
		}
	}
	before := g.module.Memory().Size()
	for _, n := range []int{limit + 1, 64 << 20} {
		v, err := g.Seen(t.Context(), strings.Repeat("x", n))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(n)) {
			t.Errorf("%d bytes: %v, %v; want an error with the length", n, v, err)
		}
	}
	if after := g.module.Memory().Size(); after != before {
		t.Errorf("the refused ids left %d bytes of memory, want %d as before them", after, before)
	}
	if got := seen(t, g, "short"); got != New {
		t.Errorf("afterwards: %v, want %v", got, New)
	}
}

// TestReactorMemoryIsFlat: the memory of a guest never shrinks. It stays the
// same once Go's heap has reached its size.
func TestReactorMemoryIsFlat(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := load(t, srv.URL, srv.Token)
	const warm, calls = 5_000, 10_000
	var before uint32
	for i := range warm + calls {
		if i == warm {
			before = g.module.Memory().Size()
		}
		if got := seen(t, g, fmt.Sprint("event-", i/2)); got != Verdict(i%2) {
			t.Fatalf("call %d: %v, want %v", i, got, Verdict(i%2))
		}
	}
	after := g.module.Memory().Size()
	t.Logf("%d bytes after %d calls, %d after %d more", before, warm, after, calls)
	if after > before+1<<20 {
		t.Error("the memory grows with the calls, want at most 1 MiB more")
	}
}
