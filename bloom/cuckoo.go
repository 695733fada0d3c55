package bloom

import (
	"context"
	"fmt"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A Cuckoo is a handle to one filter from which items can be removed: a table
// of short fingerprints in Redis. Make it with [NewCuckoo] or [OpenCuckoo]; the
// zero value is not usable. It holds no data of the filter. It is safe for
// concurrent use and must not be copied.
//
// Each Add stores a copy of the item, and each Remove takes one copy out. So
// remove only what was added, and as often as it was added: two items may share
// a fingerprint. If an item that was never added is removed, another item's
// copy may go, and the "no" about that item is then wrong.
//
// A plain [Filter.Add] at a Cuckoo's key, by mistake, damages the table: members
// are denied from then on. One such Add denied 2 of 9,000 members, ten 15, and a
// thousand 1,343. [Cuckoo.Stats] says that the table is damaged.
//
// # Cost
//
// Exists is one request and one billed command, and reads two words at any
// rate. Add and [Cuckoo.Remove], of one item or of 500, are one request each, a
// script: three billed commands while there is room. As a filter fills up,
// items have to be moved to make room for others, and the words of their places
// are read first. In filters for 100,000 items, a request of 500 was billed as
// 3.2 to 3.7 commands on average up to half of Capacity, as 5.5 to 7 at 95% of
// it and as 7 or 8 at Capacity, an Add of one item at Capacity as 4.1 to 4.4. A
// filter takes 11.2 bits an item for a false positive rate of 1 in 100 and 14.1
// for 1 in 1,000; see [CuckooConfig].
//
// An Add takes 1.2 to 1.5 times as long as [Filter.Add], and a look-up about as
// long as [Filter.Exists]. A request of 500 Adds takes up to twice as long as
// with a [Filter] while there is room, and five times as long at Capacity; the
// server runs nothing else meanwhile.
//
// # Expiry
//
// A Cuckoo does not expire: it has no TTL and no Expire. If the items have an
// end, as tokens do, make a Cuckoo for each period in which items end, such as
// "revoked:2026-W48". All calls about an item then use the one of its own end,
// and [Cuckoo.Delete] removes each once its period is over. To have the
// database delete it, call [upstash.Client.Expire] with its key after Create;
// set [CuckooConfig.MustExist], because an Add would make it again. Add and
// Remove leave such a TTL as it is.
//
// # Errors
//
// Add returns [ErrFull] if it finds no place, and has then changed nothing. So
// it needs no WarnFill. By the table's size, this happens before Capacity at
// most 2 times in 10,000 if no item is in more than once; see
// [CuckooConfig.Capacity]. A call is not repeated if its outcome is not known,
// because a second copy would be stored, or a second one removed: it returns
// [ErrUncertain]. Nothing is changed if the key holds something else.
//
// A table does not grow. To get a larger one, stop those who add and remove, fill
// another at another key from the source of the items, and go on with that. If
// they did not stop, a Remove of an item that the new one lacks could take another
// item's copy.
//
// If each item is added only once before it is removed, Exists says what came
// of an ErrUncertain: "no" after an Add means that nothing was stored, and
// "yes" after a Remove that nothing was taken out. Call again then. A false
// positive is a "yes" too, and a request that is delayed on its way may still
// run after the Exists.
//
// The table is the one of Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo
// filter: practically better than Bloom", CoNEXT 2014.
type Cuckoo struct {
	handle
	cfg CuckooConfig
}

// NewCuckoo makes a handle for the cuckoo filter at key. It checks the
// [CuckooConfig], and returns a [*ConfigError] if it is wrong. It sends
// nothing: Create or the first Add makes the filter itself.
func NewCuckoo(c *upstash.Client, key string, cfg CuckooConfig) (*Cuckoo, error) {
	geo, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	if err := checkTarget(c, key); err != nil {
		return nil, err
	}
	return newCuckoo(c, key, cfg, geo), nil
}

func newCuckoo(c *upstash.Client, key string, cfg CuckooConfig, geo Geometry) *Cuckoo {
	f := &Cuckoo{cfg: cfg}
	f.bytes, f.parallel, f.missingIsEmpty = cfg.BatchBytes, cfg.BatchParallel, cfg.MissingIsEmpty
	r := &f.rec
	r.Client, r.Key, r.geo, r.kind = c, key, geo, KindFilter
	r.MustExist, r.Rate = cfg.MustExist, cells.RateCode(cfg.FPRate)
	r.setReads(cfg.Reads)
	shape := cuckooShape{geo, geo.Bits / wordBits}
	r.storedBy(shape, shape)
	return f
}

// OpenCuckoo makes a handle for an existing cuckoo filter and reads its geometry
// from its header. At most one [CuckooConfig] says the rest: if Capacity and
// FPRate are set, the filter must have that size; Seed must be its seed; the
// other fields hold as they do for NewCuckoo. The cost and the errors are those
// of [Open].
func OpenCuckoo(ctx context.Context, c *upstash.Client, key string, cfg ...CuckooConfig) (_ *Cuckoo, err error) {
	defer fault.OnlyReads(&err)
	own, err := atMostOne(cfg)
	if err != nil {
		return nil, err
	}
	if err := own.checkOpen(); err != nil {
		return nil, err
	}
	seen, err := openState(ctx, c, key)
	if err != nil {
		return nil, err
	}
	want := seen.header.geometry(own.Seed)
	if want.Scheme != SchemeCuckoo {
		want.Scheme = SchemeCuckoo
		return nil, newMismatchError(KindFilter, want, seen.header)
	}
	if err := seen.isOf(KindFilter, own.Seed); err != nil {
		return nil, err
	}
	if own.isSized() {
		if want, err = own.Geometry(); err != nil {
			return nil, err
		}
	}
	if err := seen.isSized(want); err != nil {
		return nil, err
	}
	f := newCuckoo(c, key, own, want)
	if !own.isSized() {
		f.rec.Rate = rateIn(seen.birth)
	}
	return f, nil
}

// Create makes the filter with its whole string: no later [Cuckoo.Add] can make
// it too large for the database. It reports whether it made the filter; cost
// and errors are those of [Filter.Create].
func (f *Cuckoo) Create(ctx context.Context) (created bool, err error) {
	ctx = f.rec.Label(ctx, "bloom.Cuckoo.Create")
	return f.create(ctx, headerBits+f.rec.geo.Bits, f.rec.Shape.KindWord(nil))
}

// Add stores a copy of the item and reports whether it was new: true if there
// was no copy of it, false if there was one, or if another item has the same
// fingerprint. The copy is stored all the same, and a Remove takes it out. Add
// creates the filter if there is none, unless [CuckooConfig.MustExist] is set.
//
// [ErrFull] is returned if the item found no place, or is in as often as it can
// be; nothing was changed. After [ErrUncertain] the copy may have been stored
// or not: adding the item again may store a second one.
func (f *Cuckoo) Add(ctx context.Context, item string) (added bool, err error) {
	return f.writeOne(f.rec.Label(ctx, "bloom.Cuckoo.Add"), item, nil, false)
}

// Remove takes one copy of the item out and reports whether there was one.
// Remove only what was added: the copy it finds may be another item's with the
// same fingerprint. A missing filter is [ErrNotFound]. A full database refuses a
// Remove too ([upstash.ErrOutOfMemory]): only Delete frees memory.
//
// After [ErrUncertain] a copy may have been taken out or not: removing the item
// again may take another copy.
func (f *Cuckoo) Remove(ctx context.Context, item string) (removed bool, err error) {
	return f.writeOne(f.rec.Label(ctx, "bloom.Cuckoo.Remove"), item, nil, true)
}

// Exists reports whether a copy of the item is in the filter. If it returns
// false without an error, there is none; if true, there is one, or it is a
// false positive. It is one request and one billed command; a missing filter is
// [ErrNotFound], unless [CuckooConfig.MissingIsEmpty] is set. By default a full
// database refuses it: see [Reads].
func (f *Cuckoo) Exists(ctx context.Context, item string) (bool, error) {
	return f.exists(f.rec.Label(ctx, "bloom.Cuckoo.Exists"), item, nil)
}

// AddAll stores a copy of each item and reports for each whether it was new. Of
// equal ones, one can be new.
//
// It sends as few requests as 500 items each and [CuckooConfig.BatchBytes]
// allow, and up to [CuckooConfig.BatchParallel] of them at once. Each request
// adds all of its items or none. If a request fails, the error is a
// [*BatchError]. It says what is known of each item: an [ItemUnknown] may be in
// or not, and if a request ended in [ErrFull], its items are not done.
func (f *Cuckoo) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return f.addAll(f.rec.Label(ctx, "bloom.Cuckoo.AddAll"), items, nil)
}

// RemoveAll takes one copy of each item out and reports for each whether there
// was one. Requests and errors are those of AddAll.
func (f *Cuckoo) RemoveAll(ctx context.Context, items []string) ([]bool, error) {
	return f.removeAll(f.rec.Label(ctx, "bloom.Cuckoo.RemoveAll"), items)
}

// ExistsAll reports for each item whether a copy is in the filter, with the
// promises of Exists. It sends as few requests as [CuckooConfig.BatchBytes]
// allows.
func (f *Cuckoo) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	return f.existsAll(f.rec.Label(ctx, "bloom.Cuckoo.ExistsAll"), items, nil)
}

// Rename moves the filter to another key, as [Filter.Rename] does.
func (f *Cuckoo) Rename(ctx context.Context, to string) error {
	return f.rename(f.rec.Label(ctx, "bloom.Cuckoo.Rename"), to)
}

// Delete removes the filter and reports whether there was one, as
// [Filter.Delete] does.
func (f *Cuckoo) Delete(ctx context.Context) (bool, error) {
	return f.delete(f.rec.Label(ctx, "bloom.Cuckoo.Delete"))
}

// Geometry returns what the filter's places are computed from: Bits is 53 a
// bucket, and Hashes the slots of a bucket.
func (f *Cuckoo) Geometry() Geometry { return f.rec.geo }

// String describes the handle without its key and seed.
func (f *Cuckoo) String() string { return "bloom.Cuckoo(" + f.rec.geo.String() + ")" }

// Format is String for every verb: %+v and %#v show neither the key nor the
// seed.
func (f *Cuckoo) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, f.String()) }
