//go:build js && wasm

package upstash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall/js"
)

// fetchTransport is the host's fetch, called without net/http, which would
// more than double the size of a Worker. Connections are the host's business.
type fetchTransport struct{ host string }

func newDefaultTransport(e endpoint, _ int) Transport { return fetchTransport{e.host} }

// RoundTrip looks fetch up at every call: hosts, and tests, replace it.
func (t fetchTransport) RoundTrip(ctx context.Context, req *Request, resp *Response) error {
	if err := ctx.Err(); err != nil {
		return NotSent(err)
	}
	for _, name := range []string{"fetch", "Headers", "AbortController"} {
		if !hostHas(name) {
			return NotSent(fmt.Errorf("%w (this host has no %s)", ErrNoTransport, name))
		}
	}
	f := fetching{ctx: ctx, host: t.host, req: req, abort: js.Global().Get("AbortController").New()}
	err := f.run(resp)
	if err != nil {
		f.abort.Call("abort") // drops the connection and what is left of the body
	}
	return err
}

// fetching is one call of fetch under way.
type fetching struct {
	ctx   context.Context
	host  string
	req   *Request
	abort js.Value // an AbortController
}

func (f *fetching) run(resp *Response) (err error) {
	defer catch(func(thrown js.Value) { err = f.failure(thrown) })
	headers, err := f.headers()
	if err != nil {
		return NotSent(err)
	}
	answer, err := f.await(js.Global().Call("fetch", f.req.URL, f.init(headers)))
	if err != nil {
		return err
	}
	resp.StatusCode = answer.Get("status").Int()
	if resp.StatusCode == 0 {
		// A browser hides the status of a redirect that it may not follow.
		return errors.New("redirects are not followed: use the database's own REST URL")
	}
	fields := answer.Get("headers")
	for _, name := range []string{headerSyncToken, headerRetryAfter} {
		if v := fields.Call("get", name); v.Type() == js.TypeString {
			resp.SetHeader(name, v.String())
		}
	}
	// A length is only a hint, as a compressed body is longer than it says:
	// it saves reading what is surely too long, and read counts all the same.
	length := js.Global().Call("Number", fields.Call("get", "content-length")).Float()
	if length > float64(f.req.MaxResponse) {
		return ErrResponseTooLarge
	}
	return f.read(answer.Get("body"), resp)
}

// headers makes the fields a Headers object before fetch sees them: a host
// that dislikes a value quotes it, and one of the values is the token.
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
		"signal":   f.abort.Get("signal"),
	}
	// A Worker with a compatibility date before November 2024 has no cache
	// modes and throws at the sight of one.
	request := js.Global().Get("Request")
	if request.Truthy() && js.Global().Get("Reflect").Call("has", request.Get("prototype"), "cache").Bool() {
		init["cache"] = "no-store"
	}
	return init
}

// read appends the body to resp piece by piece, so that one over the limit is
// held as a whole by nobody, the host included.
func (f *fetching) read(stream js.Value, resp *Response) error {
	if !stream.Truthy() {
		return nil // no body at all, as with status 204
	}
	reader := stream.Call("getReader")
	for room := f.req.MaxResponse; ; {
		part, err := f.await(reader.Call("read"))
		if err != nil {
			return err
		}
		if part.Get("done").Bool() {
			return nil
		}
		piece := part.Get("value")
		n := piece.Get("byteLength").Int()
		if room -= n; room < 0 {
			return ErrResponseTooLarge
		}
		old := len(resp.Body)
		resp.Body = slices.Grow(resp.Body, n)[:old+n]
		js.CopyBytesToGo(resp.Body[old:], piece)
	}
}

// abortGrace is how many milliseconds a promise is given to settle once it was
// aborted. It takes one turn of the host's event loop; only a fetch that
// ignores its signal would take longer, and is then left to itself.
const abortGrace = 5

// await waits for a promise or for the context, whichever ends first.
func (f *fetching) await(promise js.Value) (js.Value, error) {
	type result struct {
		value js.Value
		err   error
	}
	settled := make(chan result, 2) // with room: a late callback must not block
	var fulfilled, rejected js.Func
	settle := func(r result) any {
		fulfilled.Release()
		rejected.Release()
		settled <- r
		return nil
	}
	fulfilled = js.FuncOf(func(_ js.Value, args []js.Value) any {
		return settle(result{value: args[0]})
	})
	rejected = js.FuncOf(func(_ js.Value, args []js.Value) any {
		return settle(result{err: f.failure(args[0])})
	})
	promise.Call("then", fulfilled, rejected)

	select {
	case r := <-settled:
		return r.value, r.err
	case <-f.ctx.Done():
	}
	// Without this wait a program that ends at its deadline, in a host that
	// lives on, would be called back after its end. A timer of Go's would do
	// the same harm: it stays set in the host when it is stopped.
	f.abort.Call("abort")
	over := js.FuncOf(func(js.Value, []js.Value) any {
		settled <- result{}
		return nil
	})
	defer over.Release()
	timer := js.Global().Call("setTimeout", over, abortGrace)
	<-settled
	js.Global().Call("clearTimeout", timer)
	return js.Value{}, f.ctx.Err()
}

// failure makes an error of what the host threw or rejected a promise with.
// The request may have been sent, unless there is one of Node's codes for a
// connection that never was. Texts are shown and never matched: no host
// promises what they say.
func (f *fetching) failure(reason js.Value) error {
	cause := property(reason, "cause")
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
	case "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT":
		return NotSent(err)
	}
	return err
}

// harmless tells a text that may be shown from one that may quote the URL,
// whose path can hold a key, or the token.
func (f *fetching) harmless(said string) bool {
	if said == "" || len(said) > 200 || strings.Contains(said, "/") {
		return false
	}
	return !slices.ContainsFunc(f.req.Header, func(h Header) bool {
		token, ok := strings.CutPrefix(h.Value, "Bearer ")
		return ok && strings.Contains(said, token)
	})
}

// property reads a property of a value that may be anything at all.
func property(v js.Value, name string) js.Value {
	if v.Type() != js.TypeObject {
		return js.Undefined()
	}
	return v.Get(name)
}

// text reads a property that should be a string, and gives "" if it is not.
func text(v js.Value, name string) string {
	if s := property(v, name); s.Type() == js.TypeString {
		return s.String()
	}
	return ""
}

// catch, deferred, hands over what the host threw. A host that breaks the
// rules of fetch, so that a value lacks a property, is treated the same.
func catch(f func(thrown js.Value)) {
	switch r := recover().(type) {
	case nil:
	case js.Error:
		f(r.Value)
	case *js.ValueError:
		f(js.Null())
	default:
		panic(r)
	}
}
