package upstash

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestAPeerThatVanished: the peer of a kept connection is gone without a word.
// The connection ends long before the timeout, and a repeatable command gets
// its answer over another one.
func TestAPeerThatVanished(t *testing.T) {
	t.Parallel()
	var first atomic.Pointer[net.TCPConn]
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":1}`)
	}))
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			first.CompareAndSwap(nil, c.(*net.TCPConn))
		}
	}
	s.Start()
	defer s.Close()
	var ends []error
	c := newClient(t, s.URL, WithTimeout(time.Minute), observing(func(e Event) { ends = append(ends, e.Err) }))
	if _, err := c.Do(t.Context(), Cmd("GET", "k")); err != nil {
		t.Fatal(err)
	}
	dropAll(t, first.Load())
	if _, err := c.Do(t.Context(), Cmd("GET", "k")); err != nil {
		t.Fatal(err)
	}
	if len(ends) == 2 && ends[1] == nil {
		t.Skip("the system delivers the packets that it was told to drop")
	}
	if len(ends) != 3 || !errors.Is(ends[1], syscall.ETIMEDOUT) || ends[2] != nil {
		t.Errorf("the attempts ended in %v, want ETIMEDOUT of the second of three", ends)
	}
}

// dropAll makes the system drop every packet for c before it is acknowledged.
func dropAll(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	controlErr := raw.Control(func(fd uintptr) {
		//lint:ignore SA1019 a module for one filter of a test is too much
		err = syscall.AttachLsf(int(fd), []syscall.SockFilter{{Code: syscall.BPF_RET | syscall.BPF_K}})
	})
	if err = errors.Join(err, controlErr); err != nil {
		t.Skip("packets cannot be dropped here: ", err)
	}
}
