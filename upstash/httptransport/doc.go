// Package httptransport carries the requests of package upstash over any
// http.Client, and so over any http.RoundTripper. It keeps net/http out of
// package upstash, whose native default is fasthttp.
//
//	transport := httptransport.New(&http.Client{Transport: roundTripper})
//	client, err := upstash.FromEnv(upstash.WithTransport(transport))
//
// # When to use it
//
// Use it if the platform has no sockets and its SDK hands out an
// http.RoundTripper, if requests shall run through middleware, such as tracing,
// if the server speaks HTTP/2 only, and in tests that mock at the RoundTripper.
// The semantics are those of the native default: one shared test runs over
// both.
//
// # Guarantees
//
// A request is sent at most once, and no redirect is followed, because it would
// carry the token to another host. A call returns as soon as its context is
// done, or 0.1 s later if the RoundTripper or a body ignores it, and leaves the
// request's buffer alone from then on. A body longer than the limit is not read
// to its end, and one that brings nothing, 100 reads in a row, is an error.
// Errors hold neither URL nor header. A panic of the RoundTripper reaches the
// caller, unless its context has ended before.
//
// An error counts as "never sent" if that is certain: no connection was had, as
// net/http/httptrace tells, or the dial failed. Once the RoundTripper took a
// byte of the body, nothing is certain, whatever its hooks and its error say:
// it may have tried another way before. Of a RoundTripper that knows no
// httptrace and has errors of its own nothing is concluded either. Then a
// command is repeated only if a repetition is harmless.
//
// # Platforms
//
// The following lines show the shape and were not run against these SDKs.
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
// With otelhttp each attempt becomes a span of the context's trace (not run
// here):
//
//	rt := otelhttp.NewTransport(http.DefaultTransport)
//	transport := httptransport.New(&http.Client{Transport: rt})
//
// The span has the URL, which holds no key and no token; keep it from
// recording headers.
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
// A call costs about 80 allocations, while the native default has 12, and a
// connection two goroutines, which net/http keeps: see BenchmarkDo.
package httptransport
