package conn

import "syscall"

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, in milliseconds.
const tcpUserTimeout = 18

func (s *socket) limitSilence(on bool) {
	if s.raw == nil {
		return
	}
	limit := 0
	if on {
		limit = int(maxSilence.Milliseconds())
	}
	_ = s.raw.Control(func(fd uintptr) {
		// Without it the timeout of the attempt is the limit.
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, limit)
	})
}
