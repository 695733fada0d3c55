package bloom

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash"
)

// A Backup is the string of a filter outside of Redis: of a [Filter], a
// [Window], a [Scalable], a [Cuckoo] or one shard of a [Sharded]. It holds
// neither the seed nor the TTL. It never changes, and is safe for concurrent
// use; the zero value is not usable.
type Backup struct {
	seen state
	data []byte // the string
}

// TakeBackup downloads the filter at key, whatever its type. A plain filter and
// a shard are read as by [Filter.Snapshot], which says what the primary sends
// and what a region does. The backup of a Window, a Scalable or a Cuckoo is of
// one moment. If it takes one request, it comes from where a Snapshot's first
// part does: from a region that may lag, if the client may only read.
//
// If such a string has 1 MiB ([WithPartBytes]) or more, it is copied first, to
// KEY:save:RANDOM. The database needs room for that, and a client that may only
// read gets [upstash.ErrReadOnly], or the server's refusal. A copy left behind
// expires within an hour. A Bare filter is [ErrNotFilter].
func TakeBackup(ctx context.Context, c *upstash.Client, key string, opts ...MoveOption) (_ *Backup, err error) {
	defer fault.OnlyReads(&err)
	var operation synced.Operation
	ctx = synced.With(ctx, &operation)
	if err := checkTarget(c, key); err != nil {
		return nil, err
	}
	r, move := recordOf(c, key, format.Header{}), movesOf(c, atOnce, opts)
	ctx = r.Label(ctx, "bloom.TakeBackup")
	seen, err := r.ReadStart(ctx, 0, move.PartBytes, true)
	if err != nil {
		return nil, err
	}
	r = recordOf(c, key, seen.Header)
	length := min(seen.Length, seen.MaxBytes())
	var data []byte
	if Kind(seen.Header.Kind) == KindShard || !seen.Header.HasWord() || seen.Bytes != nil {
		operation.Fix()
		data = make([]byte, length)
		err = r.Download(ctx, move, seen.Birth, seen.Bytes, 0, len(data), func(at int, part []byte) { copy(data[at:], part) })
	} else {
		data, err = r.Fetch(ctx, move, seen.Birth, int(length), operation.Fix)
	}
	if err != nil {
		return nil, err
	}
	return newBackup(state{seen.State}, data)
}

// ErrBadStream is returned when a stream is not a whole saved filter: it is
// damaged, cut short, too long or something else. Nothing of it was taken.
var ErrBadStream = format.ErrBadStream

// newBackup takes the bytes of a string as they are in the database. It brings
// them to the length that the words say.
func newBackup(found state, data []byte) (*Backup, error) {
	if len(data) < format.HeaderBytes {
		return nil, ErrRecreated
	}
	if found.Header.Scheme.CellBits() > 1 {
		return nil, fmt.Errorf("%w that this package can save: its scheme is %v", ErrNotFilter, found.Header.Scheme)
	}
	seen := state{format.State{Header: found.Header}}
	if found.Header.HasWord() {
		data[format.SettledOffset/8] &^= 1
		var err error
		if seen.State, err = format.Words(found.Header, data); err != nil {
			return nil, err
		}
	}
	if short := int(seen.LeastBytes()) - len(data); short > 0 {
		data = append(data, make([]byte, short)...)
	}
	data = data[:min(uint64(len(data)), seen.MaxBytes())]
	seen.Length = uint64(len(data))
	if !found.Header.HasWord() {
		seen.State = format.SetPlain(found.Header, format.RateIn(found.Birth), data)
	}
	return &Backup{seen, data}, nil
}

// ReadBackup reads a whole stream of [Backup.WriteTo] or [Local.WriteTo], else
// the error is [ErrBadStream]; an error of r is wrapped. The note that upbloom
// save writes behind it is checked too, and left out. It allocates at most three
// times what the stream holds, and 1 MiB.
//
// The streams and strings of a [Scalable] and a [Cuckoo] may change until
// v0.2.0; v0.1.0 refuses later ones.
func ReadBackup(r io.Reader) (*Backup, error) {
	b, _, err := readBackup(r)
	return b, err
}

// ReadLocal reads the stream of a plain filter. It returns the errors of
// [ReadBackup], and a [*MismatchError] for another type or seed.
func ReadLocal(r io.Reader, seed uint64) (*Local, error) {
	b, buf, err := readBackup(r)
	if err != nil {
		return nil, err
	}
	g, err := b.plainGeometry(seed)
	if err != nil {
		return nil, err
	}
	return localOf(g, b.rateCode(), len(b.data), buf), nil
}

// readBackup also returns the padded buffer that holds the backup's string.
func readBackup(r io.Reader) (_ *Backup, buf []byte, _ error) {
	s, buf, err := format.ReadFrame(r)
	if err != nil {
		return nil, nil, err
	}
	return &Backup{state{s}, buf[:s.Length:s.Length]}, buf, nil
}

// WriteTo writes a stream for [ReadBackup], 32 bytes longer than the string. It has
// neither the key nor the TTL, which files of the tool upbloom have. An error of w is
// wrapped.
func (b *Backup) WriteTo(w io.Writer) (n int64, err error) {
	return format.WriteFrame(w, b.data[:format.HeaderBytes], b.data[format.HeaderBytes:])
}

// Stats returns what [Inspect] would, without the TTL. Bytes is the length of the
// whole string, of which Redis holds only a part if Add made the filter.
func (b *Backup) Stats() Stats {
	s := b.seen
	s.SetBits = b.setBits()
	out := s.stats()
	if out.Kind == KindCuckoo {
		out.countCells(s.Word, s.SetBits)
	}
	return out
}

func (b *Backup) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "bloom.Backup(%v)", geometryOf(b.seen.Header, 0))
}

func (b *Backup) setBits() uint64 { return onesIn(b.data[format.HeaderBytes:]) }

// rateCode returns the code of the rate in the string.
func (b *Backup) rateCode() uint64 { return uint64(b.seen.Birth) & format.RateMask }

// Local returns a plain filter as a [Local], such as for a [Filter.Merge].
// Another type or another seed is a [*MismatchError].
func (b *Backup) Local(seed uint64) (*Local, error) {
	g, err := b.plainGeometry(seed)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, format.Padded(len(b.data)))
	copy(buf, b.data)
	return localOf(g, b.rateCode(), len(b.data), buf), nil
}

// plainGeometry returns the geometry of a plain filter with the seed.
func (b *Backup) plainGeometry(seed uint64) (Geometry, error) {
	h := b.seen.Header
	g := geometryOf(h, seed)
	g.Seed = seed
	if !h.HasWord() && h.SeedTag == format.SeedTag(seed) {
		return g, nil
	}
	e := newMismatchError(KindFilter, g, h)
	e.local = true
	return g, e
}

// Restore makes the filter of the backup at a free key, with the ttl and a new
// birth number, in one atomic step. If the key holds anything, the error is
// [ErrKeyExists].
//
// A ttl is at least 1 ms; 0 is none, until a handle with a TTL adds. Only a
// plain filter and a Scalable may have one. A Window with ExpireIdle expires as
// if it had been turned now. Its panes go on to age in the backup: those that
// are over do not count. A shard goes to the key KEY:i of its own number i,
// else the error is [upstash.ErrArgument].
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
	h := b.seen.Header
	r := recordOf(c, key, h)
	r.TTL = ttl
	switch {
	case ttl < 0 || ttl != 0 && (Kind(h.Kind) == KindWindow || Kind(h.Kind) == KindShard || Kind(h.Kind) == KindCuckoo):
		return LoadResult{}, fault.Errorf("bloom: %w: a ttl of %v for %s: only a plain filter and a Scalable"+
			" have one", upstash.ErrArgument, ttl, typeOf(Kind(h.Kind)).name)
	case ttl > 0 && ttl < time.Millisecond:
		return LoadResult{}, fault.Errorf("bloom: %w: a ttl of %v: 0 is none, else at least 1ms", upstash.ErrArgument, ttl)
	case Kind(h.Kind) == KindShard && !strings.HasSuffix(key, ":"+strconv.Itoa(format.ParseShard(b.seen.Word).Index)):
		return LoadResult{}, fault.Errorf("bloom: %w: the backup is of shard %d, and its key must end in :%[2]d",
			upstash.ErrArgument, format.ParseShard(b.seen.Word).Index)
	case c.ReadOnly():
		return LoadResult{}, upstash.ErrReadOnly
	case Kind(h.Kind) == KindWindow:
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
	seen.SetBits = b.setBits()
	body := engine.Body{Bytes: b.data, SetBits: seen.SetBits, Rate: format.RateIn(seen.Birth)}
	done, err := r.Restore(ctx, body, movesOf(c, atOnce, opts))
	result := uploaded(done, err, start)
	if err == nil {
		result.NewBits, result.Created, result.OverCapacity = seen.SetBits, true, seen.stats().OverCapacity()
	}
	return result, err
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
