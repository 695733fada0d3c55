package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestOneLookIsEnough: once the fill is known, no invocation asks for it again,
// and duplicates are skipped.
func TestOneLookIsEnough(t *testing.T) {
	b := newBench(t)
	if _, err := b.deliver("a"); err != nil {
		t.Fatal(err)
	}
	var err error
	b.handler, err = newHandler(b.server.Client(), "done", capacityOf(1000), b.process)
	if err != nil {
		t.Fatal(err)
	}
	b.server.ResetStats()
	for range 3 {
		if _, err := b.deliver("a"); err != nil {
			t.Fatal(err)
		}
	}
	wantIDs(t, "worked", b.worked, "a")
	if n := b.server.Stats(); n.Requests != 5 || n.Billed != 10 {
		t.Errorf("%d requests and %d commands for 3 duplicates, want one each, one TIME,"+
			" and one look of six commands", n.Requests, n.Billed)
	}
}

// TestSizes: README's table of rates is what bloom computes.
func TestSizes(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []string{"1e-3", "1e-6", "1e-8"} {
		cfg := windowConfig
		if cfg.FPRate, err = strconv.ParseFloat(rate, 64); err != nil {
			t.Fatal(err)
		}
		pane, err := cfg.Geometry()
		if err != nil {
			t.Fatal(err)
		}
		bits := 3 * float64(pane.Bits)
		row := fmt.Sprintf("| %s | %.0f | %.1f MB |", rate, bits/float64(cfg.Capacity), bits/8e6)
		if !strings.Contains(string(readme), row) {
			t.Errorf("README has no row %q", row)
		}
	}
}

// TestTurn counts the commands of the first batch of a day, which clears a pane.
func TestTurn(t *testing.T) {
	b := newBench(t)
	var err error
	if b.handler, err = newHandler(b.server.Client(), "orders", windowConfig, b.process); err != nil {
		t.Fatal(err)
	}
	if _, err := b.done.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.checkFill(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.server.FastForward(windowConfig.Span + time.Minute)
	b.server.ResetStats()
	if _, err := b.deliver("a"); err != nil {
		t.Fatal(err)
	}
	if n := b.server.Stats(); n.Requests != 4 || n.Billed != 3+11 {
		t.Errorf("%d requests and %d commands, want the look-up, a TIME, the Add and a script of 11",
			n.Requests, n.Billed)
	}
}
