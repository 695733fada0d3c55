package conn

import (
	"io"
	"syscall"
	"time"
	"unsafe"
)

// canHold is false: a read that waits for a held request's answer would take
// more system calls than it saves.
const canHold = false

// readOnce reads what has come. The sockets of package net block, so it asks
// first how much there is. An error and the peer's end of the connection are
// both io.EOF.
func (s *socket) readOnce(fd uintptr) (done bool) {
	switch n, ended := waiting(syscall.Handle(fd)); {
	case n > 0:
		into := s.p[:min(len(s.p), int(n))]
		buf := syscall.WSABuf{Len: uint32(len(into)), Buf: unsafe.SliceData(into)}
		var got, flags uint32
		if err := syscall.WSARecv(syscall.Handle(fd), &buf, 1, &got, &flags, nil, nil); err != nil {
			s.err = s.failed(err)
		}
		s.n = int(got)
	case ended:
		s.err = io.EOF
	default:
		s.err = errNothingYet
	}
	return true
}

var wsaPoll = syscall.NewLazyDLL("ws2_32.dll").NewProc("WSAPoll")

// The constants of Winsock.
const (
	pollRead = 0x0100     // POLLRDNORM
	fionread = 0x4004667f // how many bytes a read would return
)

// waiting returns how many bytes a socket has to read, and if it has none,
// whether no more will come.
func waiting(fd syscall.Handle) (n uint32, ended bool) {
	poll := struct {
		fd              syscall.Handle
		events, revents int16
	}{fd: fd, events: pollRead}
	ready, _, _ := syscall.SyscallN(wsaPoll.Addr(), uintptr(unsafe.Pointer(&poll)), 1, 0)
	if ready != 1 {
		return 0, false
	}
	var returned uint32
	err := syscall.WSAIoctl(fd, fionread, nil, 0,
		(*byte)(unsafe.Pointer(&n)), uint32(unsafe.Sizeof(n)), &returned, nil, 0)
	return n, err != nil || n == 0
}

func (s *socket) limitSilence(time.Duration) {}
