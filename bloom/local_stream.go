package bloom

import (
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
//	n bytes      the string; of a plain filter bits 53 to 191 are 0, but for the
//	             code of the rate in bits 107 to 116
//	8 bytes      XXH3-64 of all bytes before
//
// The header holds a tag of the seed, never the seed: to read a seeded filter,
// one must know it.
const (
	frameMagic     = "\x89upbloom"
	frameHeadBytes = len(frameMagic) + 16
	frameSumBytes  = 8

	// streamPiece is how much of a long stream is read at first. With the state
	// of the hash it is less than the 1 MiB of ReadBackup's promise.
	streamPiece = 1<<20 - 16<<10
)

// ErrBadStream is returned when a stream is not a whole saved filter: it is
// damaged, cut short, too long or something else. Nothing of it was taken.
var ErrBadStream = errors.New("bloom: the stream is not a whole saved filter")

func badStreamf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format+": save it again, or use another copy",
		append([]any{ErrBadStream}, args...)...)
}

// ReadLocal reads a plain filter as [ReadBackup] does. Another type or seed is a
// [*MismatchError]; another seed is noticed 126 times in 127.
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

// WriteTo writes a stream for [ReadLocal] and [ReadBackup]: 32 bytes more than
// [Local.Bytes], with the Capacity if it is known, and a checksum at the end. It
// holds no seed.
func (l *Local) WriteTo(w io.Writer) (n int64, err error) {
	if l.size == 0 {
		return 0, errors.New("bloom: a zero Local has nothing to write: make it with NewLocal")
	}
	own := [headerBytes]byte(l.buf)
	store(own[:], 8, l.rate<<rateShift)
	return writeFrame(w, own[:], l.raw()[headerBytes:])
}

// writeFrame writes the stream of a string: its three words and its cells.
func writeFrame(w io.Writer, words, body []byte) (n int64, err error) {
	head := append(make([]byte, 0, frameHeadBytes), frameMagic...)
	head = append(head, words[:8]...)
	head = binary.BigEndian.AppendUint64(head, uint64(len(words)+len(body)))
	var sum xxh3.Hasher
	for _, part := range [][]byte{head, words, body, nil} {
		if part == nil {
			part = binary.BigEndian.AppendUint64(nil, sum.Sum64())
		}
		k, err := w.Write(part)
		if n += int64(k); err != nil {
			return n, fault.Errorf("bloom: write of a filter: %w", err)
		}
		_, _ = sum.Write(part)
	}
	return n, nil
}

// A frameReader counts and hashes what it reads.
type frameReader struct {
	r   io.Reader
	n   int64
	sum xxh3.Hasher
}

// frame reads a whole stream with a string of n bytes, and returns it in a padded
// buffer.
func (f *frameReader) frame() (h headerInfo, n int, buf []byte, err error) {
	var head [frameHeadBytes]byte
	if err = f.fill(head[:]); err == nil {
		h, n, err = parseFrameHead(head[:])
	}
	if err == nil {
		buf, err = f.string(n)
	}
	if err == nil {
		err = f.end()
	}
	return h, n, buf, err
}

// end reads what follows the string, and checks the checksum.
func (f *frameReader) end() error {
	want := f.sum.Sum64()
	var end [frameSumBytes + 1]byte
	if err := f.fill(end[:frameSumBytes]); err != nil {
		return err
	}
	if binary.BigEndian.Uint64(end[:]) != want {
		return badStreamf("its checksum is wrong, so that some of its bytes were changed")
	}
	switch k, err := io.ReadFull(f.r, end[:1]); {
	case k > 0:
		return badStreamf("more bytes follow its end")
	case err != io.EOF:
		return fault.Errorf("bloom: read of a filter: %w", err)
	}
	return nil
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
