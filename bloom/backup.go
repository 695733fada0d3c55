package bloom

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash"
)

// A Backup is the string of a filter outside of Redis: of a [Filter], a
// [Window], a [Scalable], a [Cuckoo] or one shard of a [Sharded]. It holds
// neither the seed nor the TTL. Get one with [TakeBackup] or [ReadBackup]; the
// zero value is not usable. It never changes, and is safe for concurrent use. A
// [Local] of a plain filter has the same stream, and knows its items.
type Backup struct {
	seen state
	data []byte // the string
}

// TakeBackup downloads the filter at key, whatever its type, without its seed.
// A plain filter and a shard are read as by [Filter.Snapshot].
//
// The backup of a Window, a Scalable or a Cuckoo is of one moment. A string of
// 1 MiB ([WithPartBytes]) or more is copied first, to KEY:save:RANDOM, for
// which the database needs room. A copy left behind expires within an hour. A
// client that may only read gets [upstash.ErrReadOnly], or the server's
// refusal, then.
//
// If the filter is deleted or made again before it is read or copied, the error
// is [ErrRecreated]. A missing filter is [ErrNotFound], and anything else, a
// Bare filter too, [ErrNotFilter].
func TakeBackup(ctx context.Context, c *upstash.Client, key string, opts ...MoveOption) (_ *Backup, err error) {
	defer fault.OnlyReads(&err)
	var operation synced.Operation
	ctx = synced.With(ctx, &operation)
	seen, err := openState(ctx, c, key)
	if err != nil {
		return nil, err
	}
	r := recordOf(c, key, seen.header)
	ctx = r.Label(ctx, "bloom.TakeBackup")
	move := movesOf(c, atOnce, opts).Moves
	length := min(seen.length, seen.maxBytes())
	var data []byte
	if seen.header.kind == KindShard || !seen.header.hasWord() {
		operation.Fix()
		data = make([]byte, length)
		err = r.Download(ctx, move, seen.birth, 0, len(data), func(at int, part []byte) { copy(data[at:], part) })
	} else {
		data, err = r.Fetch(ctx, move, seen.birth, int(length), operation.Fix)
	}
	if err != nil {
		return nil, err
	}
	return newBackup(seen, data)
}

// newBackup takes the bytes of a string as they are in the database. It brings
// them to the length that the words say.
func newBackup(found state, data []byte) (*Backup, error) {
	if len(data) < headerBytes {
		return nil, ErrRecreated
	}
	h := found.header
	seen := state{header: h, birth: onlyRate(rateIn(found.birth))}
	if h.hasWord() {
		data[engine.SettledOffset/8] &^= 1
		var err error
		if seen, err = wordsOf(h, data); err != nil {
			return nil, err
		}
	}
	if short := int(seen.leastBytes()) - len(data); short > 0 {
		data = append(data, make([]byte, short)...)
	}
	seen.length = min(uint64(len(data)), seen.maxBytes())
	data = data[:seen.length]
	if !h.hasWord() {
		setOwn(&seen, data)
	}
	return &Backup{seen, data}, nil
}

// setOwn writes the words of a plain filter outside of Redis, and clears the bits
// behind the last cell.
func setOwn(seen *state, data []byte) {
	store(data, 0, seen.header.word()<<(64-wordBits))
	store(data, 8, uint64(seen.birth)&engine.RateMask<<rateShift)
	store(data, 16, 0)
	data[len(data)-1] &= 0xff << (-seen.header.bits & 7)
}

// onlyRate is the birth number of a plain filter outside of Redis: its rate alone
// is known.
func onlyRate(word uint64) int64 { return int64(engine.BirthMarker | word&engine.RateMask) }

// wordsOf reads the words at the beginning of a string, and checks that they are
// those of a filter with this header.
func wordsOf(h headerInfo, data []byte) (state, error) {
	word := func(at int) uint64 { return binary.BigEndian.Uint64(data[at:]) }
	const low = 64 - wordBits
	seen := engine.State{
		Header: int64(word(0) >> low), Birth: int64(word(8) >> low), KindWord: int64(word(16) >> low),
		Length: uint64(len(data)), Stray: word(0)<<wordBits != 0 || word(8)<<wordBits != 0,
		StrayKind: word(16)<<wordBits != 0,
	}
	if seen.Header != int64(h.word()) {
		return state{}, engine.ErrHeaderBits
	}
	s, err := checkState(seen)
	if err != nil {
		return state{}, err
	}
	switch h.kind {
	case KindWindow:
		_, err = windowShapeOf(&s, 0)
	case KindCuckoo:
		if cuckooStats(h.geometry(0), 0, s.word).Damaged {
			err = fmt.Errorf("%w, but a damaged Cuckoo: it counts more copies than it has room for; make it"+
				" again", ErrNotFilter)
		}
	case KindScalable:
		if _, n, _ := layersIn(s.word); n < 1 || n > len(layerAreas(h.bits)) || h.scheme != SchemeBlocked {
			err = engine.ErrHeaderBits
		}
	}
	return s, err
}

// leastBytes returns the length of a string with all the parts in use.
func (s *state) leastBytes() uint64 {
	if s.header.kind == KindScalable {
		return layerAreas(s.header.bits)[s.parts()-1].end() / 8
	}
	return s.maxBytes()
}

// ReadBackup reads a stream of [Backup.WriteTo] or [Local.WriteTo] to its end. If
// it is damaged, cut short or too long, the error is [ErrBadStream]; an error of
// r is wrapped. It allocates at most three times what the stream holds, and 1
// MiB.
//
// The streams of a [Scalable] and a [Cuckoo] may change until v0.2.0. A later
// one has version 2 in its header, and is ErrBadStream to v0.1.0.
func ReadBackup(r io.Reader) (*Backup, error) {
	b, _, err := readBackup(r)
	return b, err
}

// readBackup also returns the padded buffer that holds the backup's string.
func readBackup(r io.Reader) (_ *Backup, buf []byte, _ error) {
	f := &frameReader{r: r}
	h, n, buf, err := f.frame()
	if err != nil {
		return nil, nil, err
	}
	data := buf[:n:n]
	if !h.hasWord() {
		words, last := [headerBytes]byte(data), data[n-1]
		seen := state{header: h, birth: onlyRate(load(data, 8) >> rateShift), length: uint64(n)}
		setOwn(&seen, data)
		if words != [headerBytes]byte(data) || last != data[n-1] {
			return nil, nil, badStreamf("bits of its string are set that are always 0")
		}
		return &Backup{seen, data}, buf, nil
	}
	seen, err := wordsOf(h, data)
	switch {
	case err != nil:
		return nil, nil, badStreamf("%w", err)
	case uint64(n) < seen.leastBytes() || uint64(n) > seen.maxBytes():
		return nil, nil, badStreamf("its string has %d bytes, and its words say %d to %d", n, seen.leastBytes(),
			seen.maxBytes())
	}
	return &Backup{seen, data}, buf, nil
}

// WriteTo writes a stream for [ReadBackup], 32 bytes longer than the string,
// with a checksum at the end. An error of w is wrapped.
func (b *Backup) WriteTo(w io.Writer) (n int64, err error) {
	return writeFrame(w, b.data[:headerBytes], b.data[headerBytes:])
}

// Stats returns what [Inspect] would, without the TTL.
func (b *Backup) Stats() Stats {
	s := b.seen
	s.setBits = b.setBits()
	out := s.stats()
	if out.Kind == KindCuckoo {
		out.countCells(s.word, s.setBits)
	}
	return out
}

// String describes the filter, and holds none of its bits.
func (b *Backup) String() string { return "bloom.Backup(" + b.seen.header.geometry(0).String() + ")" }

// Format is String for every verb.
func (b *Backup) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, b.String()) }

func (b *Backup) setBits() (n uint64) {
	for _, c := range b.data[headerBytes:] {
		n += uint64(bits.OnesCount8(c))
	}
	return n
}

// rateCode returns the code of the rate in the string.
func (b *Backup) rateCode() uint64 { return uint64(b.seen.birth) & engine.RateMask }

// Local returns a plain filter as a [Local]. Another type or another seed is a
// [*MismatchError].
func (b *Backup) Local(seed uint64) (*Local, error) {
	g, err := b.plainGeometry(seed)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, padded(len(b.data)))
	copy(buf, b.data)
	return localOf(g, b.rateCode(), len(b.data), buf), nil
}

// plainGeometry returns the geometry of a plain filter with the seed.
func (b *Backup) plainGeometry(seed uint64) (Geometry, error) {
	h := b.seen.header
	g := h.geometry(seed)
	g.Seed = seed
	if !h.hasWord() && h.seedTag == seedTag(seed) {
		return g, nil
	}
	e := newMismatchError(KindFilter, g, h)
	e.local = true
	return g, e
}

// Restore makes the filter of the backup at a free key, with the ttl and a new
// birth number, in one atomic step. It uploads as [Filter.Load] does, at about
// the same cost. If the key holds anything, the error is [ErrKeyExists], and
// nothing was changed. To merge a plain filter into another, see [ReadLocal]
// and [Filter.Merge].
//
// A ttl is at least 1 ms; 0 is none, until a handle with a TTL adds. Only a
// plain filter and a Scalable may have one. A Window with ExpireIdle expires as
// if it had been turned now. Its panes go on to age in the backup: those that
// are over do not count. A shard goes to the key KEY:i of its own number i, else
// the error is [upstash.ErrArgument].
//
// An error leaves the key as it was, unless [upstash.SafeToRetry] returns
// false: then the filter may be there. Calling again finds out.
func (b *Backup) Restore(
	ctx context.Context, c *upstash.Client, key string, ttl time.Duration, opts ...MoveOption,
) (LoadResult, error) {
	start := time.Now()
	if err := checkTarget(c, key); err != nil {
		return LoadResult{}, err
	}
	h := b.seen.header
	r := recordOf(c, key, h)
	r.TTL = ttl
	switch {
	case ttl < 0 || ttl != 0 && (h.kind == KindWindow || h.kind == KindShard || h.kind == KindCuckoo):
		return LoadResult{}, fault.Errorf("bloom: %w: a ttl of %v for %s: only a plain filter and a Scalable"+
			" have one", upstash.ErrArgument, ttl, typeOf(h.kind).name)
	case ttl > 0 && ttl < time.Millisecond:
		return LoadResult{}, fault.Errorf("bloom: %w: a ttl of %v: 0 is none, else at least 1ms", upstash.ErrArgument, ttl)
	case h.kind == KindShard && !strings.HasSuffix(key, ":"+strconv.Itoa(shardIn(b.seen.word))):
		return LoadResult{}, fault.Errorf("bloom: %w: the backup is of shard %d, and its key must end in :%[2]d",
			upstash.ErrArgument, shardIn(b.seen.word))
	case c.ReadOnly():
		return LoadResult{}, upstash.ErrReadOnly
	case h.kind == KindWindow:
		shape, err := windowShapeOf(&b.seen, 0)
		if err != nil {
			return LoadResult{}, err
		}
		if shape.idle {
			r.TTL = shape.idleTTL()
		}
	}
	r.Meaning = restoring{r, uint64(len(b.data))}
	ctx = r.Label(ctx, "bloom.Backup.Restore")
	seen := b.seen
	seen.setBits = b.setBits()
	body := engine.Body{Bytes: b.data, SetBits: seen.setBits, Rate: rateIn(seen.birth)}
	done, err := r.Restore(ctx, body, movesOf(c, atOnce, opts).Moves)
	result := uploaded(done, err, start)
	if err == nil {
		result.NewBits, result.Created, result.OverCapacity = seen.setBits, true, seen.stats().OverCapacity()
	}
	return result, err
}

// recordOf is the record of a string with a header, whatever its kind.
func recordOf(c *upstash.Client, key string, h headerInfo) *record {
	r := &record{geo: h.geometry(0), kind: h.kind}
	r.Client, r.Key, r.Header, r.Meaning = c, key, int64(h.word()), r
	return r
}

// restoring explains the errors of a Restore.
type restoring struct {
	*record
	bytes uint64
}

// TooLarge names no Config: a backup has none.
func (r restoring) TooLarge(err error) error {
	return &RecordTooLargeError{r.bytes, err, "choose a larger plan"}
}
