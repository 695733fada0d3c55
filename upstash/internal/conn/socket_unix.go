//go:build unix

package conn

import (
	"io"
	"syscall"
)

// readOnce reads without waiting: the sockets of package net are non-blocking.
func (s *socket) readOnce(fd uintptr) bool {
	for {
		n, err := syscall.Read(int(fd), s.p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			s.err = errNothingYet
		case err != nil:
			s.err = err
		case n == 0:
			s.err = io.EOF
		default:
			s.n = n
		}
		return true
	}
}
