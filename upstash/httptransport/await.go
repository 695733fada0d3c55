package httptransport

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"
)

// answer is the fate of a request.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error

	// stopped is set if the RoundTripper panicked or ended its goroutine. A
	// mock that calls t.FailNow does the latter.
	stopped  bool
	panicked any // nil if it did not panic
}

// grace is the time f has to return after the end of its context. Few need more
// than some microseconds. It is worth the wait: CloseIdleConnections reaches
// what net/http began for a request, such as a dial, only after the request has
// returned.
const grace = 100 * time.Millisecond

// await runs f on a goroutine of its own, because a RoundTripper or a body may
// ignore its context. It returns when f does, or a grace after the end of ctx.
// In the latter case it calls leave to end f, which must not touch anything of
// the caller's from then on. A panic in f becomes one in the caller.
func await(ctx context.Context, f func() answer, leave func()) answer {
	done := make(chan answer, 1) // with room, because await may have returned
	go func() {
		a := answer{stopped: true}
		defer func() {
			if a.stopped {
				a.panicked = recover()
			}
			done <- a
		}()
		a = f()
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case a = <-done:
		case <-late.C:
			go leave() // which may block too
			return answer{err: ctx.Err()}
		}
	}
	if a.panicked != nil {
		panic(a.panicked)
	}
	if a.stopped {
		runtime.Goexit()
	}
	return a
}

// maxEmptyReads is how many times in a row a body may return nothing at all.
const maxEmptyReads = 100

// steadyReader ends a body that brings nothing, or whose context has ended.
type steadyReader struct {
	ctx   context.Context
	body  io.Reader
	empty int // reads in a row
}

func (r *steadyReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.body.Read(p)
	if n > 0 || err != nil {
		r.empty = 0
		return n, err
	}
	r.empty++
	if r.empty == maxEmptyReads {
		return 0, io.ErrNoProgress
	}
	return 0, nil
}

// openBody closes the body of a response after its caller has left. Over HTTP/2
// nothing else ends a read of it while the request's body is still being sent.
type openBody struct {
	mu   sync.Mutex
	body io.Closer // nil until there is a response
	left bool
}

func (o *openBody) set(body io.Closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.body = body
	if o.left {
		_ = body.Close()
	}
}

func (o *openBody) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = true
	if o.body != nil {
		_ = o.body.Close()
	}
}
