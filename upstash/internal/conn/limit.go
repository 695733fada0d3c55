//go:build !wasm

package conn

import (
	"errors"
	"os"
	"sync"
	"time"
)

// limit is when reads and writes of a socket end. To move the deadline of a
// net.Conn wakes a thread of the Go runtime, which halves the speed of a single
// caller. So a deadline stays over many exchanges if it is earlier than theirs,
// and moves when it strikes.
type limit struct {
	deadline time.Time // of the exchange, or zero

	mu          sync.Mutex // a reader, a writer and an interruption may meet
	set         time.Time  // the net.Conn's deadline; zero, or not after deadline
	interrupted bool
}

// setLimit has reads and writes fail from the deadline on, or never if it is
// zero.
func (s *socket) setLimit(now, deadline time.Time) {
	l := &s.limit
	l.deadline = deadline
	if l.set.IsZero() && deadline.IsZero() {
		return
	}
	if l.set.After(now) && (deadline.IsZero() || !l.set.After(deadline)) {
		return
	}
	l.set = deadline
	_ = s.SetDeadline(deadline)
}

// tooEarly reports whether err is due to the deadline of an exchange before. If
// so, it sets the present one, and the caller goes on.
func (s *socket) tooEarly(err error) bool {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	l := &s.limit
	if !l.deadline.IsZero() && time.Until(l.deadline) <= 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.interrupted {
		return false // and the deadline must stay: another goroutine has yet to meet it
	}
	l.set = l.deadline
	_ = s.SetDeadline(l.deadline)
	return true
}

// interrupt makes reads and writes that block, and all later ones, fail.
func (s *socket) interrupt() { s.interruptBy(s.SetDeadline) }

// interruptWrites is interrupt for writes alone.
func (s *socket) interruptWrites() { s.interruptBy(s.SetWriteDeadline) }

func (s *socket) interruptBy(setDeadline func(time.Time) error) {
	s.limit.mu.Lock()
	defer s.limit.mu.Unlock()
	s.limit.interrupted = true
	_ = setDeadline(past)
}

var past = time.Unix(1, 0)
