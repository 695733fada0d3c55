//go:build js && wasm

package upstash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall/js"
	"time"
)

// newDefaultTransport gives the host's fetch, called without net/http, which
// would more than double the size of a Worker.
func newDefaultTransport(transportOptions) (Transport, error) {
	for _, name := range []string{"fetch", "Headers", "AbortController"} {
		if js.Global().Get(name).Type() != js.TypeFunction {
			return nil, fmt.Errorf("%w (this host has no %s)", ErrNoTransport, name)
		}
	}
	return fetchTransport{}, nil
}

// fetchTransport has no state: connections are the host's business. It looks
// fetch up at each call, as hosts and their test tools replace it.
type fetchTransport struct{}

func (fetchTransport) RoundTrip(ctx context.Context, req *Request, resp *Response) (err error) {
	if err := ctx.Err(); err != nil {
		return NotSent(err)
	}
	x := exchange{ctx: ctx, req: req, abort: js.Global().Get("AbortController").New()}
	thrown := catch(func() { err = x.run(resp) })
	if thrown != nil {
		err = x.failure(thrown.Value)
	}
	if err != nil {
		x.abort.Call("abort") // drops the connection and what is left of the body
	}
	return err
}

// exchange is one request under way. It lives for one RoundTrip.
type exchange struct {
	ctx   context.Context
	req   *Request
	abort js.Value // an AbortController
}

func (x *exchange) run(resp *Response) error {
	headers, err := x.headers()
	if err != nil {
		return NotSent(err)
	}
	answer, err := x.await(js.Global().Call("fetch", x.req.URL, x.init(headers)))
	if err != nil {
		return err
	}
	resp.StatusCode = answer.Get("status").Int()
	if resp.StatusCode == 0 {
		// A browser hides the status of a redirect that it was told not to follow.
		return fmt.Errorf("%s answered with a redirect, which is not followed: use the database's own URL",
			host(x.req.URL))
	}
	fields := answer.Get("headers")
	for _, name := range []string{headerSyncToken, headerRetryAfter} {
		if v := fields.Call("get", name); v.Type() == js.TypeString {
			resp.SetHeader(name, v.String())
		}
	}
	// A length that is announced is refused before a byte is read. It is only
	// a hint (a compressed body is longer), so the reader counts as well.
	if n := js.Global().Call("Number", fields.Call("get", "content-length")).Float(); n > float64(x.req.MaxResponse) {
		return ErrResponseTooLarge
	}
	return x.read(answer.Get("body"), resp)
}

// headers makes the fields a Headers object before fetch sees them: a host's
// complaint about a value quotes it, and one of them is the token.
func (x *exchange) headers() (headers js.Value, err error) {
	list := make([]any, len(x.req.Header))
	for i, h := range x.req.Header {
		list[i] = []any{h.Name, h.Value}
	}
	if catch(func() { headers = js.Global().Get("Headers").New(list) }) != nil {
		return headers, errors.New("the host refuses the request's header fields: check the token for stray characters")
	}
	return headers, nil
}

func (x *exchange) init(headers js.Value) map[string]any {
	body := js.Global().Get("Uint8Array").New(len(x.req.Body))
	js.CopyBytesToJS(body, x.req.Body)
	init := map[string]any{
		"method":   "POST",
		"headers":  headers,
		"body":     body,
		"redirect": "manual",
		"signal":   x.abort.Get("signal"),
	}
	// Workers with a compatibility date before November 2024 know no cache
	// modes and throw at the sight of one. A POST isn't cached there anyway.
	request := js.Global().Get("Request")
	if request.Truthy() && js.Global().Get("Reflect").Call("has", request.Get("prototype"), "cache").Bool() {
		init["cache"] = "no-store"
	}
	return init
}

// read appends the body to resp piece by piece, so that one over the limit is
// never held as a whole: not by the host either.
func (x *exchange) read(stream js.Value, resp *Response) error {
	if !stream.Truthy() {
		return nil // a response without a body, such as a 204
	}
	reader := stream.Call("getReader")
	for room := x.req.MaxResponse; ; {
		part, err := x.await(reader.Call("read"))
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
		end := len(resp.Body)
		resp.Body = slices.Grow(resp.Body, n)[:end+n]
		js.CopyBytesToGo(resp.Body[end:], piece)
	}
}

// abortGrace is how long an aborted promise is given to settle: it takes one
// turn of the host's event loop. Only a fetch that ignores its signal needs
// longer, and is then left to itself.
const abortGrace = 5 * time.Millisecond

// await waits for a promise of the host or for the context, whichever is first.
func (x *exchange) await(promise js.Value) (js.Value, error) {
	type result struct {
		value js.Value
		err   error
	}
	settled := make(chan result, 1) // has room, so a late callback never blocks
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
		return settle(result{err: x.failure(args[0])})
	})
	promise.Call("then", fulfilled, rejected)

	select {
	case r := <-settled:
		return r.value, r.err
	case <-x.ctx.Done():
	}
	// Without this wait a program that ends with the deadline, as a Worker's
	// instance does, would be called back after its end.
	x.abort.Call("abort")
	grace := time.NewTimer(abortGrace)
	defer grace.Stop()
	select {
	case <-settled:
	case <-grace.C:
	}
	return js.Value{}, x.ctx.Err()
}

// failure makes an error of what a promise was rejected with, or what a call
// threw. After one the request may have been sent, unless the host gives one
// of Node's codes for a connection that never came to be. Texts are shown and
// never matched: they are not part of any host's promises.
func (x *exchange) failure(reason js.Value) error {
	cause := field(reason, "cause")
	text := x.quotable(field(reason, "message"))
	if detail := x.quotable(field(cause, "message")); detail != "" {
		text += ": " + detail
	}
	code := text1(field(cause, "code"))
	if text == "" {
		text = "failed"
	}
	err := fmt.Errorf("fetch from %s: %s", host(x.req.URL), text)
	switch code {
	case "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT":
		return NotSent(err)
	}
	return err
}
