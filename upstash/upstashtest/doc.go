// Package upstashtest is an Upstash-compatible Redis REST server inside your
// process. It is for tests of code that uses package upstash or package bloom,
// and for work on a laptop without a network.
//
//	s := upstashtest.NewServer(t)   // closed when the test ends
//	c := s.Client()                 // an *upstash.Client of this server
//
// If your code reads its configuration from the environment, set the variables
// to [Server.URL] and [Server.Token]. Outside of tests use [Start] and
// [Server.Close], or the command "upbloom serve".
//
// # What a test can do
//
//   - Count: [Server.Stats] has the requests, the commands and what the service
//     would bill. A test can then assert "one request, one command".
//   - Break: [Server.Inject] queues a [Fault] for each of the next requests,
//     [Server.InjectWrites] for the next writes, and [Server.InjectFunc] chooses
//     one for each request. [EveryFault] returns one of each kind, for tests with
//     random faults.
//   - Refuse: [Server.DenyFunc] refuses commands as the access rules of a token do,
//     [Server.SetFull] what takes memory, [WithMaxRequest] and [WithMaxRecord] what
//     is too long.
//   - Wait: [Server.FastForward] sets the clock ahead.
//   - Lag: [WithRegions] and [Server.SetReplicaLag] make read regions that are some
//     writes behind.
//   - Record: [Record] writes the requests and answers of a test into a file for
//     review, without token and host. [Replay] answers from it, and fails the test if
//     a request differs. [Recorded] does one or the other.
//
// # Protocol
//
// The server takes a command as a JSON array, in the path, or in the path with its
// last argument as the raw body. It serves /pipeline and /multi-exec, answers in
// JSON, base64 or RESP2, and sends sync tokens. It accepts a bearer token or
// ?_token=, and web pages of any origin may call it. A second token is for reads
// alone, except KEYS and SCAN, in scripts too. Statuses and error texts are those
// of the service, as far as they are documented.
//
// Nothing documents the texts for an empty pipeline, for malformed JSON and for
// resp2 on /multi-exec, the status 400 of a discarded transaction, RESP2 answers of
// a pipeline one after another, and the Access-Control headers: code should not
// depend on them. A request that is not valid HTTP is answered in JSON too; with
// [WithTLS] in text/plain.
//
// Commands run one at a time. No other command runs between those of a
// transaction. The same is true of a pipeline here, but the service does not
// promise it. The server does not stream: /subscribe and /monitor of the service are
// refused like SUBSCRIBE and MONITOR.
//
// # The database
//
// By default the database is a miniredis in memory. The bit commands, the counters
// of whole numbers, SET, SETRANGE, GETRANGE, COPY and the EXPIRE family are this
// package's own: random sequences of them are compared with Redis 7.0. A BITFIELD
// copies the string once, however many operations it has.
//
// # Scripts
//
// Scripts run in another Lua 5.1 than that of Redis 7.0. These points differ:
//
//   - There are no libraries bit, cmsgpack and struct, no redis.REDIS_VERSION,
//     redis.acl_check_cmd, redis.breakpoint and redis.debug, no table.foreach,
//     and no settings of cjson. redis.setresp has no effect.
//   - cjson.null is nil, and cjson.decode returns nil for null. cjson.encode writes
//     all digits of a number, {} as [], < and > and & and the like as \u003c, and /
//     as it is. Both make U+FFFD of bytes that are not UTF-8. cjson.encode fails
//     if keys have gaps or are of two types.
//   - The operator .. writes all digits of a number, and Redis 14. tostring,
//     tonumber, string.format and table.concat are as in Redis, but for %s and %c
//     of a NUL byte. Arithmetic with text takes '010' for 8 and '1_0' for 10.
//   - Patterns have no %f, and gmatch takes ^ for an anchor. Not every malformed
//     pattern is refused. string.upper knows all letters.
//   - A script may change the tables that it finds, such as string and redis.
//   - Calls are at most 255 deep, and those by pcall 85. Redis takes 16,000,
//     and 200.
//   - Errors of syntax have other words.
//
// [WithTimeout] and Close end a script between two of its instructions, but not
// within one call of a library: a pattern such as ('a-'):rep(40) can search for
// years, and string.rep can take all memory. So run scripts of your own, and give
// the server's tokens to nobody you do not trust. A reply has at most 1,000 levels
// and 1,048,576 values. As the service does, the server accepts the first line
// "#!lua flags=allow-key-locking", which Redis 7.0 refuses.
//
// # Other data types
//
// Commands that no program of this module sends, such as those on hashes, lists,
// sets, streams and positions, are those of miniredis. They may differ from Redis
// in ways that this page does not list: in options, errors and limits. If your code
// depends on one, use [WithRedis]. Of the others these points differ: SCAN returns
// all keys at once, whatever its COUNT. DUMP and RESTORE know only strings. The
// longest time to live is 292 years; a longer one becomes that. COPY of a key to
// itself returns 0, as with the service.
//
// Some arguments that Redis accepts are refused, because miniredis would panic,
// take all memory, or hold the server for seconds:
//
//   - in KEYS or MATCH a pattern that is not UTF-8 or has a class such as [z-a], or
//     one with many *: the keys times the square of their number may be 67,108,864
//   - a cursor or COUNT of a SCAN of one key of 2^30 or more
//   - more than 262,144 repetitions of SRANDMEMBER, HRANDFIELD and ZRANDMEMBER, and
//     a COUNT of LPOS above 1,048,576
//   - a command that looks at more than 262,144 elements of one set, sorted set or
//     hash, such as ZRANGE, or at 1,048,576 of several, such as SUNION
//   - SPOP, if the elements of the set times those that it takes are more than
//     67,108,864, and ZRANDMEMBER with repetitions, if they are more than 1,048,576
//   - XDEL, XACK and XCLAIM, if the entries of the stream times the words of the
//     command are more than 67,108,864
//   - a BITOP of more than 536,870,912 bytes
//   - INCRBYFLOAT and HINCRBYFLOAT of more than 1.8e308
//
// If a command makes it panic all the same, in the midst of its work, the database is
// lost: each later command is answered with status 500 and the reason, and the
// server's test fails.
//
// These commands of Redis 7.0 are missing there:
//
//	COMMAND, FCALL, FCALL_RO, FUNCTION, GEOHASH, GEOSEARCHSTORE, INFO, LCS,
//	LOLWUT, MEMORY, MOVE, OBJECT, PUBSUB, SCRIPT DEBUG, SCRIPT KILL, SORT,
//	SORT_RO, SPUBLISH, SUBSTR, WAIT, XGROUP SETID, XSETID, ZDIFF, ZDIFFSTORE,
//	ZINTERCARD, ZRANGESTORE
//
// Of the commands newer than Redis 7.0 it has HEXPIRE, HPERSIST, HPTTL, HSETEX and
// HTTL.
//
// # A real Redis
//
// [WithRedis] puts a real Redis behind the same REST server, over one connection.
// All commands of that Redis pass, except those for operators, those that need
// their own connection and those that wait; scripts can call no others. For that
// the server makes two users in that Redis, which Close removes. If the Redis lets
// it make none, a read-only token runs no script, and other scripts can call what
// they like.
package upstashtest
