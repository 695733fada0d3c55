//go:build js && wasm

package upstash

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall/js"
	"time"

	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// fetchTransport is the host's fetch, called without net/http, which would
// more than double the size of a Worker. The host keeps the connections.
type fetchTransport struct{ host string }

func newDefaultTransport(e endpoint, _ int) Transport { return fetchTransport{e.host} }

// RoundTrip looks fetch up at every call, because hosts and tests replace it.
func (t fetchTransport) RoundTrip(ctx context.Context, req *Request, resp *Response) error {
	if err := ctx.Err(); err != nil {
		return NotSent(err)
	}
	f := fetching{ctx: ctx, host: t.host, req: req}
	err := f.run(resp)
	if err != nil {
		f.stop() // drops the connection and what is left of the body
	}
	if err != nil && !f.asked {
		return NotSent(err)
	}
	return err
}

// fetching is one call of fetch. A host may break any rule of fetch. If
// something panics then, the host has failed, and the call returns an error.
type fetching struct {
	ctx   context.Context
	host  string
	req   *Request
	abort js.Value // an AbortController
	asked bool     // fetch was called
}

func (f *fetching) run(resp *Response) (err error) {
	defer catch(func(thrown js.Value) { err = f.failure(thrown) })
	// Without the last two nothing could end the wait for an answer.
	for _, name := range []string{"fetch", "Headers", "AbortController", "setTimeout", "clearTimeout"} {
		if err := hostLacks(name); err != nil {
			return err
		}
	}
	f.abort = js.Global().Get("AbortController").New()
	headers, err := f.headers()
	if err != nil {
		return err
	}
	init := f.init(headers)
	f.asked = true
	answer, err := f.await(js.Global().Call("fetch", f.req.URL, init))
	if err != nil {
		return err
	}
	status := get(answer, "status").Float()
	if status == 0 {
		// A browser hides the status of a redirect it may not follow.
		return errors.New("redirects are not followed: use the database's own REST URL")
	}
	if !(status >= 100 && status < 1000) {
		return f.failure(js.Undefined())
	}
	resp.StatusCode = int(status)
	fields := get(answer, "headers")
	for _, name := range []string{headerSyncToken, headerRetryAfter} {
		if v := fields.Call("get", name); v.Type() == js.TypeString {
			resp.SetHeader(name, v.String())
		}
	}
	// A length is only a hint, because a compressed body is longer than it
	// says. If it shows the body to be too long, nothing need be read. read
	// counts in any case.
	length := js.Global().Call("Number", fields.Call("get", "content-length")).Float()
	if length > float64(f.req.MaxResponse) {
		return ErrResponseTooLarge
	}
	return f.read(get(answer, "body"), resp)
}

// stop aborts the fetch, if the host allows it.
func (f *fetching) stop() {
	defer catch(func(js.Value) {})
	f.abort.Call("abort")
}

// headers makes a Headers object of the fields before fetch sees them. If a
// host refuses a value, its error quotes it, and one of the values is the
// token.
func (f *fetching) headers() (headers js.Value, err error) {
	defer catch(func(js.Value) {
		err = errors.New("the host refuses the request's header fields: copy the token again")
	})
	list := make([]any, len(f.req.Header))
	for i, h := range f.req.Header {
		list[i] = []any{h.Name, h.Value}
	}
	return js.Global().Get("Headers").New(list), nil
}

func (f *fetching) init(headers js.Value) map[string]any {
	body := js.Global().Get("Uint8Array").New(len(f.req.Body))
	js.CopyBytesToJS(body, f.req.Body)
	init := map[string]any{
		"method":   "POST",
		"headers":  headers,
		"body":     body,
		"redirect": "manual",
		"signal":   get(f.abort, "signal"),
	}
	// A Worker with a compatibility date before November 2024 has no cache
	// modes and throws if it is given one.
	request := get(get(js.Global(), "Request"), "prototype")
	if request.Truthy() && js.Global().Get("Reflect").Call("has", request, "cache").Bool() {
		init["cache"] = "no-store"
	}
	return init
}

// maxEmptyPieces is how many pieces in a row may be empty. If a host's promises
// settle at once, it never gets to its timers: nothing else would end such a
// body.
const maxEmptyPieces = 100

// read appends the body to resp piece by piece. If it is over the limit,
// neither this program nor the host ever holds the whole of it.
func (f *fetching) read(stream js.Value, resp *Response) error {
	if !stream.Truthy() {
		return nil // no body at all, as with status 204
	}
	reader := stream.Call("getReader")
	empty := 0
	for room := f.req.MaxResponse; ; {
		part, err := f.await(reader.Call("read"))
		if err != nil {
			return err
		}
		if get(part, "done").Bool() {
			return nil
		}
		piece := get(part, "value")
		length := get(piece, "byteLength").Float()
		if length > float64(room) {
			return ErrResponseTooLarge
		}
		n := int(length)
		if float64(n) != length || n < 0 { // NaN among others
			return f.failure(js.Undefined())
		}
		empty++
		if n > 0 {
			empty = 0
		}
		old := len(resp.Body)
		resp.Body = slices.Grow(resp.Body, n)[:old+n]
		if js.CopyBytesToGo(resp.Body[old:], piece) != n || empty > maxEmptyPieces {
			return f.failure(js.Undefined())
		}
		room -= n
	}
}

// abortGrace is how many milliseconds a promise has to settle after it was
// aborted. It needs one turn of the host's event loop. Only a fetch that
// ignores its signal takes longer, and await does not wait for it.
const abortGrace = 5

// await waits for a promise or for the end of the context, whichever comes
// first. promised may be any value: Promise.resolve makes a well-behaved
// promise of it. It settles once, later, and with one value.
func (f *fetching) await(promised js.Value) (js.Value, error) {
	type result struct {
		value    js.Value
		rejected bool
	}
	settled := make(chan result, 2) // with room: a late callback must not block
	var fulfilled, rejected js.Func
	settle := func(args []js.Value, isRejected bool) any {
		fulfilled.Release()
		rejected.Release()
		value := js.Undefined()
		if len(args) > 0 {
			value = args[0]
		}
		settled <- result{value, isRejected}
		return nil
	}
	fulfilled = js.FuncOf(func(_ js.Value, args []js.Value) any { return settle(args, false) })
	rejected = js.FuncOf(func(_ js.Value, args []js.Value) any { return settle(args, true) })
	js.Global().Get("Promise").Call("resolve", promised).Call("then", fulfilled, rejected)

	select {
	case r := <-settled:
		if r.rejected {
			return js.Value{}, f.failure(r.value)
		}
		return r.value, nil
	case <-f.ctx.Done():
	}
	// Without this wait the host could call back into a program that has ended
	// at its deadline. A timer of Go's would do the same harm, because it stays
	// set in the host when it is stopped.
	f.stop()
	stop, err := startTimer(abortGrace, func() { settled <- result{} })
	if err != nil {
		return js.Value{}, f.ctx.Err()
	}
	<-settled
	stop()
	return js.Value{}, f.ctx.Err()
}

// failure makes an error of what the host threw, or rejected a promise with.
// The request may have been sent, unless there is one of Node's codes for a
// connection never made. Texts are shown and never matched, because no host
// promises what they say.
func (f *fetching) failure(reason js.Value) error {
	cause := causeOf(reason)
	code := text(cause, "code")
	said := "fetch failed"
	if s := text(reason, "message"); f.harmless(s) {
		said = s
	}
	if s := text(cause, "message"); f.harmless(s) {
		said += ": " + s
	} else if f.harmless(code) {
		said += ": " + code
	}
	err := fmt.Errorf("host %s: %s", f.host, said)
	switch code {
	case "ENOTFOUND":
		return NotSent(&conn.Unreached{Err: err, Question: conn.NoHost})
	case "ECONNREFUSED", "UND_ERR_CONNECT_TIMEOUT":
		return NotSent(&conn.Unreached{Err: err, Question: conn.NoServer})
	case "EAI_AGAIN":
		return NotSent(err)
	}
	return err
}

func causeOf(reason js.Value) (cause js.Value) {
	defer catch(func(js.Value) { cause = js.Undefined() })
	return get(reason, "cause")
}

// harmless reports whether a text of the host may be shown. It must not be if
// it could quote the URL, whose path can hold a key, or the token.
func (f *fetching) harmless(said string) bool {
	if said == "" || len(said) > 200 || strings.Contains(said, "/") {
		return false
	}
	return !slices.ContainsFunc(f.req.Header, func(h Header) bool {
		token, ok := strings.CutPrefix(h.Value, "Bearer ")
		return ok && strings.Contains(said, token)
	})
}

// get reads a property of a value of any type, and returns undefined if it has
// none. A getter may throw. Value.Get does not catch it, and the program would
// end; Reflect.get makes a panic of it.
func get(v js.Value, name string) js.Value {
	if v.Type() != js.TypeObject && v.Type() != js.TypeFunction {
		return js.Undefined()
	}
	return js.Global().Get("Reflect").Call("get", v, name)
}

// text reads a property that should be a string, and returns "" if it is not.
func text(v js.Value, name string) (s string) {
	defer catch(func(js.Value) { s = "" })
	if value := get(v, name); value.Type() == js.TypeString {
		return value.String()
	}
	return ""
}

// catch is to be deferred. After a panic it calls f with what the host threw.
// For any other panic f gets undefined: syscall/js panics in several ways about
// a value of the wrong type.
func catch(f func(thrown js.Value)) {
	switch r := recover().(type) {
	case nil:
	case js.Error:
		f(r.Value)
	default:
		f(js.Undefined())
	}
}

// withTimeout is context.WithTimeout with a timer of the host's, which cancel
// clears. A timer of Go's stays set in the host when it is stopped. If it then
// calls back into an ended program, this is an uncaught error and ends Node. If
// the host starts no timer, withTimeout returns an ended context, and its cause
// says why: nothing else could end a wait for it.
func withTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	deadline := time.Now().Add(d)
	if earlier, ok := parent.Deadline(); ok && !earlier.After(deadline) {
		return ctx, func() { cancel(nil) }
	}
	t := &timedContext{Context: ctx, deadline: deadline}
	// A host counts in milliseconds, and takes more than MaxInt32 of them for
	// 0.
	millis := min((d+time.Millisecond-1)/time.Millisecond, math.MaxInt32)
	stop, err := startTimer(int(millis), func() {
		t.over = ctx.Err() == nil
		cancel(context.DeadlineExceeded)
	})
	if err != nil {
		cancel(err)
		return ctx, func() {}
	}
	return t, func() {
		stop()
		cancel(nil)
	}
}

// timedContext is canceled when its time is over. There is one thread on js: no
// field needs a lock.
type timedContext struct {
	context.Context
	deadline time.Time
	over     bool // the time, before anything else ended the context
}

func (t *timedContext) Deadline() (time.Time, bool) { return t.deadline, true }

func (t *timedContext) Err() error {
	if t.over {
		return context.DeadlineExceeded
	}
	return t.Context.Err()
}

// startTimer has the host call f once, unless stop comes first. Without an
// error, stop must be called, even after f was.
func startTimer(millis int, f func()) (stop func(), err error) {
	for _, name := range []string{"setTimeout", "clearTimeout"} {
		if err := hostLacks(name); err != nil {
			return nil, err
		}
	}
	over := js.FuncOf(func(js.Value, []js.Value) any {
		f()
		return nil
	})
	defer catch(func(thrown js.Value) {
		over.Release()
		err = fmt.Errorf("the host's setTimeout failed: %.200s", text(thrown, "message"))
	})
	timer := js.Global().Call("setTimeout", over, millis)
	return func() {
		defer catch(func(js.Value) {}) // f may still be called: over stays
		js.Global().Call("clearTimeout", timer)
		over.Release()
	}, nil
}

// hostLacks returns an error if the host has no global function of this name.
func hostLacks(name string) (err error) {
	defer catch(func(js.Value) { err = errors.New("the host's " + name + " cannot be read") })
	if get(js.Global(), name).Type() != js.TypeFunction {
		return fmt.Errorf("%w (this host has no %s)", ErrNoTransport, name)
	}
	return nil
}
