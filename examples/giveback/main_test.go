package main

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/upbloom/upbloom/internal/testkit/testenv" // its clients are patient
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func newBench(t *testing.T) (*upstashtest.Server, *names) {
	t.Helper()
	s := upstashtest.NewServer(t)
	n, err := newNames(s.Client(), 8213)
	if err != nil {
		t.Fatal(err)
	}
	return s, n
}

func (n *names) mustHold(t *testing.T, want uint64) {
	t.Helper()
	if got, err := n.taken.Count(t.Context()); err != nil || got != want {
		t.Errorf("the filter holds %d copies, want %d: %v", got, want, err)
	}
}

// Of several users who want a name at the same time, one gets it. Of several
// who give it back, one does. The filter then has one copy of the name, and
// none.
func TestTakenAndGivenBackOnce(t *testing.T) {
	_, n := newBench(t)
	all := func(do func() (bool, error)) int32 {
		var done atomic.Int32
		var running sync.WaitGroup
		for range 4 {
			running.Go(func() {
				if ok, err := do(); err != nil {
					t.Error(err)
				} else if ok {
					done.Add(1)
				}
			})
		}
		running.Wait()
		return done.Load()
	}
	if got := all(func() (bool, error) { return n.take(t.Context(), "ada") }); got != 1 {
		t.Errorf("%d callers got the name, want 1", got)
	}
	n.mustHold(t, 1)
	if free, err := n.looksFree(t.Context(), "ada"); err != nil || free {
		t.Errorf("looksFree of a taken name: %v, %v, want false", free, err)
	}
	if got := all(func() (bool, error) { return n.giveBack(t.Context(), "ada") }); got != 1 {
		t.Errorf("%d callers gave the name back, want 1", got)
	}
	n.mustHold(t, 0)
}

// Giving names back does not free anyone else's.
func TestTheOthersStayTaken(t *testing.T) {
	_, n := newBench(t)
	name := func(i int) string { return fmt.Sprint("user", i) }
	const users = 60
	for i := range users {
		if ok, err := n.take(t.Context(), name(i)); err != nil || !ok {
			t.Fatalf("take(%s) = %v, %v, want true", name(i), ok, err)
		}
	}
	for i := range users / 2 {
		if ok, err := n.giveBack(t.Context(), name(i)); err != nil || !ok {
			t.Fatalf("giveBack(%s) = %v, %v, want true", name(i), ok, err)
		}
	}
	// Nobody has these names, so nothing is removed.
	if ok, err := n.giveBack(t.Context(), "nobody"); err != nil || ok {
		t.Errorf("giveBack of a name that nobody has: %v, %v, want false", ok, err)
	}
	n.mustHold(t, users/2)
	for i := range users {
		if free, err := n.looksFree(t.Context(), name(i)); err != nil || free != (i < users/2) {
			t.Errorf("looksFree(%s) = %v, %v, want %v", name(i), free, err, i < users/2)
		}
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := "ada taken: true\nada taken again: false\nada free: false\n" +
		"ada given back: true\nada free: true\nada taken: true\n"
	if out.String() != want {
		t.Errorf("run printed %q, want %q", &out, want)
	}
}
