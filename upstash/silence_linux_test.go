package upstash

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// TestAPeerThatVanished: the peer of a kept connection is gone without a word.
// The connection ends long before the timeout, and a repeatable command gets
// its answer over another one.
func TestAPeerThatVanished(t *testing.T) {
	var first atomic.Pointer[net.TCPConn]
	s := serve(t, answerOne, func(c net.Conn) { first.CompareAndSwap(nil, c.(*net.TCPConn)) })
	tr := &fasthttpTransport{pool: conn.NewPool(1, func(context.Context) (*conn.Conn, error) {
		c := conn.New(dial(t, s))
		c.MaxSilence = 100 * time.Millisecond // the system gives up with the first repetition of a packet
		return c, nil
	})}
	defer tr.Close()
	var ends []error
	c := newClient(t, s.URL, WithTransport(tr), WithTimeout(time.Minute),
		observing(func(e Event) { ends = append(ends, e.Err) }))
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

// TestSilenceIsLimited: the system gets three seconds for a small request, and no
// limit for a large one.
func TestSilenceIsLimited(t *testing.T) {
	s := serve(t, answerOne, func(net.Conn) {})
	var socket net.Conn
	tr := transportOver(t, 1, func() net.Conn {
		socket = dial(t, s)
		return socket
	})
	c := newClient(t, s.URL, WithTransport(tr))
	const userTimeout = 18 // TCP_USER_TIMEOUT of linux/tcp.h
	for value, want := range map[string]int{"v": 3000, strings.Repeat("v", smallBody): 0} {
		if _, err := c.Do(t.Context(), Cmd("SET", "k", value)); err != nil {
			t.Fatal(err)
		}
		raw, err := socket.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		got := -1
		controlErr := raw.Control(func(fd uintptr) {
			got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout)
		})
		if err = errors.Join(err, controlErr); got != want || err != nil {
			t.Errorf("a value of %d bytes: a limit of %d ms, %v, want %d", len(value), got, err, want)
		}
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
