//go:build unix

package transporttest

import "syscall"

// shrinkQueue makes a socket that listens already keep one waiting connection
// at most.
func shrinkQueue(fd uintptr) error { return syscall.Listen(int(fd), 0) }
