//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestComponentMemoryIsFlat bounds what jco and the component hold together.
// What the component alone holds, TestComponentDropsEveryHandle counts: with
// jco 1.20, whose own bookkeeping grew, this came to five times the memory.
func TestComponentMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	node, jco := needJCO(t)
	component := componentized(t, node)
	srv := upstashtest.NewServer(t)
	c := serveComponent(t, node, jco, component, srv)
	const warm, requests = 2_000, 10_000
	before := 0
	for i := range warm + requests {
		if i == warm {
			before = resident(t, c.group)
		}
		if c.want(t, fmt.Sprint("event-", i), 200, "new\n"); t.Failed() {
			return
		}
	}
	after := resident(t, c.group)
	t.Logf("%d MB after %d requests, %d MB after %d more", before>>20, warm, after>>20, requests)
	if after > before+before/2 {
		t.Error("it grows with the requests")
	}
}

// resident is the memory in bytes that the processes of a group hold.
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
