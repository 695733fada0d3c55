package testenv

import (
	"net"
	"sync"
	"testing"
)

// Serve calls serve for each connection to addr, on a goroutine of its own. It
// closes the connection when serve returns or the test ends, and waits at the end
// until each serve has returned.
func Serve(tb testing.TB, serve func(net.Conn)) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	over := make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			served := make(chan struct{})
			serving.Go(func() {
				defer close(served)
				serve(c)
			})
			serving.Go(func() {
				select {
				case <-served:
				case <-over: // serve may still read, because clients keep connections
				}
				_ = c.Close()
			})
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		close(over)
		serving.Wait()
	})
	return l.Addr().String()
}

// ServeCanned serves an answer whenever what it has read ends with a bracket, as the
// body of a command does. It allocates nothing for it.
func ServeCanned(tb testing.TB, answer []byte) (addr string) {
	tb.Helper()
	return Serve(tb, func(c net.Conn) {
		for buf := make([]byte, 64<<10); ; {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if buf[n-1] != ']' {
				continue // a header by itself
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	})
}
