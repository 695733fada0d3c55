// Package upstashtest is an Upstash-compatible Redis REST server inside your
// process. It is for tests of code that uses package upstash or package bloom,
// and for work on a laptop without a network.
//
//	s := upstashtest.NewServer(t)   // closed when the test ends
//	c := s.Client()                 // an *upstash.Client of this server
//
// If your code reads its configuration from the environment, set the variables
// to [Server.URL] and [Server.Token]. [Start] and [Server.Close] do the same
// outside of tests, and so does the command "upbloom serve".
//
// # Protocol
//
// The server takes a command as a JSON array, in the path, or in the path with
// its last argument as the raw body. It serves /pipeline and /multi-exec, and
// answers in JSON, base64 or RESP2. It accepts a bearer token or ?_token=, and
// a second token for reads alone, except KEYS and SCAN; its scripts are bound
// in the same way. ACL RESTTOKEN knows one user, default, whose password is a
// token of the server. Web pages of any origin may call it. It sends sync
// tokens. Statuses and error texts are those of the service, as far as they are
// documented. A request's header must arrive within 30 seconds.
//
// A JSON number or boolean becomes an argument as it is written. Some other
// servers change large numbers. [WithFloatNumbers] does so too, to find clients
// that send numbers. [WithMaxRequest] and [WithMaxRecord] lower the limits to
// ones that a test can reach.
//
// Some answers are guesses, because nothing documents them: the texts for an
// empty pipeline, for malformed JSON and for resp2 on /multi-exec, the status
// 400 of a discarded transaction, RESP2 pipeline answers one after another, and
// the Access-Control headers. Code should not depend on them. A request that is
// not valid HTTP, such as one with the path /get/%zz, is answered in JSON too;
// with [WithTLS] the answer is text/plain.
//
// # The database
//
// By default the database is a miniredis in memory. The bit commands, the
// counters, SET, SETRANGE, GETRANGE, COPY and the EXPIRE family are this
// package's own. Random sequences of them are compared with Redis 7.0. A
// BITFIELD copies the string once, however many operations it has. Times to
// live follow the clock; [Server.FastForward] sets it ahead.
//
// Scripts run in another Lua 5.1 than that of Redis 7.0. What redis.call takes
// and returns is that of Redis. These points differ:
//
//   - There are no libraries bit, cmsgpack and struct, no redis.REDIS_VERSION,
//     redis.acl_check_cmd, redis.breakpoint and redis.debug, no table.foreach,
//     and no settings of cjson. redis.setresp has no effect.
//   - cjson.decode returns nil for null. cjson.encode writes all digits of a
//     number, and {} as []; it fails if keys have gaps or are of two types.
//   - The operator .. writes all digits of a number, and Redis 14. tostring,
//     string.format and table.concat are as in Redis.
//   - Patterns have no %f, and gmatch takes ^ for an anchor. Not every malformed
//     pattern is refused.
//   - string.format has no %u and refuses nothing, such as text for %d. tonumber
//     returns nil for a number of 20 digits. string.upper knows all letters.
//   - A script may change the tables that it finds, such as string and redis.
//   - Calls are at most 255 deep, and those by pcall 85. Redis takes 16,000, and
//     200.
//   - Errors of syntax and of wrong types have other words.
//
// [WithTimeout] and Close end a script between two of its instructions. They do
// not end one call of a library: a pattern such as ('a-'):rep(40) can search
// for years, and string.rep or doubling a string can take all memory. Nor is
// there a limit to how deep a script's text, its JSON or its coroutines are
// nested. So run scripts of your own, and give the server's tokens to nobody
// you do not trust. A reply has at most 1,000 levels and 1,048,576 values. As
// in Redis, unpack returns less than 8,000 values. With every database the
// server accepts the first line "#!lua flags=allow-key-locking", which the
// service documents and Redis 7.0 refuses.
//
// The other data types are those of miniredis, with its limits: DUMP and
// RESTORE know only strings, GEOADD has no options, GEODIST differs in the last
// digit, GEOPOS returns the positions as they were added, GEORADIUS has no
// WITHHASH, XADD no LIMIT, XINFO STREAM few fields, and XINFO CONSUMERS counts
// entries read with NOACK as pending. SCAN returns all keys at once, whatever
// its COUNT. XTRIM and XADD with ~ trim as with =. XGROUP CREATE forgets its
// ENTRIESREAD. A HyperLogLog has a TYPE of its own, and GET refuses it. BITOP
// has no DIFF, DIFF1, ANDOR and ONE. INCRBYFLOAT counts in 64 bits. The longest
// time to live is 292 years; a longer one becomes that.
//
// Some arguments accepted by Redis are refused, because miniredis would panic
// or take all memory: in KEYS or MATCH a pattern that is not UTF-8 or has a class
// such as [z-a], a cursor or COUNT of a SCAN of one key of 2^30 or more, more
// than 1,048,576 repetitions of SRANDMEMBER and its like, and floats above
// 1.8e308.
//
// These commands of Redis 7.0 are missing there:
//
//	COMMAND, FCALL, FCALL_RO, FUNCTION, GEOHASH, GEOSEARCHSTORE, INFO, LCS,
//	LOLWUT, MEMORY, MOVE, OBJECT, PUBSUB, SCRIPT DEBUG, SCRIPT KILL, SORT,
//	SORT_RO, SPUBLISH, WAIT, XGROUP SETID, XSETID, ZDIFF, ZDIFFSTORE,
//	ZINTERCARD, ZRANGESTORE
//
// Of the commands newer than Redis 7.0 it has HEXPIRE, HPERSIST, HPTTL, HSETEX
// and HTTL.
//
// [WithRedis] puts a real Redis behind the same REST server, over one
// connection. All commands of that Redis pass, except those for operators,
// those that need their own connection and those that wait; scripts can call no
// others. For that the server makes two users in that Redis, which Close
// removes. If the Redis lets it make none, a read-only token runs no script,
// and other scripts can call what they like. FastForward and regions do not
// work with it. [WithMaxRecord] does not apply to the commands of a script,
// because the Redis runs the script.
//
// If a command makes the database in memory panic, the database is lost. From
// then on each command is answered with status 500 and the reason, and the
// server's test fails. Arguments known to do this are refused.
//
// Commands run one at a time. No other command runs between those of a
// transaction. The same is true of a pipeline here, but the service does not
// promise it.
//
// # Counting
//
// [Server.Stats] counts requests, commands, the commands of scripts, the
// commands the service would bill, and the bytes of bodies. A test can then
// assert "one request, one command". [Server.ResetStats] sets the counters to
// zero. Commands of [Server.Exec] are not counted.
//
// # Faults
//
// [Server.Inject] queues a [Fault] for each of the next requests.
// [Server.InjectWrites] queues them for the next writes: a handler may look up
// first, and a bloom.Window sends a TIME before its first Add.
// [Server.InjectFunc] calls a function, which chooses the fault of each
// request, by its commands if need be. [Fault.Executes] reports whether the
// commands of a request with that fault run. A fault with a [When] has both
// forms, because a client that loses its connection cannot know whether its
// commands ran.
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
//	NoPermission     NOPERM to the commands of one name         the others
//	Interim          interim answers before the real one        yes
//	Twice            the whole answer, two times                yes
//	Closes           Connection: CLOSE or another spelling      yes
//	EarlyRefusal     413 while it still sends the body          no
//	Late             the answer after a pause                   yes
//	LateExec         the connection closed, no answer           later
//	Evict            a database without the request's keys      yes
//
// [Server.Injected] counts the faults by their [Fault.String]. [EveryFault]
// returns one of each kind, for a test with random faults. [Server.DenyFunc]
// refuses commands by their name and arguments, as the access rules of a token
// do. [Server.SetFull] makes the database refuse what takes memory.
//
// # Regions
//
// [WithRegions] makes the database a global one. Each read region has a URL. It
// answers reads from a copy, which is some writes old, and passes everything
// else to the primary, which takes longer. If a request's upstash-sync-token
// names a state the region has not reached, the request goes to the primary
// too. [Server.SetReplicaLag] puts one region near the clients of [Server.URL].
// [Server.CatchUp] brings all regions up to date.
//
// # Recordings
//
// [Record] writes the requests and answers of a test into a file. The file is
// made for review, and holds neither token nor host. [Replay] answers from the
// file, through github.com/jarcoal/httpmock, and fails the test if a request
// differs. [Recorded] does one or the other, depending on the environment
// variable UPBLOOM_RECORD.
//
// # Concurrency
//
// A [Server] is safe for concurrent use. Close ends stalled and trickling
// requests and running scripts. It returns when no goroutine of the server is
// left, so goleak finds none; after 5 seconds it gives up, and the test fails.
// A method without an error result calls Fatal of the test if it fails: call it
// from the test's own goroutine. After Start there is no test, and it panics.
package upstashtest
