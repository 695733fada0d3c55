// Package upstash is a small client for the Upstash Redis REST API: Redis
// commands as JSON arrays over HTTPS, with a bearer token.
//
//	client, err := upstash.FromEnv() // UPSTASH_REDIS_REST_URL and _TOKEN
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	reply, err := client.Do(ctx, upstash.Cmd("SET", "greeting", "hello", "EX", "100"))
//
// Make a [Client] once and share it. [Client.Do] sends one command,
// [Client.Pipeline] several in one request, and [Client.MultiExec] several as
// one transaction. Blocking commands, WATCH and subscriptions don't work over this
// API.
//
// # Guarantee
//
// A call returns what the server said, in full, or an error: never a zero value
// for a reply that was cut short or has another type. Integers pass through no
// float. A call is one request, except for retries and for a [Script] that the
// server does not know. A command that may have run is sent again only if that
// is harmless, but for a [Script] that answers in Redis's own words.
//
// # Errors and retry safety
//
// An error is a [*Error] if the server answered with one, else a [*CallError].
// No error, nor what it wraps, shows the token, a key or an item. A failed
// attempt ends in one of three ways:
//
//	never sent   the dial or TLS handshake failed   tried again, any command
//	refused      a 4xx, or an error object          429 is tried again, any command
//	unknown      sent, and no whole answer;         tried again if repeatable
//	             a 5xx, or 408
//
// Reads are repeatable, and so are writes that leave the same state when they
// run twice: see [Command.Repeatable]. If an earlier attempt may have run,
// [Reply.MaybeRepeated] is true, and typed writes return [ErrMaybeRepeated]. A
// call makes up to five attempts ([WithRetry]) of at most 10 s ([WithTimeout]),
// and never sleeps past its deadline. [SafeToRetry] reports whether an error
// guarantees that nothing changed.
//
// [errors.Is] finds these in an error of the client:
//   - [ErrArgument], [ErrReadOnly], [ErrClosed]: nothing was sent
//   - [ErrNoTransport], [ErrProxy]: this platform, or its proxy, needs [WithTransport]
//   - [ErrNil]: the reply is null, as of a missing key
//   - [ErrMaybeRepeated]: the write is in place, perhaps by an earlier attempt
//   - [ErrBadResponse], [ErrResponseTooLarge]: an answer that cannot be used
//
// and these in one of the server:
//   - [ErrUnauthorized], [ErrNoPermission]: the token is wrong, or may not do it
//   - [ErrRateLimited], [ErrQuota]: too many commands now, or in this period
//   - [ErrRequestTooLarge], [ErrRecordTooLarge], [ErrOutOfMemory]: over the plan's size
//   - [ErrAborted]: the transaction was discarded
//
// # Read your writes
//
// On a global database a call sees every write of this client that ended before
// it began. If several writes overlapped, it is certain to see one of them. The
// client sends the sync tokens of earlier answers for that; a proxy may drop them.
//
// # Concurrency
//
// A call ends as soon as its context does, and nothing touches its buffers from
// then on. Natively no goroutine outlives a call, but for some seconds one that
// looks a name up if no name server answers.
//
// # Limits and cost
//
// Arguments are UTF-8: [RawCmd] sends other bytes, and [Command.Binary] brings
// them back. On the free and pay-as-you-go plans a request has at most 10 MB
// ([WithMaxRequest]), a record 100 MB.
//
// Do and each typed method are one billed command, with any number of
// operations in a [BitField]. Each command of a batch is billed, each that a
// script calls, and a write once more for each read region.
//
// # Compatibility
//
// The native transport is fasthttp: HTTP/1.1, TLS 1.2 and later, IPv4 and IPv6.
// It keeps an idle connection for 30 s. Behind a proxy ([ErrProxy]), use package
// httptransport, and on GOOS=wasip1 use it with the http.Client of the platform's
// SDK. On GOOS=js the transport is the host's fetch, which rarely says that it never
// sent a request. In Node such a program runs by go run -exec "$(go env
// GOROOT)/lib/wasm/go_js_wasm_exec", and package httptransport reaches nothing.
// Package upstashtest is a server for tests.
package upstash
