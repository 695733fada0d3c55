package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// Transport makes the program send each request. RoundTrip does not return
// before the program's own has, so a test of how calls end tests the program's
// transport. It is safe for concurrent use.
type Transport struct {
	writing sync.Mutex // of whole messages
	to      io.WriteCloser
	ended   chan struct{} // closed when there will be no more results

	mu      sync.Mutex          // of what follows
	last    int                 // the ID of the latest call
	waiting map[int]chan Result // each with room for its one result
	broken  error               // why there will be no more results
}

// patience is how long after the context's end a result may come. After that,
// the program counts as hung. It is testenv's, which this package leaves out: it
// runs in WebAssembly.
const patience = 5 * time.Minute

// New returns the transport of a program that reads calls from one end of to
// and writes results to one end of from. The caller must call End.
func New(to io.WriteCloser, from io.Reader) *Transport {
	t := &Transport{to: to, ended: make(chan struct{}), waiting: map[int]chan Result{}}
	go func() {
		defer close(t.ended)
		r := bufio.NewReader(from)
		t.receive(r)
		_, _ = io.Copy(io.Discard, r) // what the program says at its end
	}()
	return t
}

// End tells the program to end, waits until it has written its last byte, and
// returns what it wrote instead of a result.
func (t *Transport) End() (broken error) {
	_ = t.to.Close()
	<-t.ended
	return t.broken
}

// receive hands out results until there are no more.
func (t *Transport) receive(from *bufio.Reader) {
	for {
		var result Result
		var err error
		result.Body, err = read(from, &result)
		t.mu.Lock()
		if err != nil {
			t.broken = err
			for _, c := range t.waiting {
				close(c)
			}
			t.mu.Unlock()
			return
		}
		t.waiting[result.ID] <- result
		delete(t.waiting, result.ID)
		t.mu.Unlock()
	}
}

// RoundTrip makes the program send the request. The program gets the deadline
// with the request, and a message if the context is canceled.
func (t *Transport) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	call := Call{URL: req.URL, Body: req.Body, MaxResponse: req.MaxResponse}
	for _, h := range req.Header {
		call.Header = append(call.Header, [2]string{h.Name, h.Value})
	}
	if deadline, ok := ctx.Deadline(); ok {
		call.Timeout = max(time.Until(deadline), 1) // 0 would mean none
	}
	answer, err := t.send(&call)
	if err != nil {
		return err
	}
	var result Result
	var ok bool
	select {
	case result, ok = <-answer:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			_ = t.write(Call{ID: call.ID, Cancel: true})
		}
		select {
		case result, ok = <-answer:
		case <-time.After(patience):
			return fmt.Errorf("the relay has no result %v after the context's end", patience)
		}
	}
	if !ok {
		return fmt.Errorf("the relay ended: %w", t.broken)
	}
	resp.StatusCode = result.StatusCode
	resp.Body = append(resp.Body, result.Body...)
	for _, h := range result.Header {
		resp.SetHeader(h[0], h[1])
	}
	return failure(result)
}

// send sets the ID of the call, sends it, and returns the channel of its
// result.
func (t *Transport) send(call *Call) (chan Result, error) {
	t.mu.Lock()
	if t.broken != nil {
		t.mu.Unlock()
		return nil, t.broken
	}
	t.last++
	call.ID = t.last
	answer := make(chan Result, 1)
	t.waiting[call.ID] = answer
	t.mu.Unlock()
	return answer, t.write(*call)
}

func (t *Transport) write(call Call) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	return write(t.to, call, call.Body)
}

// failure returns the error of a result, or nil.
func failure(result Result) error {
	if result.Error == "" {
		return nil
	}
	failed := relayedError{text: result.Error}
	for _, cause := range causes {
		if cause.Error() == result.Cause {
			failed.cause = cause
		}
	}
	err := error(&failed)
	if result.NotSent {
		return upstash.NotSent(err)
	}
	return err
}

// relayedError has the text and the cause of an error of the program.
type relayedError struct {
	text  string
	cause error // nil without one known to both sides
}

func (e *relayedError) Error() string { return e.text }
func (e *relayedError) Unwrap() error { return e.cause }
