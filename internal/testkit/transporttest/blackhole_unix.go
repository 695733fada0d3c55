//go:build unix

package transporttest

import "syscall"

// shrinkQueue makes a listening socket keep at most one waiting connection.
func shrinkQueue(fd uintptr) error { return syscall.Listen(int(fd), 0) }
