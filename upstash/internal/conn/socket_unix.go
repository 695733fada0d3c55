//go:build unix

package conn

import (
	"io"
	"runtime"
	"syscall"
	"time"
)

// canHold says whether readOnce can wait.
const canHold = true

// readOnce reads what has come, and reports whether the read is over: the
// sockets of package net are non-blocking. If it is not over, package net calls
// readOnce again when there is something to read.
func (s *socket) readOnce(fd uintptr) (done bool) {
	if s.release() {
		return false
	}
	for {
		n, err := syscall.Read(int(fd), s.p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN && !s.noWait:
			return false
		case err == syscall.EAGAIN:
			s.err = errNothingYet
		case err != nil:
			s.err = s.failed(err)
		case n == 0:
			s.err = io.EOF
		default:
			s.n = n
		}
		return true
	}
}

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, in milliseconds.
const tcpUserTimeout = 18

func (s *socket) limitSilence(limit time.Duration) {
	if s.raw == nil || runtime.GOOS != "linux" && runtime.GOOS != "android" {
		return
	}
	_ = s.raw.Control(func(fd uintptr) {
		// Without it the timeout of the attempt is the limit.
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(limit.Milliseconds()))
	})
}
