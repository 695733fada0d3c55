package bloom

import "sync"

// A pool runs functions on goroutines, and no more than its size at once.
type pool struct {
	slots   chan struct{}
	running sync.WaitGroup
}

func newPool(size int) *pool { return &pool{slots: make(chan struct{}, size)} }

// run waits until a goroutine is free, and starts f on it. If over returns true
// by then, run does not start f and returns false.
func (p *pool) run(over func() bool, f func()) bool {
	p.slots <- struct{}{}
	if over() {
		<-p.slots
		return false
	}
	p.running.Go(func() {
		defer func() { <-p.slots }()
		f()
	})
	return true
}

// wait returns when all functions have.
func (p *pool) wait() { p.running.Wait() }
