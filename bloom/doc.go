// Package bloom keeps Bloom filters in Redis, behind the Upstash REST API.
//
// A Bloom filter is a set without its items: it takes some 11 bits for each,
// however long they are. In return it may find an item that was never added, a
// false positive, as rarely as you choose: 1 in 100 for 11 bits, 1 in 1,000 for
// 16. It never forgets an item that was added, unless it is of a kind that should.
//
// Here a filter is one Redis string, which many processes share:
//
//	visited, err := bloom.New(client, "crawler:visited", bloom.Config{
//		Capacity: 1_000_000, FPRate: 0.01,
//	})
//	...
//	isNew, err := visited.Add(ctx, url)
//
// A look-up, and an Add to a Filter or a Window, is one request and one billed
// command, and an Add to another type three commands. Each read region of a
// global database costs one more. COSTS.md has the exceptions, and what all else
// costs.
//
// Turn off eviction for the database first. After an eviction the next
// [Filter.Add] makes an empty filter, whose "no" covers only what was added
// since. If you cannot, set [Config.MustExist] in the handlers.
//
// # Which type
//
//   - [Filter]: was it ever added?
//   - [Window]: was it added in the last 24 hours, or any other span?
//   - [Scalable]: a filter that grows, if nobody knows how many items will come.
//   - [Cuckoo]: items can be removed again.
//   - [Sharded]: more than fits into one record, or into one database.
//   - [Mirror]: a copy of a Filter or a Window in a warm process, which answers
//     without a request.
//   - [Local]: a filter in memory, with the same bytes as the Redis string.
//
// # Guarantee
//
// A "no" is true: if [Filter.Exists] returns false without an error, the item
// was never added to the live filter. Whatever could break this is an error: a
// missing, expired or evicted filter ([ErrNotFound]), one of another size or
// seed ([MismatchError]), other data ([ErrNotFilter]), a reply that was cut. A
// "yes" may be a false positive; [Config.FPRate] is their share.
//
// This holds if nobody else writes into the string. A bit that another program
// clears makes a member a "no", and one that it sets in the header may make
// another valid header: [Open] without a config, and the tool upbloom, then look
// at the wrong bits.
//
// If outsiders choose the items, the share of false positives is [Config.FPRate]
// only with a secret [Config.Seed].
//
// These weaken the "no", and their docs say how:
//
//   - [LayoutBare]
//   - [Config.MissingIsEmpty]
//   - [Config.ReadsNearest], or a read-only token
//   - MaxStale and StaleIfError of a [Mirror]
//   - what a [Window] and a [Cuckoo] forget
//
// If the database loses acknowledged writes, by a crash, a failover or a restored
// backup, no answer shows it.
//
// # Usage
//
// The New functions send nothing; [Filter.Create] or the first Add makes the
// filter. [Filter.AddAll] takes many items at once, [AddIn] many filters, and
// [Filter.Load] millions of items. The Open functions make a handle for an
// existing filter. They need no config but the seed; what a config sets must be
// as the filter has it.
//
// All programs that share a filter must use the same config, but for TTL,
// MaxBytes, MissingIsEmpty, MustExist and ReadsNearest. Otherwise the error is
// a [*MismatchError].
//
// Items are bytes. Another spelling of a URL or an IP address is another item,
// so write each in one form before it is added or looked up.
//
// If work may fail and must not be lost, look first and add last: Exists, the
// work, Add. Two callers at once may then both do the work; a filter is no
// lock. Call Create before the first Exists: a look-up of a missing filter
// returns [ErrNotFound], unless [Config.MissingIsEmpty] is set.
//
// # Sizing
//
// A filter has a fixed size. Each factor of ten in the false positive rate takes
// 5.4 bits an item. The length of the string, by capacity and rate:
//
//	capacity       1 in 100    1 in 1,000    1 in 1,000,000
//	1,000          1.4 KB      2.0 KB        4.1 KB
//	100,000        134 KB      202 KB        403 KB
//	1,000,000      1.3 MB      2.0 MB        4.0 MB
//	10,000,000     13 MB       20 MB         40 MB
//	100,000,000    134 MB      202 MB        403 MB
//
// [Geometry.Bytes] computes it. Redis may allocate up to twice as much. A filter
// for 1 in 100 is wrong 1 time in 1,000 at half its capacity, 1 in 29 at one and a
// half times, and 8% of the time at twice: ask [Stats.OverCapacity] now and then.
//
// # Errors and retry safety
//
// A filter of another type, size or seed is a [*MismatchError], and other data
// is [ErrNotFilter]. Both stay as they are, but the Add of a Filter or a Window
// may have set bits there before it notices ([Filter.Add]): give filters keys
// of their own.
//
// A call repeats an attempt whose reply is lost. It never turns a new item into
// a seen one: if the answer to the repetition says that all its bits were set, the
// error is [ErrUncertain], "in, but perhaps not new". After any other error the item
// may be in, unless [upstash.SafeToRetry] reports that the call changed nothing.
// [InFilter] reports whether the item is in. A [BatchError] knows both of each item:
// whether it is in, and whether it certainly is not.
// Delete, Rename and the writes of a Cuckoo are not repeated. A proxy that
// repeats POST requests by itself breaks this.
//
// An attempt without an answer may run later, even after its call has ended. If an
// Add or a Create runs after a Delete, it makes an empty filter, or some shards of
// one. A late Expire or Persist changes a TTL that was set since.
//
// Errors of the database wrap an [upstash.Error] or an [upstash.CallError]. No
// error, handle or config shows a key, an item or a seed when it is printed, with
// two exceptions. If a type of yours keeps a config or a [Geometry] in an unexported
// field, fmt shows its Seed; and encoding/xml shows that of any config.
//
// A call ends when its context does. If the items are in by then, a step that
// remains, such as setting the TTL, may take a second more. So may a Load,
// Replace, Restore or TakeBackup, which asks what became of its last step and
// removes what it sent or copied.
//
// # Concurrency
//
// Handles, from [Filter] to [Mirror], are safe for concurrent use, must not be
// copied, and come from a New or Open function. All but a Mirror are cheap
// enough to make one for each request. Any number of processes may use a
// filter. Of several that create the same one, exactly one is told so, also
// after a lost reply. A [Local] needs a lock. Configs and results are plain
// data.
//
// # Format and compatibility
//
// A filter is one Redis string: 24 bytes of header, then the cells. FORMAT.md
// describes version 1, with readers. Every string carries a birth number, another
// for each attempt to create one: by this a [Mirror], a [Filter.Snapshot] or an
// AddAll notices that another filter took its key.
package bloom
