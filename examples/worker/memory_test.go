//go:build linux

package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestMemoryIsFlat sends 10,000 requests after a warm-up. Each has its own
// instance, which must leave nothing in the runtime. The garbage collector lets
// the memory swing, so the minimum of several samples counts.
func TestMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute or more")
	}
	db := upstashtest.NewServer(t)
	w := serve(t, db.URL, db.Token)
	queue := make(chan int)
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for i := range queue {
				r := w.post(t, "Idempotency-Key", fmt.Sprint("event-", i), "")
				// On a busy machine the Worker may reach its time limit.
				if !r.isNew() && r.Status != http.StatusGatewayTimeout {
					t.Errorf("event-%d: %+v, want new or status 504", i, r)
				}
			}
		})
	}
	const warm, requests, samples, limit = 1_000, 10_000, 20, 100 << 20
	var held []int // after each 500 requests
	for i := range warm + requests {
		queue <- i
		if i >= warm && (i-warm)%(requests/samples) == 0 {
			held = append(held, w.resident(t))
		}
	}
	close(queue)
	senders.Wait()
	before, after := slices.Min(held[:samples/4]), slices.Min(held[samples*3/4:])
	t.Logf("%d MB in the first quarter of %d requests, %d MB in the last, at most %d MB",
		before>>20, requests, after>>20, slices.Max(held)>>20)
	if after > before+limit { // 14 KB a request
		t.Error("the memory grows with the requests, want at most the limit")
	}
}

// resident returns the memory in bytes that workerd holds.
func (w *worker) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", w.PID))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
