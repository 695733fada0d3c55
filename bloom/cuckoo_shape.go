package bloom

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// cuckooShape is the shape of a record of the cuckoo scheme. A look-up reads
// the item's two buckets; a write is a script.
type cuckooShape struct {
	geo     Geometry
	buckets uint64
}

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

func (cuckooShape) Prepare(context.Context, *engine.Request, bool) (bool, error) { return false, nil }

func (cuckooShape) KindWord(*engine.Request) int64 { return 1 << (wordBits - 1) }

func (cuckooShape) MutableBits() uint                                  { return wordBits - 1 }
func (cuckooShape) differingField(int64) string                        { return "" }
func (s cuckooShape) length() uint64                                   { return s.geo.Bytes(LayoutHeaded) }
func (cuckooShape) Follow(context.Context, *engine.Request, bool) bool { return false }
func (cuckooShape) Script(q *engine.Request) upstash.Command           { return cuckooScript(q) }

func (cuckooShape) MaxItems() int      { return cuckooItems }
func (cuckooShape) StoresCopies() bool { return true }

func (cuckooShape) howToShorten() string {
	return "lower the Capacity, raise the FPRate, or choose a larger plan"
}

func (s cuckooShape) ItemBytes(write bool) int {
	if write {
		return len(`,"9007199254740991"`)
	}
	return 2 * upstash.SizeOfGet(engine.U53, headerBits+s.buckets*wordBits)
}

func (s cuckooShape) AppendWrite(q *engine.Request, item string) {
	x, y := cells.Digest(item, s.geo.Seed)
	fp, first, _ := cells.CuckooPlace(x, y, s.buckets, s.geo.Hashes)
	q.AppendOp(strconv.FormatUint(fp<<cuckooBucketBits+first, 10))
}

func (s cuckooShape) AppendRead(q *engine.Request, item string) {
	x, y := cells.Digest(item, s.geo.Seed)
	fp, first, second := cells.CuckooPlace(x, y, s.buckets, s.geo.Hashes)
	// The word's mask stands for the fingerprint to look for.
	q.Words = append(q.Words, cells.Word{Index: first, Mask: int64(fp)})
	q.Pos = append(q.Pos[:0], wordBits*first, wordBits*second)
	q.GetWords(headerBits, q.Pos)
	q.WordEnds = append(q.WordEnds, len(q.Words))
}

// wrote notes for each item whether it was new, or whether it was removed.
func (s cuckooShape) JudgeWrite(q *engine.Request, answers []upstash.NullInt64) error {
	if len(answers) != len(q.Items) {
		return engine.WrongCount(len(answers), len(q.Items))
	}
	for i, a := range answers {
		switch {
		case !a.Valid || a.Int64 > 1:
			return fault.Errorf("bloom: %w: an answer about an item that is neither 0 nor 1", upstash.ErrBadResponse)
		case a.Int64 < 0:
			return &fullError{item: i, items: len(answers), copies: a.Int64 == -2, slots: s.geo.Hashes}
		}
		q.JudgeItem(a.Int64 == 1, false)
	}
	return nil
}

func (s cuckooShape) JudgeRead(q *engine.Request, answers []upstash.NullInt64) error {
	for i, w := range q.Words {
		first, err := engine.FieldWord(answers[2*i])
		if err != nil {
			return err
		}
		second, err := engine.FieldWord(answers[2*i+1])
		if err != nil {
			return err
		}
		fp, k := uint64(w.Mask), s.geo.Hashes
		q.Found = append(q.Found, cells.CuckooHas(uint64(first), fp, k) || cells.CuckooHas(uint64(second), fp, k))
	}
	return nil
}

// failed explains a write whose outcome is not known.
func (cuckooShape) Failed(q *engine.Request, err error) error {
	if upstash.SafeToRetry(err) || engine.IsForeign(err) || fault.Is(err, ErrNotFound) {
		return err
	}
	return &copiesError{err, q.Removing}
}
