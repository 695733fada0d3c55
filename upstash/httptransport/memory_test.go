package httptransport_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestMemoryIsFlat: 10,000 calls leave no more live memory than there was
// before.
func TestMemoryIsFlat(t *testing.T) {
	db := upstashtest.NewServer(t)
	tr := httptransport.New(nil)
	defer tr.Close()
	c, err := upstash.New(db.URL, db.Token, upstash.WithTransport(tr))
	if err != nil {
		t.Fatal(err)
	}
	calls := func(n int) {
		for i := range n {
			if _, err := c.Do(t.Context(), upstash.Cmd("SET", "key", fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	live := func() uint64 {
		runtime.GC()
		runtime.GC() // what sync.Pool kept from the first
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	calls(1_000)
	before := live()
	n := 3_000
	if testenv.Long() {
		n = 10_000
	}
	calls(n)
	after := live()
	t.Logf("%d bytes live before, %d after", before, after)
	if after > before+uint64(100*n) {
		t.Errorf("live memory grew by %d bytes in %d calls", after-before, n)
	}
}
