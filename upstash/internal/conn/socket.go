//go:build !wasm

package conn

import (
	"context"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
)

// socket is the lowest layer. If noWait is set, a read returns the bytes
// already there, or errNothingYet.
type socket struct {
	net.Conn
	noWait bool

	raw     syscall.RawConn // nil if Conn is not a socket of the system
	readRaw func(fd uintptr) bool
	p       []byte // what readRaw reads into; n and err are its result
	n       int
	err     error

	holding  bool   // writes go into held
	held     []byte // for the next read to send before it waits
	writeErr error

	ctx       context.Context // ends the exchange; nil if nothing does
	stop      func() bool     // watching ctx; nil before
	interrupt func()          // made once, because a method value allocates
}

// past is a deadline that interrupts at once.
var past = time.Unix(1, 0)

// maxSilence is how long the peer's system may take to confirm written bytes:
// time for four repetitions of a packet. The system answers at once, however
// busy the server is.
const maxSilence = 3 * time.Second

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c}
	s.interrupt = func() { _ = s.SetDeadline(past) }
	if sc, ok := c.(syscall.Conn); ok {
		s.raw, _ = sc.SyscallConn()
	}
	s.readRaw = s.readOnce // once, because it allocates
	return s
}

func (s *socket) Read(p []byte) (int, error) {
	switch {
	case !s.noWait && !s.holding:
		return s.Conn.Read(p)
	case len(p) == 0:
		return 0, errNothingYet
	case s.raw == nil:
		return s.tryRead(p)
	}
	s.p, s.n, s.err = p, 0, nil
	err := s.raw.Read(s.readRaw)
	s.p = nil
	if err == nil {
		return s.n, s.err
	}
	if s.holding { // the limit had passed, and nothing was sent
		s.holding, s.held, s.writeErr = false, s.held[:0], err
	}
	return s.n, err
}

// failed is the error of a raw read in the form of package net.
func (s *socket) failed(err error) error {
	local, remote := s.LocalAddr(), s.RemoteAddr()
	return &net.OpError{
		Op: "read", Net: remote.Network(), Source: local, Addr: remote, Err: os.NewSyscallError("read", err),
	}
}

// Write keeps p until the next read if s is holding. Otherwise a Read would
// first look for an answer that cannot be there: a system call for nothing.
func (s *socket) Write(p []byte) (int, error) {
	if s.holding {
		s.held = append(s.held, p...)
		return len(p), nil
	}
	return s.Conn.Write(p)
}

// release sends what is held. It reports true if there was something and it
// went out: the answer is still to come.
func (s *socket) release() bool {
	if !s.holding {
		return false
	}
	s.holding = false
	_, s.writeErr = s.Conn.Write(s.held)
	s.held = s.held[:0]
	s.watch()
	return s.writeErr == nil
}

// watch interrupts reads and writes when ctx ends: only a past deadline wakes
// them.
func (s *socket) watch() {
	if s.ctx != nil {
		s.stop = context.AfterFunc(s.ctx, s.interrupt)
	}
}

// tryRead reads without waiting from a connection that is not a socket of the
// system, if the connection can do so.
func (s *socket) tryRead(p []byte) (n int, err error) {
	if c, ok := s.Conn.(dialctx.TryReader); ok {
		n, err = c.TryRead(p)
	}
	if n == 0 && err == nil {
		err = errNothingYet
	}
	return n, err
}

// errNothingYet is returned instead of waiting. For TLS it is a temporary
// error, and it can read on.
var errNothingYet net.Error = nothingYet{}

type nothingYet struct{}

func (nothingYet) Error() string   { return "nothing to read yet" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }
