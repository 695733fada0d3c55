//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestComponentMemoryIsFlat bounds the memory of jco and the component
// together, over 10,000 requests after a warm-up. jco 1.20, whose own
// bookkeeping grew, took 90 KB more with each request.
// TestComponentDropsEveryHandle counts what the component alone holds.
func TestComponentMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute or more")
	}
	node, jco := needJCO(t)
	component := componentized(t, node)
	// In MB. Versions of Node differ in how long they keep garbage in the heap.
	// A heap with the growth under jco 1.20 does not fit.
	t.Setenv("NODE_OPTIONS", "--max-old-space-size=64")
	srv := upstashtest.NewServer(t)
	c := serveComponent(t, node, jco, component, srv)
	const warm, requests, samples, limit = 1_000, 10_000, 20, 200 << 20
	var held []int // after each 500 requests
	for i := range warm + requests {
		if i >= warm && (i-warm)%(requests/samples) == 0 {
			held = append(held, resident(t, c.group))
		}
		if c.want(t, fmt.Sprint("event-", i), 200, "new\n"); t.Failed() {
			return
		}
	}
	// The garbage collector lets the memory swing, so the minimum of each
	// quarter counts.
	before, after := slices.Min(held[:samples/4]), slices.Min(held[samples*3/4:])
	t.Logf("%d MB in the first quarter of %d requests, %d MB in the last, at most %d MB",
		before>>20, requests, after>>20, slices.Max(held)>>20)
	if after > before+limit { // 28 KB a request
		t.Error("the memory grows with the requests, want at most the limit")
	}
}

// resident returns the memory of the processes of a group, in bytes.
func resident(t *testing.T, group int) (bytes int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// After the name, which is in brackets: state, parent, group, and 19
		// more before the resident pages.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if fields[2] == strconv.Itoa(group) {
			pages, err := strconv.Atoi(fields[21])
			if err != nil {
				t.Fatal(err)
			}
			bytes += pages * os.Getpagesize()
		}
	}
	return bytes
}
