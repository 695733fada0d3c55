package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	_ "github.com/upbloom/upbloom/internal/testkit/testenv" // its clients are patient
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Of several users who want a name at the same time, one gets it. Then the name
// no longer looks free.
func TestANameIsTakenOnce(t *testing.T) {
	s := upstashtest.NewServer(t)
	n, err := newNames(s.Client(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if free, err := n.looksFree(t.Context(), "ada"); err != nil || !free {
		t.Errorf("looksFree before the first name: %v, %v, want true", free, err)
	}
	var winners atomic.Int32
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			if ok, err := n.take(t.Context(), "ada"); err != nil {
				t.Error(err)
			} else if ok {
				winners.Add(1)
			}
		})
	}
	running.Wait()
	if winners.Load() != 1 {
		t.Errorf("%d callers got the name, want 1", winners.Load())
	}
	if free, err := n.looksFree(t.Context(), "ada"); err != nil || free {
		t.Errorf("looksFree of a taken name: %v, %v, want false", free, err)
	}
}

// A name outside of the filter costs no command.
func TestLookingCostsLittle(t *testing.T) {
	s := upstashtest.NewServer(t) // outside of the bubble
	client := s.Client()
	defer client.Close()
	synctest.Test(t, func(t *testing.T) { // the copy gets no older
		n, err := newNames(client, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.take(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
		if err := n.taken.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.ResetStats()
		for i := range 1000 {
			if free, err := n.looksFree(t.Context(), fmt.Sprintf("name%d", i)); err != nil || !free {
				t.Fatalf("looksFree(name%d) = %v, %v, want true", i, free, err)
			}
		}
		if got := s.Stats().Commands; got > 0 {
			t.Errorf("a thousand free names cost %d commands, want none", got)
		}
	})
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), &out)
	if err != nil || !strings.Contains(out.String(), "user7, taken once more: false") {
		t.Errorf("run printed %q, %v, want \"user7, taken once more: false\"", &out, err)
	}
}
