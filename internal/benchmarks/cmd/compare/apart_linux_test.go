package main

import (
	"runtime"
	"slices"
	"testing"
)

// Who plays apart has one processor and one thread for Go, and gets the others
// back.
func TestPlayApart(t *testing.T) {
	before, procs := processors(), runtime.GOMAXPROCS(0)
	if len(before) < 2 {
		t.Skip("this takes two processors")
	}
	err := playApart(t.Context(), func() error {
		done := make(chan []int)
		go func() { // maybe on another thread
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			done <- processors()
		}()
		if got := <-done; !slices.Equal(got, before[:1]) || runtime.GOMAXPROCS(0) != 1 {
			t.Errorf("processors %v and GOMAXPROCS %d, want %v and 1", got, runtime.GOMAXPROCS(0), before[:1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := processors(); !slices.Equal(got, before) || runtime.GOMAXPROCS(0) != procs {
		t.Errorf("afterwards: processors %v and GOMAXPROCS %d, want %v and %d",
			got, runtime.GOMAXPROCS(0), before, procs)
	}
}

// A server's process has the last processor alone, and its starter all.
func TestStartApart(t *testing.T) {
	before := processors()
	if len(before) < 2 {
		t.Skip("this takes two processors")
	}
	for client, want := range map[bool]int{true: before[0], false: before[len(before)-1]} {
		err := startApart(client, func() error {
			if got := processors(); !slices.Equal(got, []int{want}) {
				t.Errorf("client %v: processors %v, want %d alone", client, got, want)
			}
			return nil
		})
		if got := processors(); err != nil || !slices.Equal(got, before) {
			t.Errorf("client %v: afterwards processors %v, %v, want %v", client, got, err, before)
		}
	}
}
