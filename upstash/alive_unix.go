//go:build unix

package upstash

import (
	"crypto/tls"
	"net"
	"syscall"
)

// isAlive looks into an idle connection without waiting. A server that closed
// it, as servers do while a process is frozen, has left its FIN there; bytes
// that nobody asked for are as bad. Without this look the request would be
// written into the void, and nobody could tell whether it was executed.
func isAlive(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok { // the tunnel of an https:// proxy
		c = t.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		alive = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && alive
}
