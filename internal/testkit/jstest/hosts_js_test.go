package jstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall/js"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// replace replaces a global of the host by the value of an expression, until the end
// of the test.
func replace(t *testing.T, name, expression string) {
	before := js.Global().Get(name)
	t.Cleanup(func() { js.Global().Set(name, before) })
	js.Global().Set(name, js.Global().Get("Function").New("return "+expression).Invoke())
}

// host makes a client over a fetch of its own.
func host(t *testing.T, fetch string, opts ...upstash.Option) *upstash.Client {
	t.Helper()
	replace(t, "fetch", fetch)
	return clientAt(t, "http://127.0.0.1:1/base", opts...)
}

// piece is a fetch whose body endlessly repeats one value.
func piece(value string) string {
	return `async () => ({status: 200, headers: new Headers(), body: {getReader: () => ({
		read: async () => ({done: false, value: ` + value + `})})}})`
}

// TestGuestHosts replaces fetch by the fetch of other hosts, and by broken
// ones.
func TestGuestHosts(t *testing.T) {
	tests := []struct {
		name, fetch string
		notSent     bool
		says        string
	}{
		{
			"a browser's opaque redirect",
			`async () => ({status: 0, type: "opaqueredirect", headers: new Headers(), body: null})`,
			false, "redirects are not followed",
		},
		{
			"workerd, of a dial that failed and of a request that was lost alike",
			`async () => { throw Object.assign(new Error("Network connection lost."), {retryable: true}) }`,
			false, "connection lost",
		},
		{
			"a refusal in words only",
			`async () => { throw new TypeError("connect ECONNREFUSED") }`, false, "ECONNREFUSED",
		},
		{
			"Node, several addresses, all refused",
			`async () => { throw new TypeError("fetch failed", {cause: {code: "ECONNREFUSED", message: ""}}) }`,
			true, "host 127.0.0.1: fetch failed: ECONNREFUSED: is the URL right, does the server run?",
		},
		{
			"Node, no such host",
			`async () => { throw new TypeError("fetch failed", {cause: {code: "ENOTFOUND", message: "DNS"}}) }`,
			true, "DNS: is the URL right, does the database still exist?",
		},
		{
			"Node, no answer from the name server",
			`async () => { throw new TypeError("fetch failed", {cause: {code: "EAI_AGAIN", message: ""}}) }`,
			true, "EAI_AGAIN",
		},
		{
			"Node, reset",
			`async () => { throw new TypeError("fetch failed", {cause: {code: "ECONNRESET"}}) }`, false, "ECONNRESET",
		},
		{
			"quotes the URL",
			`async (url) => { throw new TypeError("cannot reach " + url) }`, false, "fetch failed",
		},
		{
			"quotes the token",
			`async (url, init) => { throw new TypeError(init.headers.get("authorization").slice(7)) }`,
			false, "fetch failed",
		},
		{"throws at once", `() => { throw new Error("not here") }`, false, "not here"},
		{"rejects with nothing", `() => Promise.reject()`, false, "fetch failed"},
		{"rejects with a word", `() => Promise.reject("no")`, false, "fetch failed"},
		{"no response object", `async () => undefined`, false, "fetch failed"},
		{"no promise", `() => 1`, false, "fetch failed"},
		{
			"a body that is no stream",
			`async () => ({status: 200, headers: new Headers(), body: "text"})`, false, "fetch failed",
		},
		{
			"pieces that are no bytes",
			`async () => ({status: 200, headers: new Headers(), body:
				new ReadableStream({start(c) { c.enqueue("text"); c.close() }})})`, false, "fetch failed",
		},
		{"a thenable without arguments", `() => ({then(ok) { ok() }})`, false, "fetch failed"},
		{"a thenable that rejects without arguments", `() => ({then(_, no) { no() }})`, false, "fetch failed"},
		{
			"a thenable that does both",
			`() => ({then(ok, no) { no(); ok(); no(); throw 1 }})`, false, "fetch failed",
		},
		{"a then that throws", `() => ({get then() { throw new Error("no then") }})`, false, "no then"},
		{
			"a message that throws", `() => Promise.reject({get message() { throw 1 }, get cause() { throw 2 }})`,
			false, "fetch failed",
		},
		{"no status", `async () => ({headers: new Headers(), body: null})`, false, "fetch failed"},
		{
			"a status of NaN",
			`async () => ({status: NaN, headers: new Headers(), body: null})`, false, "fetch failed",
		},
		{"no headers", `async () => ({status: 200, body: null})`, false, "fetch failed"},
		{"an ArrayBuffer", piece("new ArrayBuffer(3)"), false, "fetch failed"},
		{"a DataView", piece("new DataView(new ArrayBuffer(3))"), false, "fetch failed"},
		{"no piece", piece("undefined"), false, "fetch failed"},
		{"a length of NaN", piece("{byteLength: NaN}"), false, "fetch failed"},
		{"a length below 0", piece("{byteLength: -1}"), false, "fetch failed"},
		{"a length that is none", piece("{byteLength: 1.5}"), false, "fetch failed"},
		{"a length that is too long", piece(`Object.defineProperty(new Uint8Array(2), "byteLength",
			{value: 5})`), false, "fetch failed"},
		{"empty pieces for ever", piece("new Uint8Array(0)"), false, "fetch failed"},
		{
			"a read that is no promise",
			`async () => ({status: 200, headers: new Headers(), body: {getReader: () => ({read: () => 7})}})`,
			false, "fetch failed",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := fails(t, context.Background(), host(t, tt.fetch))
			if upstash.SafeToRetry(err) != tt.notSent || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, safe to retry %t; want %q, %t", err, upstash.SafeToRetry(err), tt.says, tt.notSent)
			}
		})
	}
}

// TestGuestHostLacks removes one global of the host at a time. The client then
// sends nothing and says so.
func TestGuestHostLacks(t *testing.T) {
	for _, name := range []string{"fetch", "Headers", "AbortController", "setTimeout", "clearTimeout"} {
		t.Run(name, func(t *testing.T) {
			c := host(t, `async () => new Response('{"result":1}')`)
			replace(t, name, "undefined")
			err := fails(t, context.Background(), c)
			if !errors.Is(err, upstash.ErrNoTransport) || !upstash.SafeToRetry(err) ||
				!strings.Contains(err.Error(), "no "+name) {
				t.Errorf("a host without %s: %v, want ErrNoTransport", name, err)
			}
		})
	}
}

// TestGuestHostTimers has timers that throw, like a Worker's outside of a
// request. Calls by Go's runtime and by Node are not the client's, and do not
// throw.
func TestGuestHostTimers(t *testing.T) {
	const (
		answers = `async () => new Response('{"result":1}')`
		lost    = `async () => { throw new Error("lost") }`
		never   = `() => new Promise(() => {})`
	)
	for _, tt := range []struct {
		name, timer, fetch string
		retries, from      int // from the first call that throws on
		notSent            bool
		says               string // "" for an answer
	}{
		{"no time for an attempt", "setTimeout", answers, 0, 1, true, "no timers here"},
		{"no time for a pause", "setTimeout", lost, 1, 2, false, "no timers here"},
		{"no time to abort", "setTimeout", never, 0, 2, false, "WithTimeout"},
		{"nothing to clear", "clearTimeout", answers, 0, 1, false, ""},
		{"nothing to clear after an abort", "clearTimeout", never, 0, 1, false, "WithTimeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := host(t, tt.fetch, upstash.WithTimeout(20*time.Millisecond), upstash.WithRetry(tt.retries))
			replace(t, tt.timer, fmt.Sprintf(`((before, from) => (...args) => {
				// The first frame is this function, which syscall/js made.
				const stack = new Error().stack.split("\n").slice(2).join();
				const ours = stack.includes("syscall/js.") && !/runtime\.\w+TimeoutEvent/.test(stack);
				if (ours && --from <= 0) throw new Error("no timers here");
				return before(...args);
			})(%s, %d)`, tt.timer, tt.from))
			_, err := c.Do(context.Background(), upstash.Cmd("SET", "k", "v"))
			if tt.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || upstash.SafeToRetry(err) != tt.notSent || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, safe to retry %t; want %q, %t", err, upstash.SafeToRetry(err), tt.says, tt.notSent)
			}
		})
	}
}

// TestGuestHostAborts has an AbortController that cannot be made, and one that
// cannot abort. Calls still end, with an error.
func TestGuestHostAborts(t *testing.T) {
	for name, tt := range map[string]struct {
		class   string
		notSent bool
	}{
		"throws":   {`class { constructor() { throw new Error("none") } }`, true},
		"no abort": {`class { get signal() { return {} } }`, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := host(t, `async () => { throw new Error("lost") }`, upstash.WithTimeout(time.Second))
			replace(t, "AbortController", tt.class)
			if err := fails(t, context.Background(), c); upstash.SafeToRetry(err) != tt.notSent {
				t.Errorf("got %v, safe to retry %t; want %t", err, !tt.notSent, tt.notSent)
			}
			// Even if the fetch never ends, the caller must not be held up.
			replace(t, "fetch", "() => new Promise(() => {})")
			if err := fails(t, context.Background(), c); !tt.notSent && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
}

// TestGuestHostCacheModes plays an older Worker, which has no cache modes and
// throws if a request asks for one.
func TestGuestHostCacheModes(t *testing.T) {
	const fetch = `async (url, init) => new Response(JSON.stringify({result: init.cache ?? "none"}))`
	c := host(t, fetch)
	check := func(want string) {
		t.Helper()
		r, err := c.Do(context.Background(), upstash.Cmd("PING"))
		if got, _ := r.Text(); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	check("no-store")
	replace(t, "Request", "class {}")
	check("none")
}
