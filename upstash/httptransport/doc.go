// Package httptransport carries the requests of package upstash over any
// [http.Client], and so over any [http.RoundTripper]. The native default of
// package upstash is fasthttp; on wasm this package keeps net/http out of it.
//
//	transport := httptransport.New(&http.Client{Transport: roundTripper})
//	client, err := upstash.FromEnv(upstash.WithTransport(transport))
//
// # When to use it
//
// Use it
//
//   - behind a proxy: [New] with nil uses HTTPS_PROXY, HTTP_PROXY and NO_PROXY
//     (http, https and socks5 proxies),
//   - if the platform has no sockets and its SDK provides an [http.RoundTripper],
//   - if requests have to run through middleware, such as tracing,
//   - if the server speaks HTTP/2 only,
//   - in tests that mock at the RoundTripper.
//
// A [Transport] keeps the promises of the native default, and one shared test
// runs over both. One thing differs: if a server or a proxy sends an answer for which
// nobody asked, net/http may take it for the answer to the next request. The
// default drops such a connection.
//
// # Guarantees
//
// It follows no redirect, because that would carry the token to another host. A
// call returns as soon as its context is done, or 0.1 s later if the
// RoundTripper or a body ignores the context. From then on it does not touch
// the request's buffer. It does not read a body beyond the limit. A body that
// brings nothing in 100 reads in a row is an error. Errors hold neither URL nor
// header, nor what net/http quotes of a malformed answer. [errors.As] finds in
// them the errors of the system, the network and TLS. But net/http writes to
// package log what a server sends that nobody asked for. A panic of the
// RoundTripper reaches the caller, unless its context has ended before.
//
// A request is sent at most once. Once a byte of its body was taken, GetBody of
// the [http.Request] returns an error. Otherwise net/http would send the request
// again if a server of HTTP/2 resets the stream or goes away, and over HTTP/1
// if a RoundTripper adds an Idempotency-Key. The server may have executed the
// command before. Such a call fails, and its error says that the command may
// have run, even if the server denied it: net/http does not pass that on.
//
// A RoundTripper with a copy of the body can still send it twice, as some
// retrying ones do. Do not use one here: the client has its own retries.
//
// An error is one of [upstash.NotSent] if that is certain: the dial failed, or
// net/http/httptrace reports no connection. Once the RoundTripper has taken a
// byte of the body, nothing is certain, because it may have sent the request
// another way before it failed. Nothing is certain either if the RoundTripper
// does not call the hooks of httptrace and has its own errors. In these cases
// the client repeats a command only if a repetition is harmless.
//
// # Platforms
//
// The following lines show the form. They were not run against these SDKs.
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
//	rt := wasihttp.DefaultTransport // from go.wasmcloud.dev/component/net/wasihttp
//	transport := httptransport.New(&http.Client{Transport: rt})
//
// # OpenTelemetry
//
// With otelhttp each attempt becomes a span of the context's trace:
//
//	rt := otelhttp.NewTransport(http.DefaultTransport)
//	transport := httptransport.New(&http.Client{Transport: rt})
//
// The span has the URL, which holds no token, and a key only for
// [upstash.RawCmd]. Do not let it record headers.
//
// # Mocks
//
// github.com/jarcoal/httpmock stands in for a RoundTripper, as in the Examples
// here and under the recordings of package upstashtest:
//
//	mock := httpmock.NewMockTransport()
//	mock.RegisterResponder("POST", "https://db.example.test/",
//		httpmock.NewStringResponder(200, `{"result":1}`))
//	transport := httptransport.New(&http.Client{Transport: mock})
//
// # Cost
//
// A call makes about 85 allocations, and at most 3 over the native default: see
// BenchmarkDo. net/http keeps two goroutines for each connection.
package httptransport
