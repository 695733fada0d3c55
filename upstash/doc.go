// Package upstash is a small client for the Upstash Redis REST API: Redis
// commands as JSON arrays over HTTPS, with a bearer token.
//
// # Guarantee
//
// A call is one request, but for retries and for a [Script] that has to be sent
// in another form. Nothing is batched behind the caller's back. A call returns
// what the server said, in full, or an error, and never a zero value for a reply
// that was cut short or has another type. Integers are int64 and pass through no
// float. A command that may have run is sent again only if that is harmless.
//
// # Usage
//
//	client, err := upstash.FromEnv() // UPSTASH_REDIS_REST_URL and _TOKEN
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	reply, err := client.Do(ctx, upstash.Cmd("SET", "greeting", "hello", "EX", "100"))
//
// Make a [Client] once and share it. [Client.Do] sends any command of [Cmd].
// [Client.Pipeline] sends several in one request, [Client.MultiExec] as one
// transaction. A [Script] is sent by its checksum. [Reply.Decode] reads JSON into
// a Go value. Blocking commands, WATCH and subscriptions don't work here.
//
// # Limits
//
// Arguments are JSON strings and must be valid UTF-8: [RawCmd] sends other bytes,
// and [Command.Binary] brings them back. A response is read up to 32 MiB
// ([WithMaxResponse]). The server has limits of its own: on the free and
// pay-as-you-go plans a request of 10 MB and a record of 100 MB.
//
// # Errors and retry safety
//
// A call returns a [*Error] if the server answered with an error, and a
// [*CallError] if it failed for another reason. No error shows the token, a key
// or an item, and neither does what it wraps. Every failed attempt ends in one of
// three ways:
//
//	never sent   the dial or TLS handshake failed   tried again, any command
//	refused      a 4xx, or an error object          429 is tried again, any command
//	unknown      sent, and no whole answer;         tried again if repeatable
//	             a 5xx, or 408
//
// Reads are repeatable, and so are writes that leave the same state when they run
// twice in a row: [Command.Repeatable] has the rule. If a repetition could have
// changed the answer, [Reply.MaybeRepeated] is true and typed writes return
// [ErrUncertain]. A call makes five attempts ([WithRetry]) of 10 s at most
// ([WithTimeout]), within a budget of the client ([WithRetryBudget]), and never
// sleeps past its context's deadline. [SafeToRetry] reports whether an error
// guarantees that the command changed nothing.
//
// # Read your writes
//
// On a global database a replica may be behind. So the client keeps the sync
// token of an answer and sends it along: a call sees every write of this client
// that ended before the call began. Of writes that overlapped it is certain to see
// only one, because tokens cannot be compared. Two clients don't know each other's
// tokens, and a proxy may drop them. [WithoutSyncToken] turns this off.
//
// # Concurrency
//
// A Client is safe for concurrent use. With the default transport no goroutine
// outlives a call, except that of a DNS lookup: Go's resolver goes on for some
// seconds if no name server answers. Calls that look up the host at one time
// share a lookup. A call ends as soon as its context does, and nothing touches
// its buffers from then on. [WithObserver] and [WithCallObserver] report what
// calls do.
//
// # Cost
//
// Do is one request and one billed command, with any number of operations in a
// [BitField]. Each command of a Pipeline or MultiExec is billed, each that a
// script calls, and a write once more for each read region. Seven bits of a
// string take about 250 bytes of header, 190 of JSON, and an answer of 26.
// Do makes one allocation, and three if the context can end.
//
// # Compatibility
//
// The native transport is fasthttp over a pool of this package's own: HTTP/1.1,
// TLS 1.2 and later, IPv4 and IPv6, and the proxies of HTTPS_PROXY, HTTP_PROXY and
// NO_PROXY (http, https, socks5), which look up the database's name. An idle
// connection is checked before it is used again, for at most 30 s: a frozen
// function wakes up with dead ones. On GOOS=js the transport is the host's fetch,
// which rarely says that it never sent a request. GOOS=wasip1 has no network: pass
// [WithTransport], such as package httptransport. Package upstashtest is a server
// for tests, in the process.
package upstash
