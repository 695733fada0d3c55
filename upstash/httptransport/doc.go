// Package httptransport carries the requests of package upstash over any
// [http.Client], and so over any [http.RoundTripper].
//
//	transport := httptransport.New(&http.Client{Transport: roundTripper})
//	client, err := upstash.FromEnv(upstash.WithTransport(transport))
//
// # When to use it
//
//   - behind a proxy, natively: [New] with nil uses HTTPS_PROXY, HTTP_PROXY and NO_PROXY
//     (http, https and socks5 proxies),
//   - if the platform has no sockets and its SDK provides an [http.RoundTripper],
//   - if requests have to run through middleware, such as tracing,
//   - if the server speaks HTTP/2 only,
//   - in tests that mock at the RoundTripper.
//
// A [Transport] keeps the promises of the native default but these. If a server or a
// proxy sends an answer for which nobody asked, net/http may take it for the answer
// to the next request: the default drops such a connection. If a server refuses a
// request and hangs up before it has read the whole, the refusal may be lost. Of an
// answer that ends within its header the error does not say how it ended. A
// connection that vanished without a word costs the whole limit of an attempt, and
// New(nil) then keeps none of those that were idle. A dial goes on after its caller
// has canceled, until the limit of its attempt, and counts as one of 256 connections
// until then.
//
// # Guarantees
//
// It follows no redirect, because that would carry the token to another host. A
// call returns as soon as its context is done, or 0.1 s later if the
// RoundTripper or a body ignores the context. Errors hold neither URL nor header,
// nor what net/http quotes of a malformed answer. [errors.As] finds in them the
// errors of the system, the network and TLS. But net/http writes to package log
// what a server sends that nobody asked for. A panic of the RoundTripper reaches
// the caller, unless its context has ended before.
//
// net/http sends a request at most once: GetBody of the [http.Request] returns an
// error once a byte of the body was taken. If a server of HTTP/2 resets the stream
// or goes away, the error says that the command may have run, even if the server
// denied it. A RoundTripper with a copy of the body can still send it twice, as
// some retrying ones do. Do not use one here: the client has its own retries.
//
// An error is one of [upstash.NotSent] if the dial failed, if net/http/httptrace
// reports no connection, or if a success came before the RoundTripper had read the
// whole body: that is the answer to another request. Otherwise, if a byte of the
// body was taken, or if the RoundTripper does not call the hooks of httptrace and
// has its own errors, the command may have run.
//
// # Platforms
//
// On wasip1 net/http has no sockets: the RoundTripper must be that of the SDK. With
// New(nil) each call is [upstash.ErrNoTransport], and with another client of
// net/http "connection refused". In Node, too, net/http reaches nothing and says so: it
// does not use fetch there. The default transport of package upstash does.
//
// These lines show the form. They were not run against these SDKs.
//
// Fastly Compute:
//
//	rt := fsthttp.NewTransport("upstash") // the name of the backend
//	transport := httptransport.New(&http.Client{Transport: rt})
//
// Spin:
//
//	transport := httptransport.New(spinhttp.NewClient())
//
// wasmCloud:
//
//	rt := &wasihttp.Transport{} // from go.wasmcloud.dev/component/net/wasihttp
//	transport := httptransport.New(&http.Client{Transport: rt})
//
// # OpenTelemetry
//
// With otelhttp each attempt becomes a span of the context's trace:
//
//	rt := otelhttp.NewTransport(&http.Transport{Proxy: httptransport.ProxyFromEnvironment})
//	transport := httptransport.New(&http.Client{Transport: rt})
//
// The span has the URL, which holds a key only for [upstash.RawCmd]. Do not let it
// record headers, which hold the token.
//
// # Mocks
//
// github.com/jarcoal/httpmock stands in for a RoundTripper:
//
//	mock := httpmock.NewMockTransport()
//	mock.RegisterResponder("POST", "https://db.example.test/",
//		httpmock.NewStringResponder(200, `{"result":1}`))
//	transport := httptransport.New(&http.Client{Transport: mock})
//
// # Cost
//
// A call makes about 85 allocations, and at most 3 over the native default.
// net/http keeps two goroutines for each connection.
package httptransport
