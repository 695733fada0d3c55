package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom/internal/fault"
)

// A saved filter is a frame around the Redis string, because the string alone
// does not show that its end is missing. Without its end, a filter would answer
// "no" about items in it. All numbers are big-endian:
//
//	bytes  0-7   "\x89upbloom"
//	bytes  8-15  the header, as in the first eight bytes of the string
//	bytes 16-23  n, the length of the string: what the header's geometry says
//	n bytes      the string, bits 53 to 191 of which are 0
//	8 bytes      XXH3-64 of all bytes before
//
// The header holds a tag of the seed, never the seed: to read a seeded filter,
// one must know it.
const (
	frameMagic     = "\x89upbloom"
	frameHeadBytes = len(frameMagic) + 16
	frameSumBytes  = 8

	// streamPiece is how much of a long stream is read at first. With the state
	// of the hash it is less than the 1 MiB of ReadLocal's promise.
	streamPiece = 1<<20 - 16<<10
)

// ErrBadStream is returned when a stream is not a whole saved filter: it is
// damaged, cut short, too long or something else. Nothing of it was taken.
var ErrBadStream = errors.New("bloom: the stream is not a whole saved filter")

func badStreamf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format+": save it again, or use another copy",
		append([]any{ErrBadStream}, args...)...)
}

// ReadLocal reads a filter of [Local.WriteTo], with the errors and the memory
// of [ReadBackup]. Another seed than the filter's is a [*MismatchError] 126
// times in 127.
func ReadLocal(r io.Reader, seed uint64) (*Local, error) {
	l, _, err := readLocal(r, func(got headerInfo) (Geometry, error) {
		g := got.geometry(seed)
		if got.seedTag != seedTag(seed) {
			g.Seed = seed
			return g, newLocalMismatch(g, got)
		}
		return g, nil
	})
	return l, err
}

// WriteTo writes a stream for [Local.ReadFrom] and [ReadLocal]: 32 bytes more
// than [Local.Bytes], with a checksum at the end, without the seed.
func (l *Local) WriteTo(w io.Writer) (n int64, err error) {
	if l.size == 0 {
		return 0, errZeroLocal
	}
	return writeFrame(w, frameHead(l.raw()), l.raw())
}

// writeFrame writes the first bytes of a stream, the string and the checksum.
func writeFrame(w io.Writer, head, data []byte) (n int64, err error) {
	var sum xxh3.Hasher
	hashed := io.MultiWriter(w, &sum)
	for _, part := range [][]byte{head, data} {
		k, err := hashed.Write(part)
		if n += int64(k); err != nil {
			return n, fault.Errorf("bloom: write of a filter: %w", err)
		}
	}
	k, err := w.Write(binary.BigEndian.AppendUint64(nil, sum.Sum64()))
	if n += int64(k); err != nil {
		return n, fault.Errorf("bloom: write of a filter: %w", err)
	}
	return n, nil
}

// ReadFrom replaces the filter by one of [Local.WriteTo], as [ReadLocal] does.
// Another geometry or seed than its own is a [*MismatchError]; a zero Local
// takes every filter without a seed. After an error the filter is as it was.
func (l *Local) ReadFrom(r io.Reader) (n int64, err error) {
	got, n, err := readLocal(r, l.accepts)
	if err != nil {
		return n, err
	}
	*l = *got
	return n, nil
}

// MarshalBinary returns what [Local.WriteTo] writes.
func (l *Local) MarshalBinary() ([]byte, error) {
	var b bytes.Buffer
	b.Grow(frameHeadBytes + l.size + frameSumBytes)
	_, err := l.WriteTo(&b)
	return b.Bytes(), err
}

// UnmarshalBinary is [Local.ReadFrom] of the data, which it does not keep.
func (l *Local) UnmarshalBinary(data []byte) error {
	_, err := l.ReadFrom(bytes.NewReader(data))
	return err
}

var errZeroLocal = errors.New("bloom: a zero Local has nothing to write: make it with NewLocal")

// accepts returns the geometry the Local takes from a stream, or an error if it
// must not take this one.
func (l *Local) accepts(got headerInfo) (Geometry, error) {
	want := l.geo
	if l.size == 0 {
		want = got.geometry(0)
	}
	if got != want.info() {
		return want, newLocalMismatch(want, got)
	}
	return want, nil
}

func newLocalMismatch(want Geometry, got headerInfo) *MismatchError {
	e := newMismatchError(KindFilter, want, got)
	e.local = true
	return e
}

// frameHead is the first bytes of the stream of a string.
func frameHead(data []byte) []byte {
	head := append(make([]byte, 0, frameHeadBytes), frameMagic...)
	head = append(head, data[:8]...)
	return binary.BigEndian.AppendUint64(head, uint64(len(data)))
}

// readLocal reads a whole stream. choose judges the geometry before memory is
// allocated for the cells.
func readLocal(r io.Reader, choose func(headerInfo) (Geometry, error)) (l *Local, n int64, err error) {
	f := &frameReader{r: r}
	l, err = f.local(choose)
	return l, f.n, err
}

// A frameReader counts and hashes what it reads.
type frameReader struct {
	r   io.Reader
	n   int64
	sum xxh3.Hasher
}

func (f *frameReader) local(choose func(headerInfo) (Geometry, error)) (*Local, error) {
	var g Geometry
	_, size, buf, err := f.frame(func(got headerInfo) (err error) {
		if !got.scheme.oneBit() || got.kind != KindFilter {
			return badStreamf("it holds a %v, %v, which a Local cannot hold", got.kind, got.geometry(0))
		}
		g, err = choose(got)
		return err
	})
	if err != nil {
		return nil, err
	}
	return checkedLocal(g, size, buf)
}

// frame reads a whole stream with a string of n bytes, and returns it in a padded
// buffer. accept judges the header before memory is allocated for the string.
func (f *frameReader) frame(accept func(headerInfo) error) (h headerInfo, n int, buf []byte, err error) {
	var head [frameHeadBytes]byte
	if err = f.fill(head[:]); err == nil {
		h, n, err = parseFrameHead(head[:])
	}
	if err != nil {
		return h, n, nil, err
	}
	if err := accept(h); err != nil {
		// A damaged header is not the caller's mistake.
		if _, damaged := f.body(n, true); damaged != nil {
			return h, n, nil, damaged
		}
		return h, n, nil, err
	}
	buf, err = f.body(n, false)
	return h, n, buf, err
}

// body reads the string and what follows it, and checks the checksum. If the
// string is to be dropped, body returns none.
func (f *frameReader) body(size int, drop bool) (buf []byte, err error) {
	if drop {
		err = f.skip(size)
	} else {
		buf, err = f.string(size)
	}
	if err != nil {
		return nil, err
	}
	want := f.sum.Sum64()
	var end [frameSumBytes + 1]byte
	switch err := f.fill(end[:frameSumBytes]); {
	case err != nil:
		return nil, err
	case binary.BigEndian.Uint64(end[:]) != want:
		return nil, badStreamf("its checksum is wrong, so that some of its bytes were changed")
	}
	switch k, err := io.ReadFull(f.r, end[:1]); {
	case k > 0:
		return nil, badStreamf("more bytes follow its end")
	case err != io.EOF:
		return nil, fault.Errorf("bloom: read of a filter: %w", err)
	}
	return buf, nil
}

// skip reads n bytes for the checksum alone.
func (f *frameReader) skip(n int) error {
	piece := make([]byte, min(n, 64<<10))
	for n > 0 {
		piece = piece[:min(n, len(piece))]
		if err := f.fill(piece); err != nil {
			return err
		}
		n -= len(piece)
	}
	return nil
}

// checkedLocal makes a Local of the string of a frame whose checksum is right.
// It refuses bits that WriteTo never sets.
func checkedLocal(g Geometry, size int, buf []byte) (*Local, error) {
	var header [headerBytes]byte
	copy(header[:], buf)
	last := buf[size-1]
	l := localOf(g, size, buf)
	l.clearTail()
	if header != [headerBytes]byte(buf) || last != buf[size-1] {
		return nil, badStreamf("bits of its string are set that are always 0")
	}
	return l, nil
}

// parseFrameHead reads the header and the length of the string from the first
// bytes of a frame.
func parseFrameHead(head []byte) (h headerInfo, n int, err error) {
	if string(head[:len(frameMagic)]) != frameMagic {
		return h, 0, badStreamf("its first bytes are not those of a saved filter")
	}
	word := binary.BigEndian.Uint64(head[len(frameMagic):])
	if h, err = parseHeader(word >> (64 - wordBits)); err != nil {
		return h, 0, badStreamf("%w", err)
	}
	if word<<wordBits != 0 {
		return h, 0, badStreamf("bits of its header are set that are always 0")
	}
	length := binary.BigEndian.Uint64(head[len(frameMagic)+8:])
	switch least, most := h.frameBytes(); {
	case length >= least && length <= most:
		return h, int(length), nil
	case least == most:
		return h, 0, badStreamf("it says that its string has %d bytes, and its geometry %d", length, least)
	default:
		return h, 0, badStreamf("it says that its string has %d bytes, and its geometry %d to %d", length, least, most)
	}
}

// frameBytes returns how long the string in a stream is at least and at most, as
// far as its header tells. That of a plain filter has one length.
func (h headerInfo) frameBytes() (least, most uint64) {
	s := state{header: h}
	least = h.geometry(0).Bytes(LayoutHeaded)
	switch h.kind {
	case KindWindow:
		s.word = (maxPanes + 2) << paneShift
		return least, s.maxBytes()
	case KindScalable:
		return least, s.maxBytes()
	}
	return least, least
}

// fill reads exactly as much as p holds.
func (f *frameReader) fill(p []byte) error {
	k, err := io.ReadFull(f.r, p)
	f.n += int64(k)
	_, _ = f.sum.Write(p[:k])
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return badStreamf("it ends after %d bytes: %w", f.n, io.ErrUnexpectedEOF)
	case err != nil:
		return fault.Errorf("bloom: read of a filter: %w", err)
	}
	return nil
}

// string reads n bytes into a padded buffer. A stream is not believed to be as
// long as it says: until half of it has come, it is read in pieces.
func (f *frameReader) string(n int) ([]byte, error) {
	var pieces [][]byte
	got := 0
	for n > streamPiece && got < n/2 {
		piece := make([]byte, min(streamPiece, n-got))
		if err := f.fill(piece); err != nil {
			return nil, err
		}
		pieces = append(pieces, piece)
		got += len(piece)
	}
	buf := make([]byte, padded(n))
	from := 0
	for _, piece := range pieces {
		from += copy(buf[from:], piece)
	}
	return buf, f.fill(buf[from:n])
}
