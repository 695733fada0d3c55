//go:build wasip1

package main

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/upbloom/upbloom/upstash"
)

// exchange is a function of the host. It sends the request of n bytes, waits no
// longer than timeout (nanoseconds), and writes the answer to the address
// answer. It returns the answer's length in bytes. If that is more than room,
// it has written nothing, and a call with n = 0 fetches the answer. Request and
// answer are text:
//
//	request  URL LF {name ": " value LF} LF body
//	answer   status LF {name ": " value LF} LF body
//	or       outcome ": " text
//
// The outcome is "not sent", "failed", "timeout", "too large" (its text is the
// status) or "canceled" (the caller of the guest no longer waits).
//
//go:wasmimport upbloom exchange
func exchange(request unsafe.Pointer, n uint32, timeout uint64, maxBody uint32,
	answer unsafe.Pointer, room uint32) uint32

// transport is an upstash.Transport over exchange. Make one with
// &transport{}; it is safe for concurrent use.
//
// A host call blocks all goroutines of the guest, so no timer fires and no
// context is canceled meanwhile. The host keeps the time, and knows whether its
// own caller still waits.
type transport struct {
	mu      sync.Mutex // an answer belongs to the request before it
	message []byte
	answer  []byte
}

// RoundTrip sends one request. See upstash.Transport.
func (t *transport) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	timeout := time.Hour // for a context without a deadline
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	if timeout <= 0 || ctx.Err() != nil {
		return upstash.NotSent(context.DeadlineExceeded)
	}
	t.message = appendRequest(t.message[:0], req)
	if t.answer == nil {
		t.answer = make([]byte, 4<<10)
	}
	send := func(message []byte) uint32 {
		return exchange(
			unsafe.Pointer(unsafe.SliceData(message)), uint32(len(message)),
			uint64(timeout), uint32(req.MaxResponse),
			unsafe.Pointer(unsafe.SliceData(t.answer)), uint32(len(t.answer)),
		)
	}
	n := send(t.message)
	if int(n) > len(t.answer) {
		t.answer = make([]byte, n)
		send(nil)
	}
	return readAnswer(t.answer[:n], resp)
}

func appendRequest(b []byte, req *upstash.Request) []byte {
	b = append(append(b, req.URL...), '\n')
	for _, h := range req.Header {
		b = append(append(b, h.Name...), ": "...)
		b = append(append(b, h.Value...), '\n')
	}
	return append(append(b, '\n'), req.Body...)
}

func readAnswer(b []byte, resp *upstash.Response) error {
	head, body, ok := bytes.Cut(b, []byte("\n\n"))
	if !ok {
		return failure(string(b), resp)
	}
	status, fields, _ := strings.Cut(string(head), "\n")
	var err error
	if resp.StatusCode, err = strconv.Atoi(status); err != nil {
		return errors.New("the host's answer has no status")
	}
	for line := range strings.SplitSeq(fields, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		resp.SetHeader(name, value)
	}
	resp.Body = append(resp.Body, body...)
	return nil
}

// failure returns the error for the host's outcome.
func failure(answer string, resp *upstash.Response) error {
	outcome, text, _ := strings.Cut(answer, ": ")
	switch outcome {
	case "not sent":
		return upstash.NotSent(errors.New(text))
	case "timeout":
		return context.DeadlineExceeded
	case "canceled":
		giveUp()
		return context.Canceled
	case "too large":
		resp.StatusCode, _ = strconv.Atoi(text)
		return upstash.ErrResponseTooLarge
	default:
		return errors.New(text)
	}
}
