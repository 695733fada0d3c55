//go:build unix

package testenv

import "syscall"

// arrived returns a function for RawConn.Read that reports whether there is
// something to read. The poller of package net may know it already, and then
// does not say it again.
func arrived() func(fd uintptr) bool {
	return func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	}
}
