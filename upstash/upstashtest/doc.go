// Package upstashtest is an Upstash-compatible Redis REST server inside your
// process: for tests of code that uses package upstash or package bloom, and
// for work on a laptop without a network.
//
//	s := upstashtest.NewServer(t)   // closed when the test ends
//	c := s.Client()                 // an *upstash.Client that talks to it
//
// Code that reads its own environment gets Server.URL and Server.Token. Outside
// of tests, Start and Server.Close do the same; the command in
// examples/localserver is little more than that.
//
// # What it speaks
//
// A command as a JSON array, in the path, or with its last argument as the raw
// body; /pipeline and /multi-exec; answers in JSON, base64 or RESP2; a bearer
// token or ?_token=, and a second token that may only read; sync tokens; the
// statuses and error texts of the service as far as they are documented.
// A JSON number or boolean is its own text; WithFloatNumbers catches a client
// that sends numbers, which other servers spoil. WithMaxRequest and
// WithMaxRecord lower the limits, so that a test can reach them.
//
// Some answers are guesses, because nothing documents them: the texts for an
// empty pipeline, for JSON that does not parse and for resp2 on /multi-exec,
// the status 400 of a discarded transaction, and RESP2 pipeline answers
// standing one after another. Code should not depend on them.
//
// # The database
//
// By default it is in memory: miniredis, with BITFIELD, BITFIELD_RO and the
// other bit commands, the counters, SET, SETRANGE, GETRANGE, COPY and the
// EXPIRE family made anew, each held against Redis 7.0 by random command
// sequences. A BITFIELD copies the string once, however many operations it
// has. Times to live follow the clock; FastForward moves them on.
//
// Scripts run as in Redis 7.0, but without the libraries bit, cmsgpack and
// struct. A first line "#!lua flags=allow-key-locking", which the service
// documents and Redis 7.0 refuses, is accepted with every backend. The other
// data types are those of miniredis, with its limits: DUMP and RESTORE know
// strings only. The longest time to live is 292 years.
//
// These commands of Redis 7.0 are missing there:
//
//	COMMAND, FCALL, FCALL_RO, FUNCTION, GEOHASH, GEOSEARCHSTORE, INFO, LCS,
//	LOLWUT, MEMORY, MOVE, OBJECT, PUBSUB, SCRIPT DEBUG, SCRIPT KILL, SORT,
//	SORT_RO, SPUBLISH, WAIT, XGROUP SETID, XSETID, ZDIFF, ZDIFFSTORE,
//	ZINTERCARD, ZRANGESTORE
//
// WithRedis puts any Redis behind the same REST server instead, over one
// connection. All of its commands pass, but for those of operators, those that
// need a connection of their own and those that wait. FastForward and regions
// don't work there, and neither does WithMaxRecord inside a script: that Redis
// runs it.
//
// Commands run one at a time, and those of a transaction with nothing between
// them. So do those of a pipeline here, which the service does not promise.
//
// # Counting
//
// Stats counts requests, commands, what scripts call, what all that is billed
// as, and bytes of bodies: a test can assert "one request, one command".
// ResetStats starts again. What Exec does is not counted.
//
// # Faults
//
// Inject queues a Fault for each of the next requests; InjectFunc decides for
// every request. A Fault is well-defined about execution: Fault.Executes says
// whether the request's commands ran. Those that take a When exist in both
// forms, because a client that sees a dropped connection cannot know which it
// met.
//
//	fault            the client sees                            executed
//	Drop             the connection closed, no answer           as When says
//	Stall            nothing, until it gives up                 as When says
//	CutBody          a body that ends too early                 yes
//	RateLimit        429, with or without Retry-After           no
//	InternalError    500 and a JSON error                       as When says
//	BadGateway       502 and an HTML page                       as When says
//	ErrorObject      200 and {"error":...}, to a batch too      no
//	NotJSON          200 and a line of text                     as When says
//	WrongType        a result of another JSON type              yes
//	ShortResult      arrays that lack their last element        yes
//	LongResult       arrays with one element too many           yes
//	ShortBatch       a batch that lacks its last answer         yes
//	LongBatch        a batch with one answer too many           yes
//	HugeBody         a string of any length, not announced      yes
//	Redirect         307 to another place                       no
//	Trickle          the body, byte by byte                     yes
//	CommandError     an error reply to each command             no
//	LostThenError    Drop, and then CommandError to the repeat  yes, once
//	NoPermission     NOPERM to the commands of a name           but for those
//	Interim          interim answers before the real one        yes
//	Twice            the whole answer, two times                yes
//	Closes           Connection: CLOSE or the like              yes
//	EarlyRefusal     413 while it still writes the body         no
//	Late             the answer after a pause                   yes
//	LateExec         the connection closed, no answer           later
//	Evict            a database without the request's keys      yes
//
// Injected counts by Fault.String; EveryFault lists those to draw from.
// DenyFunc refuses commands for good, by their name and arguments, as the
// access rules of a token do.
//
// # Regions
//
// WithRegions plays a global database: each read region has a URL, answers
// reads some writes late, and adds the way to the primary to everything else.
// A request whose upstash-sync-token names a state that the region has not
// reached goes to the primary. SetReplicaLag puts one region near the clients
// of Server.URL; CatchUp lets all of them catch up.
//
// # Recordings
//
// Record writes the requests and answers of a test into a file that reviews
// well and holds neither token nor host; Replay answers from it, and fails the
// test if a request differs. Recorded does one or the other, as
// UPBLOOM_RECORD says.
//
// # Concurrency
//
// A Server is safe for concurrent use. Close ends what stalls or trickles, and
// returns when no goroutine of the server is left, so goleak finds none. Client
// and the methods that cannot do what they are asked call Fatal of the test:
// call them from the test's own goroutine.
package upstashtest
