package conn

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, in milliseconds.
const tcpUserTimeout = 18

func (s *socket) limitSilence(limit time.Duration) {
	if s.raw == nil {
		return
	}
	_ = s.raw.Control(func(fd uintptr) {
		// Without it the timeout of the attempt is the limit.
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(limit.Milliseconds()))
	})
}
