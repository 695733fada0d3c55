// Package bloom keeps Bloom filters in Redis, behind the Upstash REST API: "have
// I seen this before?" in one request and one billed command.
//
// # Guarantee
//
// A "no" is true: where Exists says false without an error, the item was never
// added to the live filter. Whatever could break that is an error: a filter that
// is missing, expired or evicted (ErrNotFound), one of another size or seed
// (MismatchError), data that is no filter (ErrNotFilter), a reply that was cut
// or garbled. A "yes" is true but for the false positives, whose share is chosen
// by Config.FPRate. Nothing is silently added twice or lost: a retry never turns
// a new item into a seen one. Three choices weaken the "no": LayoutBare has no
// header to check, MissingIsEmpty takes a missing filter for an empty one, and a
// read-only client of a global database may get the "no" of a lagging replica.
//
// # Usage
//
//	seen, err := bloom.New(client, "seen:webhooks", bloom.Config{
//		Capacity: 100_000, FPRate: 0.001, TTL: 24 * time.Hour,
//	})
//	...
//	added, err := seen.Add(ctx, event.ID) // true: new, handle it
//
// New sends nothing; the first Add makes the filter. AddAll and ExistsAll take
// many items at once. Create makes the whole filter in advance, Open reads its
// geometry from the database, Stats tells how full it is.
//
// # Sizing
//
// A filter has a fixed size, worked out from the number of items to expect and
// the false positive rate to accept. Another factor of ten costs 4.8 bits an item:
//
//	capacity       1 in 100           1 in 1,000          1 in 1,000,000
//	1,000          1.2 KB,  k = 7     1.8 KB,  k = 10     3.6 KB,  k = 20
//	100,000        120 KB             180 KB              359 KB
//	1,000,000      1.2 MB             1.8 MB              3.6 MB
//	10,000,000     12 MB              18 MB               36 MB
//	100,000,000    120 MB             180 MB              359 MB
//
// k is the number of bits an item sets. A filter for 1 in 100 is wrong 1 time in
// 4,000 when half full, 1 in 17 at one and a half times its capacity, and 1 in 6
// at twice. A record beyond 100 MB needs one of the larger plans.
//
// # Errors and retry safety
//
// Errors come from the database (package upstash's *Error and *CallError, which
// are wrapped), or are one of this package's: ErrNotFound, ErrNotFilter,
// ErrUncertain, ErrNoTTL, ErrSaturated, ErrKeyExists, *MismatchError, *ConfigError,
// *BatchError. None holds a key, an item or a seed.
//
// An attempt whose reply was lost is repeated. If the item's bits are then all
// set, the lost attempt may have set them: that is ErrUncertain, "in, but new or
// seen is not known". If one of them was still 0, the answer is certain. After
// any other error of Add the item may be in: upstash.SafeToRetry tells whether it
// certainly is not, InFilter whether it is, a BatchError both for each item.
//
// A handle that meets another filter writes no more until Exists or Create finds
// its own, or none. The Add that met it has run: the other filter may find up to
// k bits' worth of false positives more, and loses nothing. Text at the key may
// have its first bytes changed: give filters keys of their own.
//
// # TTL
//
// Config.TTL counts from the filter's creation. It is set by the transaction
// that may create the filter, with EXPIRE NX, so that no restart prolongs it, and
// again at once where an Add finds that it made the filter anew. Only where a
// process dies between those two is there none until the next handle's first Add.
//
// # Concurrency
//
// A Filter may be used by any number of goroutines and costs little to make: one
// per request is fine. Any number of processes may use the same filter. Of several
// that make it at once, with whatever Configs, exactly one succeeds.
//
// # Cost
//
// In requests, billed commands, and bytes at k = 7 in a filter for 1,000,000:
//
//	Add                        1 request   1 command    280 B out    48 B in
//	a handle's first, TTL set  1           2            320 B        75 B
//	Exists                     1           1            190 B        43 B
//	AddAll, 1,000 items        1           1            160 KB       14 KB
//	ExistsAll, 1,000 items     1           1            146 KB       14 KB
//	Create                     1, or 2 where it makes one (2 or 3 commands)
//	Open                       1           1
//	Cardinality, Stats         1           2, 4         the server reads the string
//
// A batch is cut into requests of Config.BatchBytes, of which
// Config.BatchParallel are under way at once. In a Bare filter with a TTL, an Add
// whose bits were all 0 is followed by an EXPIRE: nothing tells a new string.
//
// # Format and compatibility
//
// A filter is one Redis string: 16 bytes of header, then the cells, the first
// being the most significant bit of its byte. The header is a number of 53 bits,
// 1 | kind:2 | version:2 | scheme:2 | k:6 | seed tag:8 | m:32, followed by zeros.
// Positions come from XXH3-128 by enhanced double hashing. The format of version 1
// is frozen, and written down in full in FORMAT.md. LayoutBare with SchemeFNV1a is
// the string of the well-known TypeScript filter for Upstash.
package bloom
