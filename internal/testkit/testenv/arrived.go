package testenv

import (
	"errors"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Arrived waits, without reading, until something from the other end is in the
// socket of c: bytes, or the end of the connection.
func Arrived(tb testing.TB, c net.Conn) {
	tb.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	_ = c.SetReadDeadline(time.Now().Add(Patience))
	err = raw.Read(arrived())
	_ = c.SetReadDeadline(time.Time{})
	if runtime.GOOS == "windows" && !errors.Is(err, os.ErrDeadlineExceeded) {
		return // a broken connection too is an error here
	}
	if err != nil {
		tb.Fatalf("testenv: nothing has arrived: %v", err)
	}
}
