//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestMemoryIsFlat: an instance for each of 10,000 requests leaves nothing in
// the runtime.
func TestMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	db := upstashtest.NewServer(t)
	w := serve(t, db.URL, db.Token)
	n := 0
	requests := func(count int) {
		var senders sync.WaitGroup
		queue := make(chan int)
		for range 4 {
			senders.Go(func() {
				for i := range queue {
					if r := w.post(t, "Idempotency-Key", fmt.Sprint("event-", i), ""); !r.isNew() {
						t.Errorf("event-%d: %+v", i, r)
					}
				}
			})
		}
		for range count {
			n++
			queue <- n
		}
		close(queue)
		senders.Wait()
	}
	const warm, more = 2_000, 10_000
	requests(warm)
	before := w.resident(t)
	requests(more)
	after := w.resident(t)
	t.Logf("%d MB after %d requests, %d MB after %d more", before>>20, warm, after>>20, more)
	if after > 2*before { // 10 KB a request
		t.Error("it grows with the requests")
	}
}

// resident is the memory in bytes that workerd holds.
func (w *worker) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", w.pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
