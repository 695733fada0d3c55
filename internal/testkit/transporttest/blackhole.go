package transporttest

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"
)

// blackHole returns the URL of a loopback address that answers no dial. Its
// listener accepts nothing, and its queue is full.
func blackHole(t *testing.T, reached func()) (url string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("how long the queue of a listener is differs by system")
	}
	l, err := net.Listen("tcp", anyIPv4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) { err = shrinkQueue(fd) })
	if err != nil {
		t.Fatal(err)
	}
	for range 16 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		cancel()
		if err != nil { // full
			time.AfterFunc(20*time.Millisecond, reached)
			return "http://" + l.Addr().String()
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Skip("the queue of a listener does not fill up here")
	return ""
}
