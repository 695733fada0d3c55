// Package upstash is a small client for the Upstash Redis REST API: Redis
// commands as JSON arrays over HTTPS, with a bearer token.
//
// # Guarantee
//
// A call is one request, but for retries and for a [Script] that has to be sent
// in another form. Nothing is batched behind the caller's back. If a command
// may have run, it is sent again only if a repetition is harmless. A call
// returns what the server said, in full, or an error. It never returns a zero
// value for a reply that was cut short, has another type or length, or is not
// JSON. Integers are int64 and pass through no float.
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
// [Client.Do] sends any command made by [Cmd]. [Client.BitField],
// [Client.BitCount], [Client.Expire], [Client.Persist], [Client.TTL] and
// [Client.Del] return typed answers. [Client.Pipeline] sends several commands
// in one request, [Client.MultiExec] as one transaction. A [Script] is sent by
// its checksum. Make a [Client] once, with [New] or [FromEnv], and share it.
//
// # Limits
//
// Arguments travel as JSON strings, but for the bits that a [BitField] sets. So
// they must be valid UTF-8; encode other bytes as base64 or hex, or send them as
// the body of a [RawCmd].
// [Command.Binary] brings back any bytes. A response is read up to 32 MiB
// ([WithMaxResponse]). The server has limits of its own: on the free and
// pay-as-you-go plans a request of 10 MB and a record of 100 MB. Blocking
// commands and WATCH don't work over this API. The service has subscriptions as
// server-sent events; this client has none.
//
// # Errors and retry safety
//
// A call returns a [*Error] if the server answered with an error, and a
// [*CallError] if it failed for another reason. Both name the command and hide
// the token, keys and items. Unprintable characters in a server's words are
// escaped. Every failed attempt ends in one of three ways:
//
//	never sent   the dial or TLS handshake failed   tried again, any command
//	refused      a 4xx, or an error object          429 is tried again, any command
//	unknown      sent, and no whole answer;         tried again if repeatable
//	             a 5xx, or 408
//
// An error from within a script is unknown too, and ends the call: the script
// may have written before it failed ([Command.AllOrNothing]).
//
// Reads are repeatable. So are writes that leave the same state when they run
// twice in a row: SET without NX or GET, SETBIT, EXPIRE of at least 1, a
// BITFIELD without INCRBY. A repetition overwrites what another client wrote in
// between. And an attempt may reach the server late, after its call has ended:
// if a SET is delayed until after a DEL, it makes the key again.
// [Command.Repeatable] overrides the choice.
//
// If a repetition could have changed the answer, [Reply.MaybeRepeated] is true
// and typed writes return [ErrUncertain]. A call makes five attempts at most,
// with random pauses of up to 50 ms, 100 ms, 200 ms and 400 ms between them
// ([WithRetry], [WithBackoff]). Over all calls of a client a budget bounds the
// retries: 100, and one more for each ten calls that succeed
// ([WithRetryBudget]). Each attempt takes at most 10 s ([WithTimeout]), or as
// long as [Command.Timeout] says: package bloom allows a second for each 64 KiB
// of the parts in which it moves long strings. A call never sleeps past its
// context's deadline. If a failure would only come again, such as a redirect or a
// spent quota ([ErrQuota]), it ends the call. [RetryAfter] returns how long the
// server asked to wait.
//
// [SafeToRetry] reports whether an error guarantees that the command changed
// nothing: over all attempts of the call it was never sent or was refused, or
// it only reads. Each command of a batch is judged by itself. SafeToRetry asks
// the error of the call alone. [errors.Is] and [errors.As] also find what the
// context's cause wraps, which may be the error of another call.
//
// A function may be frozen between two events, and the server closes its
// connections meanwhile. So the client checks an idle connection before it uses
// it, and opens a new one if it was closed, or if something came that nobody
// asked for, or after 30 s. It looks at a new connection without TLS too, once,
// before it writes to it. HTTP/1.1 has no more proof of what an answer answers:
// what a server sends after that look, but before it reads the request, is
// believed. So the look finds a server that speaks as soon as it accepts only
// now and then.
//
// # Read your writes
//
// On a global database a replica behind the primary may answer a read. So the
// client keeps the sync token of an answer and sends it along. A replica behind
// the state that the token names then does not answer. A call sees every write
// of this client that ended before the call began, if no two calls overlapped
// that count as writes. Of calls that did, it is certain to see only one, because
// tokens cannot be compared: so it is with the requests of one AddAll of package
// bloom. A script counts as a write, even if it changed nothing. Two clients
// don't know each other's tokens. All this ends if a proxy drops the header
// Upstash-Sync-Token, or if its value is longer than 1 KiB.
// [WithoutSyncToken] turns this off. A BITFIELD counts as a write: the primary
// answers it in any case.
//
// # Observing
//
// [WithObserver] reports every attempt, [WithCallObserver] every call: how long
// it took, how many commands ran or may have run, and how it ended. An [Event]
// is a [log/slog.LogValuer], except on wasm; [WithLabel] says what a call is
// for. The repository has a recipe for OpenTelemetry in examples/otel.
//
// # Concurrency
//
// A Client is safe for concurrent use. With the default transport no goroutine
// outlives a call, except that of a DNS lookup: Go's resolver goes on for some
// seconds if no name server answers. Calls that look up the host at one time
// share a lookup. Up to 256 connections are
// open at once ([WithMaxConns]), and one is used again if it was idle for less
// than 30 s. A call ends as soon as its context does, and nothing touches its
// buffers from then on.
//
// # Cost
//
// Do is one request and one billed command, with any number of operations in a
// [BitField]; each command of a Pipeline or MultiExec is billed. So is each
// command that a script calls, and a write once more for each read region. A
// request has about 250 bytes of HTTP header. Setting seven bits of a string
// takes about 190 bytes of JSON and brings back 26. Do makes one allocation
// with the default transport, and three if the context can end. Building a
// BITFIELD again after [BitField.Reset] makes none, and neither does reading
// its answer into a slice with enough room ([Reply.Ints]).
//
// # Compatibility
//
// The native transport speaks HTTP/1.1: package fasthttp writes and parses, over
// a pool of this package's own. It has TLS 1.2 and later, IPv4 and IPv6, and the
// proxies of HTTPS_PROXY, HTTP_PROXY and NO_PROXY (http, https, socks5). The
// proxy looks up the database's name. ALL_PROXY has no effect, and localhost and
// loopback addresses have no proxy.
//
// On GOOS=js it is the host's fetch. The host keeps the connections, and what is
// said of them above is not true there. A host rarely says that it never sent a
// request: Node does if it found no such name, or no server. Any other failure
// counts as unknown, a failed TLS handshake too.
//
// GOOS=wasip1 has no network: pass [WithTransport], such as package httptransport
// around the http.Client of the platform's SDK. Package upstashtest is a server
// for tests, in the process.
package upstash
