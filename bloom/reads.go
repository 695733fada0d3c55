package bloom

import "strconv"

// Reads says which copy of a global database answers look-ups. Such a database
// has a primary, which takes all writes, and read regions, which follow it with
// a lag. A BITFIELD counts as a write whatever it does: by default each look-up
// travels to the primary and is billed in every region, and a full database
// refuses it ([upstash.ErrOutOfMemory]). BITFIELD_RO is a read, and the nearest
// region answers it. A database of a single region has nothing else to choose.
// The zero value is [ReadsPrimary].
//
// A [Window] has no Reads: its look-ups go to the primary. If the client has
// [upstash.WithReadOnly], the nearest region answers the look-ups of every type;
// only [ReadsNearestFirst] still asks the primary.
//
// A read-only token may not run BITFIELD. In a client without WithReadOnly the
// primary refuses it, and the nearest region is asked, by a second request. Its
// "yes" holds. If it says "no", the error is [upstash.ErrNoPermission], unless
// Reads is [ReadsNearest]. With ReadsNearestFirst and such a token each "no" is
// this error, WithReadOnly or not.
//
// This was measured from a client beside the only read region, which is 20 ms
// from the primary and 50 writes behind it. Four in five of the look-ups are of
// items in the filter, and the client adds the others:
//
//	               sync tokens   p50       p90       billed a look-up   wrong "no"
//	primary        yes or no     20.5 ms   21.2 ms   2                  none
//	nearest        yes           20.6 ms   20.8 ms   1                  none
//	nearest        no             0.1 ms    0.2 ms   1                  a quarter
//	nearest first  yes           20.5 ms   40.8 ms   1.40               none
//	nearest first  no             0.2 ms   21.0 ms   1.84               none
//
// These figures are of "go run ./examples/regions". With sync tokens, the
// default, the primary answers the reads of a client that also writes, until the
// region has its writes: of writes that overlapped, such as the requests of one
// AddAll, one for certain. Such a client is fast with ReadsNearestFirst and
// [upstash.WithoutSyncToken]: the "no" is the primary's all the same. If most
// items are new, ReadsPrimary is faster.
type Reads uint8

const (
	// ReadsPrimary asks the primary: a "no" is always true.
	ReadsPrimary Reads = 0

	// ReadsNearest asks the nearest region and takes what it says. A "no", a
	// missing filter or a mismatch may come from its lag. With
	// [Config.MissingIsEmpty], a region under construction answers "no" to
	// everything.
	ReadsNearest Reads = 1

	// ReadsNearestFirst asks the nearest region, takes its "yes", and asks the
	// primary about everything else: a "no" is always true, and costs a second
	// request. The second request of a batch asks only about the items not
	// found by the region. Not for [LayoutBare].
	ReadsNearestFirst Reads = 2
)

// String returns "primary", "nearest", "nearest first", or "Reads(9)" for an
// unknown one.
func (r Reads) String() string {
	switch r {
	case ReadsPrimary:
		return "primary"
	case ReadsNearest:
		return "nearest"
	case ReadsNearestFirst:
		return "nearest first"
	}
	return "Reads(" + strconv.Itoa(int(r)) + ")"
}

// MarshalText returns what String returns, for JSON and log/slog.
func (r Reads) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the name of an exported Reads, as a file of settings may
// have it. Any other text is [upstash.ErrArgument].
func (r *Reads) UnmarshalText(name []byte) error {
	return unmarshalName(r, name, ReadsPrimary, ReadsNearest, ReadsNearestFirst)
}
