//go:build wasip1

package main

import (
	"context"
	"errors"
	"time"
	"unsafe"
)

// errStream means a broken stream, errClosed an ended one, and errAnswered an
// answer of the server before it had read the whole request.
var (
	errStream   = errors.New("wasi:io: the connection broke")
	errClosed   = errors.New("wasi:io: end of stream")
	errAnswered = errors.New("wasi:http: answered early")
)

// limit is a deadline, watched by the host. The zero value is no deadline.
type limit struct {
	clock   uint32 // a pollable, or 0
	left    time.Duration
	waiting [3]uint32 // for the host's poll
}

// limitOf starts a clock with the time left to ctx.
func limitOf(ctx context.Context) (*limit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return &limit{}, nil
	}
	left := time.Until(deadline)
	if left <= 0 {
		return nil, context.DeadlineExceeded
	}
	return &limit{clock: subscribeDuration(uint64(left)), left: left}, nil
}

func (l *limit) drop() {
	if l.clock != 0 {
		dropPollable(l.clock)
	}
}

// options returns the same deadline as request-options of wasi:http, by which
// some hosts free a connection's resources. The request takes ownership of it.
func (l *limit) options() uint32 {
	options := newRequestOptions()
	if l.clock != 0 {
		optionsSetConnectTimeout(options, 1, uint64(l.left))
		optionsSetFirstByteTimeout(options, 1, uint64(l.left))
		optionsSetBetweenBytesTimeout(options, 1, uint64(l.left))
	}
	return options
}

// wait blocks until one of the pollables, one or two, is ready. It drops them
// and returns the index of the first ready one.
func (l *limit) wait(pollables ...uint32) (ready int, err error) {
	n := copy(l.waiting[:], pollables)
	if l.clock != 0 {
		l.waiting[n] = l.clock
		n++
	}
	list(func() { pollList(unsafe.Pointer(&l.waiting), uint32(n), ret()) })
	ready, err = 0, context.DeadlineExceeded
	for i, p := range pollables {
		if err != nil && pollableReady(p) != 0 {
			ready, err = i, nil
		}
		dropPollable(p)
	}
	return ready, err
}

// writeBody writes all of data and finishes the body. answer is the future of
// the answer, or 0. If the answer comes first, writeBody returns errAnswered,
// and the caller must drop the body.
func writeBody(body uint32, data []byte, limit *limit, answer uint32) error {
	bodyWrite(body, ret())
	stream := ret32(4)
	err := write(stream, data, limit, answer)
	dropOutputStream(stream)
	switch {
	case err == errAnswered:
		return err
	case err != nil:
		dropOutgoingBody(body)
		return err
	}
	list(func() { bodyFinish(body, 0, 0, ret()) })
	if ret8(0) != 0 {
		return errStream
	}
	return nil
}

// write sends data in portions, as the host has room.
func write(stream uint32, data []byte, limit *limit, answer uint32) error {
	for len(data) > 0 {
		outputCheckWrite(stream, ret())
		if ret8(0) != 0 {
			return streamError(8)
		}
		n := min(ret64(8), uint64(len(data)))
		if n == 0 {
			if err := waitToWrite(stream, limit, answer); err != nil {
				return err
			}
			continue
		}
		outputWrite(stream, unsafe.Pointer(unsafe.SliceData(data)), uint32(n), ret())
		if ret8(0) != 0 {
			return streamError(4)
		}
		data = data[n:]
	}
	outputFlush(stream, ret())
	if ret8(0) != 0 {
		return streamError(4)
	}
	return waitToWrite(stream, limit, answer)
}

// waitToWrite waits for room, or for the answer of a server that reads no
// more.
func waitToWrite(stream uint32, limit *limit, answer uint32) error {
	if answer == 0 {
		_, err := limit.wait(outputSubscribe(stream))
		return err
	}
	ready, err := limit.wait(outputSubscribe(stream), futureSubscribe(answer))
	if ready == 1 {
		return errAnswered
	}
	return err
}

// read waits for bytes and returns what has arrived. It is valid until the next
// host call that returns a list.
func read(stream uint32, limit *limit) ([]byte, error) {
	if _, err := limit.wait(inputSubscribe(stream)); err != nil {
		return nil, err
	}
	list(func() { inputRead(stream, uint64(maxRead), ret()) })
	if ret8(0) != 0 {
		if err := streamError(4); err != errStream {
			return nil, errClosed
		}
		return nil, errStream
	}
	return retBytes(4), nil
}

// streamError reads the stream-error at a byte offset of the result.
func streamError(offset uintptr) error {
	if ret8(offset) == 0 { // last-operation-failed, which carries an error
		dropIOError(ret32(offset + 4))
		return errStream
	}
	return errClosed
}
