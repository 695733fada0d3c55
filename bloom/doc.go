// Package bloom keeps Bloom filters in Redis, behind the Upstash REST API.
//
// A Bloom filter is a compact set. It may find an item that was never added, a
// false positive, but it never forgets one that was. This package stores the
// filter in one Redis string, and many processes share it:
//
//	visited, err := bloom.New(client, "crawler:visited", bloom.Config{
//		Capacity: 1_000_000, FPRate: 0.01,
//	})
//	...
//	isNew, err := visited.Add(ctx, url) // one request, one billed command
//
// # Before you start
//
// Turn off eviction for the database. After an eviction the next [Filter.Add]
// makes an empty filter, whose "no" covers only what was added since. If you
// cannot, set [Config.MustExist] in the handlers: an Add to a missing filter is
// then [ErrNotFound], and each Add costs three billed commands instead of one.
// The deployment makes the filter: by [Filter.Load] if its items are known,
// else by [Filter.Create].
//
// # Which type
//
//   - [Filter]: was it ever added?
//   - [Window]: was it added in the last 24 hours, or any other span?
//   - [Scalable]: a filter that grows, if nobody knows how many items will come.
//   - [Cuckoo]: items can be removed again.
//   - [Sharded]: more than fits into one record, or into one database.
//   - [Mirror]: a copy in a warm process, which answers without a request.
//   - [Local]: a filter in memory, with the same bytes as the Redis string.
//
// Each says in its own doc what an operation costs in requests, billed commands
// and bits. Not all of them have everything:
//
//	                             Filter  Window      Scalable  Cuckoo  Sharded
//	expires by a TTL             yes     ExpireIdle  yes       no      no
//	Expire, Persist              yes     no          yes       no      no
//	WarnFill                     yes     yes         yes       no      no
//	MustExist                    yes     yes         yes       yes     always
//	Reads                        yes     no          yes       yes     yes
//	Load                         yes     no          no        no      yes
//	AddSeq                       yes     no          no        no      no
//	Merge, Replace, Save, Union  yes     no          no        no      no
//	Mirror, AddIn, ExistsIn      yes     no          no        no      no
//
// A handle of [Open] or of another Open function knows the Capacity from the
// string, but not if the rate is above 1 in 4.
//
// # Guarantee
//
// A "no" is true: if [Filter.Exists] returns false without an error, the item
// was never added to the live filter. Whatever could break this is an error: a
// missing, expired or evicted filter ([ErrNotFound]), one of another size or
// seed ([MismatchError]), other data ([ErrNotFilter]), a reply that was cut. A
// "yes" may be a false positive; [Config.FPRate] is their share. What a crash, a
// failover or a backup of the database loses of acknowledged writes, no answer
// shows. A retry never
// turns a new item into a seen one. A proxy before the database that repeats
// POST requests by itself does: turn that off.
//
// Some choices weaken the "no". [LayoutBare] has no header to check.
// [Config.MissingIsEmpty] takes a missing filter for an empty one. With
// [ReadsNearest] or a read-only token a region may answer that lags behind. The
// copy of a [Mirror] is as old as its MaxStale, MaxCopy and StaleIfError allow.
//
// # Usage
//
// [New] sends nothing; the first Add makes the filter. [Filter.AddAll] and
// [Filter.ExistsAll] take many items at once, [AddIn] and [ExistsIn] many
// filters. [Filter.Create] makes the whole filter in advance, [Open] reads its
// geometry from the database, [Filter.Stats] says how full it is, and [Inspect]
// says so without its Config. [Filter.Load] brings in millions of items,
// [Filter.Snapshot] downloads a filter, and [Filter.Replace] exchanges one in
// an instant.
//
// Any number of goroutines and processes may use a filter, and a handle is cheap
// enough to make one for each request. If several handles create the same filter
// at once, exactly one of them makes it.
//
// If work may fail and must not be lost, look first and add last: Exists, the
// work, Add. A filter cannot forget an item, not even one whose work failed
// after its Add. The first Exists then comes before any Add: call
// [Filter.Create] first, or set Config.MissingIsEmpty. Otherwise it returns
// [ErrNotFound]. Two callers at once may both do the work; a filter is no lock.
//
// # Sizing
//
// A filter has a fixed size. The default scheme takes 5.4 bits an item for each
// factor of ten of the false positive rate. An Add sets two bits in each of z
// words, and a look-up reads z words:
//
//	capacity       1 in 100, z = 2    1 in 1,000, z = 3    1 in 1,000,000, z = 6
//	1,000          1.4 KB             2.0 KB               4.1 KB
//	100,000        134 KB             202 KB               403 KB
//	1,000,000      1.3 MB             2.0 MB               4.0 MB
//	10,000,000     13 MB              20 MB                40 MB
//	100,000,000    134 MB             202 MB               403 MB
//
// These are lengths of the string, as [Geometry.Bytes] has them. Redis takes up to
// a quarter more, and a string that has grown keeps up to 1 MiB of room.
//
// A filter for 1 in 100 is wrong 1 time in 1,000 at half its capacity, 1 in 29
// at one and a half times its capacity, and 8% of the time at twice.
// [Config.WarnFill] tells you in time, as do those of a [Window] and a
// [Scalable]. A record beyond 100 MB needs a larger plan.
//
// # Counting
//
// [Filter.Cardinality] estimates from the set bits how many items are in. This
// is its standard error in 80 filters for 10,000 items at 1 in 100, each filled
// to multiples of that capacity ("UPBLOOM_REQUIRE=long go test -v -run
// HyperLogLog ./bloom/internal/systemtest"):
//
//	                   1      2      5      7     10     14
//	SchemeBlocked   0.22%  0.23%  0.35%  0.37%  0.52%  0.80%
//	SchemeXXH3      0.28%  0.27%  0.54%  0.70%
//
// A HyperLogLog beside the filter would have 0.81%. If you only count, and
// never ask for an item, use PFADD and PFCOUNT: 12 KB for any number of items.
//
// Items cannot be removed from a Bloom filter, unless it has counters, and
// there is no such type: with counters of four bits it takes 38 bits an item at
// 1 in 100. A [Cuckoo] does the same in 11.
//
// # Errors and retry safety
//
// Errors come from the database (they wrap [upstash.Error] or
// [upstash.CallError]), or are this package's own. None holds a key, an item or
// a seed.
//
// If the reply to an attempt is lost, the attempt is repeated. If the item's
// bits are then all set, the lost attempt may have set them: this is
// [ErrUncertain], "in, but perhaps not new". If one of them was still 0, the
// answer is certain. After any other error of Add the item may be in:
// [upstash.SafeToRetry] reports whether it certainly is not, [InFilter] whether
// it is, a [BatchError] both for each item.
//
// SafeToRetry is true of an error if the call certainly changed nothing. So it
// is true of every error of a call that only reads, such as Exists, Stats or
// Open. It is true too if a script found no filter or another one, and no
// earlier attempt may have run. It does not say that a repetition helps: a
// filter that is missing stays missing.
//
// A call ends with its context, unless the items are in and a step remains: to
// set the TTL, turn a [Window] or remove an upload's parts. This step has a
// second of its own, and with [Filter.Replace] there may be two.
//
// If a handle meets another filter, it adds nothing more until a call such as
// Exists or Create finds its own filter, or none. The Add that met the other filter has
// run. It may have set k bits there and made the string longer, and has cleared
// no bit: each "no" of that filter stays true. Only a [Cuckoo] is damaged, and
// denies some of its members from then on. If the key held other data, the Add
// may have changed its first bytes; if its first 53 bits are 0, it passes for an
// empty filter ([ErrNotFilter]). Give filters keys of their own.
//
// # TTL and reads
//
// [Config.TTL] counts from the first write of a handle with a TTL, and no later
// write prolongs it. The TTL is settled once EXPIRE was run, or once the user
// has decided with [Filter.Expire] or [Filter.Persist]. A bit of the header says
// so. Every write of a handle with a TTL also reads this bit, and sends the
// EXPIRE if it is 0. If the EXPIRE gets no answer, the write returns no error:
// the next write does what a crash or the network left undone.
//
// Look-ups go to the primary of a global database, unless [Config.Reads] says
// otherwise. A [Window] has no Reads. Look-ups of a client with
// [upstash.WithReadOnly] go to the nearest region, whatever the type; only
// [ReadsNearestFirst] still asks the primary. Stats and Cardinality of every
// client go to the nearest region.
//
// # Cost
//
// In a filter of 1,000,000 items, SchemeBlocked left and SchemeXXH3 right:
//
//	                   requests, commands, operations     bytes out         bytes in     milliseconds
//	1 in 100
//	Add                    1  1      7     10      249     318      47     53  0.049 0.054
//	Exists                 1  1      3      8       88     191      61     43  0.046 0.048
//	AddAll, 1,000 items    1  1  4,003  7,003   92,009 160,301   8,039 14,039    3.5   6.2
//	ExistsAll, 1,000 items 1  1  2,001  7,001   43,970 146,188  33,243 14,029    1.9   5.2
//	Stats                  1  4      3      3      188     187     102    102   0.41  0.37
//	1 in 1,000
//	Add                    1  1      9     13      297     387      51     59  0.056 0.058
//	Exists                 1  1      4     11      111     254      80     49  0.051 0.056
//	AddAll, 1,000 items    1  1  6,003 10,003  139,969 232,484  12,039 20,039    6.2   9.5
//	ExistsAll, 1,000 items 1  1  3,001 10,001   66,950 212,371  49,900 20,029    2.8   7.7
//	Stats                  1  4      3      3      188     188     102    102   0.59  0.53
//
// By "go test ./bloom/internal/systemtest -run '^$' -bench Cost -benchtime 50x
// -count 16", the best of sixteen, on loopback to a REST server in the same
// process and Redis 7.0.15 behind it, on two shared and busy cores (Intel Xeon,
// Go 1.26.8, 22 November 2026).
//
// If a write finds the TTL not settled, it sends one request more, of four
// commands. Create is one request, of two commands if the filter is there, else
// of four or five. Open is one request of two commands. A batch is cut into
// requests of [Config.BatchBytes].
//
// The module's README has the cost of a million checks by a Filter, a Mirror, a
// set and keys, and says when not to use a filter.
//
// # Format and compatibility
//
// A filter is one Redis string: 24 bytes of header, then the cells. The header
// says the kind too: a window or a shard is not taken for a filter. FORMAT.md
// describes version 1 of the format, with readers in JavaScript and Python.
// [LayoutBare] with [SchemeFNV1a] is the string of the article "Building a
// high-speed Bloom Filter with Upstash Redis".
//
// Every string carries a birth number, of which 42 bits are drawn when it is
// created. If two filters use the same key one after the other, they have
// different ones: this is how a [Mirror], a [Filter.Snapshot] or an AddAll
// notices the change. The other bits say which rate the filter was made for.
package bloom
