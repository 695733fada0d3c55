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

func TestComponentMemory(t *testing.T) {
	node, jco := needJCO(t)
	component := componentized(t, node)
	srv := upstashtest.NewServer(t)
	c := serveComponent(t, node, jco, component, srv)
	for i := range 12_001 {
		if i%1000 == 0 {
			t.Logf("%d requests: %d MB", i, resident(t, c.group)>>20)
		}
		c.want(t, fmt.Sprint("event-", i), 200, "new\n")
	}
	t.Logf("after: %d MB", resident(t, c.group)>>20)
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
