package engine_test

import (
	"runtime"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
)

// After a function that panicked, or ended its goroutine, no other begins, and
// whoever waits gets the same.
func TestPoolEnds(t *testing.T) {
	for want, f := range map[any]func(){"panic": func() { panic("panic") }, nil: runtime.Goexit} {
		p := engine.NewPool(1)
		never := func() bool { return false }
		if !p.Run(never, f) || p.Run(never, func() {}) {
			t.Errorf("%v: want the first to begin, and not the second", want)
		}
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			p.Wait()
			t.Errorf("%v: Wait returned", want)
		}()
		if got := <-ended; got != want {
			t.Errorf("Wait ended with %v, want %v", got, want)
		}
	}
}

// What is over begins nothing.
func TestPoolIsOver(t *testing.T) {
	p := engine.NewPool(1)
	if p.Run(func() bool { return true }, func() { t.Error("it began") }) {
		t.Error("Run says that it began")
	}
	p.Wait()
}
