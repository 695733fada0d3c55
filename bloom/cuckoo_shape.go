package bloom

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/upstash"
)

// cuckooShape is the shape of a record of the cuckoo scheme. A look-up reads
// the item's two buckets; a write is a script.
type cuckooShape struct{ buckets uint64 }

// The kind's word is 1 | items:32 | ones:20: how many copies the table holds,
// and the number of set bits of its cells mod 2^20. If anything but our scripts
// writes, the two fall behind, and Stats notices.
const (
	cuckooOnesBits  = 20
	cuckooItemsBits = 32
)

// cuckooWord takes the kind's word apart.
func cuckooWord(word int64) (items, ones uint64) {
	return uint64(word) >> cuckooOnesBits & (1<<cuckooItemsBits - 1), uint64(word) & (1<<cuckooOnesBits - 1)
}

func (cuckooShape) aim(context.Context, *request, bool) (bool, error) { return false, nil }
func (cuckooShape) word(*request) int64                               { return 1 << (wordBits - 1) }
func (cuckooShape) loose() uint                                       { return wordBits - 1 }
func (cuckooShape) differs(int64) string                              { return "" }
func (cuckooShape) length(r *record) uint64                           { return r.geo.Bytes(r.layout) }
func (cuckooShape) follow(context.Context, *request, bool) bool       { return false }
func (cuckooShape) script(q *request) upstash.Command                 { return cuckooScript(q) }
func (cuckooShape) maxItems() int                                     { return cuckooItems }

func (cuckooShape) shorter() string {
	return "lower the Capacity, raise the FPRate, or choose a larger plan"
}

func (s cuckooShape) itemBytes(_ *record, write bool) int {
	if write {
		return len(`,"9007199254740991"`)
	}
	return 2 * upstash.SizeOfGet(u53, headerBits+s.buckets*wordBits)
}

func (s cuckooShape) setItem(q *request, item string) {
	x, y := cells.Digest(item, q.rec.geo.Seed)
	fp, first, _ := cells.CuckooPlace(x, y, s.buckets, q.rec.geo.Hashes)
	q.addOp(strconv.FormatUint(fp<<cuckooBucketBits+first, 10))
}

func (s cuckooShape) getItem(q *request, item string) {
	x, y := cells.Digest(item, q.rec.geo.Seed)
	fp, first, second := cells.CuckooPlace(x, y, s.buckets, q.rec.geo.Hashes)
	// The word's mask stands for the fingerprint to look for.
	q.words = append(q.words, cells.Word{Index: first, Mask: int64(fp)})
	q.pos = append(q.pos[:0], wordBits*first, wordBits*second)
	q.get(headerBits, q.pos)
	q.ends = append(q.ends, len(q.words))
}

// wrote notes for each item whether it was new, or whether it was removed.
func (cuckooShape) wrote(q *request, answers []upstash.NullInt64) error {
	q.added = q.added[:0]
	for i, a := range answers {
		switch {
		case !a.Valid || a.Int64 > 1:
			return errorf("bloom: %w: an answer about an item that is neither 0 nor 1", upstash.ErrBadResponse)
		case a.Int64 < 0:
			return &fullError{item: i, items: len(answers), copies: a.Int64 == -2, slots: q.rec.geo.Hashes}
		}
		q.added = append(q.added, a.Int64 == 1)
	}
	return nil
}

func (cuckooShape) read(q *request, answers []upstash.NullInt64) error {
	for i, w := range q.words {
		first, err := fieldWord(answers[2*i])
		if err != nil {
			return err
		}
		second, err := fieldWord(answers[2*i+1])
		if err != nil {
			return err
		}
		fp, k := uint64(w.Mask), q.rec.geo.Hashes
		q.found = append(q.found, cells.CuckooHas(uint64(first), fp, k) || cells.CuckooHas(uint64(second), fp, k))
	}
	return nil
}

// failed explains a write whose outcome is not known.
func (cuckooShape) failed(q *request, err error) error {
	if upstash.SafeToRetry(err) || isForeign(err) || is(err, ErrNotFound) {
		return err
	}
	return &copiesError{err, q.removing}
}
