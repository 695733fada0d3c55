//go:build !wasm

package jstest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// relayed is the default transport of js/wasm, as it runs under Node in a
// process of its own. RoundTrip returns when that transport does, and not
// before: a test of how calls end is then a test of it.
type relayed struct {
	writing sync.Mutex // of whole messages
	to      io.WriteCloser

	mu      sync.Mutex                // of what follows
	last    int                       // the ID of the latest call
	waiting map[int]chan relay.Result // each with room for its one result
	broken  error                     // why there will be no more results
}

// relayPatience is how long a result may come after the context's end before
// the relay counts as hung.
const relayPatience = 20 * time.Second

// startRelay builds and starts it. The caller must call stop, which fails the
// test if the process printed anything or does not end of itself.
func startRelay(t *testing.T) (r *relayed, stop func()) {
	t.Helper()
	wasm := build(t, "test", "-c", "github.com/upbloom/upbloom/upstash")
	cmd := exec.Command(testenv.Need(t, "node", "node"), "--stack-size=8192",
		wasmExec(t, "wasm_exec_node.js"), wasm, "-test.run=^TestRelay$")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), relay.Env + "=1"}
	var said bytes.Buffer // syscall/js complains here of callbacks that come late
	cmd.Stderr = &said
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r = &relayed{to: to, waiting: map[int]chan relay.Result{}}
	done := make(chan struct{})
	go func() {
		r.receive(bufio.NewReader(from))
		_, _ = io.Copy(io.Discard, from)
		close(done)
	}()
	return r, func() {
		_ = to.Close()
		hung := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		<-done // before Wait, which closes the pipe
		if err := cmd.Wait(); err != nil || said.Len() != 0 {
			t.Errorf("the relay: %v, its last words: %v\n%.2000s", err, r.broken, said.Bytes())
		}
		hung.Stop()
	}
}

// receive hands out results until there are no more.
func (r *relayed) receive(from *bufio.Reader) {
	for {
		result, err := relay.ReadResult(from)
		r.mu.Lock()
		if err != nil {
			r.broken = err
			for _, c := range r.waiting {
				close(c)
			}
			r.mu.Unlock()
			return
		}
		r.waiting[result.ID] <- result
		delete(r.waiting, result.ID)
		r.mu.Unlock()
	}
}

// RoundTrip has the relay send the request. A deadline goes along with it, so
// that it ends there; of a cancellation the relay is told.
func (r *relayed) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	call := relay.Call{URL: req.URL, Body: req.Body, MaxResponse: req.MaxResponse}
	for _, h := range req.Header {
		call.Header = append(call.Header, [2]string{h.Name, h.Value})
	}
	if deadline, ok := ctx.Deadline(); ok {
		call.Timeout = max(time.Until(deadline), 1) // 0 would be none
	}
	id, answer, err := r.send(call)
	if err != nil {
		return err
	}
	var result relay.Result
	var ok bool
	select {
	case result, ok = <-answer:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			r.cancel(id)
		}
		select {
		case result, ok = <-answer:
		case <-time.After(relayPatience):
			return fmt.Errorf("the relay has no result %v after the context's end", relayPatience)
		}
	}
	if !ok {
		return fmt.Errorf("the relay ended: %w", r.broken)
	}
	resp.StatusCode = result.StatusCode
	resp.Body = append(resp.Body, result.Body...)
	for _, h := range result.Header {
		resp.SetHeader(h[0], h[1])
	}
	return failure(result)
}

func (r *relayed) send(call relay.Call) (id int, answer chan relay.Result, err error) {
	r.mu.Lock()
	if r.broken != nil {
		r.mu.Unlock()
		return 0, nil, r.broken
	}
	r.last++
	call.ID = r.last
	answer = make(chan relay.Result, 1)
	r.waiting[call.ID] = answer
	r.mu.Unlock()
	return call.ID, answer, r.write(call)
}

func (r *relayed) cancel(id int) { _ = r.write(relay.Call{ID: id, Cancel: true}) }

func (r *relayed) write(call relay.Call) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return relay.WriteCall(r.to, call)
}

// failure makes an error of what the relay said of one.
func failure(result relay.Result) error {
	if !result.Failed {
		return nil
	}
	err := error(&relayedError{result.Error, map[relay.Cause]error{
		relay.TooLarge:         upstash.ErrResponseTooLarge,
		relay.NoTransport:      upstash.ErrNoTransport,
		relay.Canceled:         context.Canceled,
		relay.DeadlineExceeded: context.DeadlineExceeded,
	}[result.Cause]})
	if result.NotSent {
		return upstash.NotSent(err)
	}
	return err
}

// relayedError has the text of an error of the other process, and its cause.
type relayedError struct {
	text  string
	cause error // nil if there is none that both sides know
}

func (e *relayedError) Error() string { return e.text }
func (e *relayedError) Unwrap() error { return e.cause }
