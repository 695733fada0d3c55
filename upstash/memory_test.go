//go:build !race

package upstash_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Thousands of calls leave neither memory nor connections nor goroutines
// behind.
func TestMemoryIsFlat(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	calls := func(n int) {
		for i := range n {
			key := "key-" + strconv.Itoa(i%100)
			if _, err := c.Do(t.Context(), upstash.Cmd("SET", key, "value", "EX", "60")); err != nil {
				t.Fatal(err)
			}
		}
	}
	live := func() uint64 {
		runtime.GC()
		runtime.GC() // garbage the first one finalized
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	calls(1000)
	before, routines := live(), runtime.NumGoroutine()
	n := 3_000
	if testenv.Long() {
		n = 10_000
	}
	calls(n)
	after, routinesAfter := live(), runtime.NumGoroutine()
	// The server may end the last call later than the client.
	for end := time.Now().Add(testenv.Patience); routinesAfter > routines && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		routinesAfter = runtime.NumGoroutine()
	}
	t.Logf("live heap %d and %d bytes, %d and %d goroutines", before, after, routines, routinesAfter)
	// The server runs in this process too. This is 87 bytes a call, or 26 in the
	// long form.
	if after > before+256<<10 {
		t.Errorf("the live heap grew from %d to %d bytes", before, after)
	}
	if routinesAfter > routines {
		t.Errorf("the goroutines grew from %d to %d", routines, routinesAfter)
	}
}
