package main

import (
	"testing"

	"github.com/upbloom/upbloom/bloom"
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
	if n := b.server.Stats().Requests; n != 4 {
		t.Errorf("%d requests for 3 duplicates, want one each and one look", n)
	}
}

func capacityOf(n uint64) bloom.Config {
	cfg := filterConfig
	cfg.Capacity = n
	return cfg
}
