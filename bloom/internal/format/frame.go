package format

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
//	n bytes      the string; of a plain filter bits 53 to 191 are 0, but for the
//	             code of the rate in bits 107 to 116
//	8 bytes      XXH3-64 of all bytes before
//
// A trailer may follow. The header holds a tag of the seed, never the seed: to
// read a seeded filter, one must know it.
const (
	FrameMagic     = "\x89upbloom"
	FrameHeadBytes = len(FrameMagic) + 16
	FrameSumBytes  = 8

	// pieceBytes is how much of a long stream is read at first. With the state of
	// the hash it is less than the 1 MiB that ReadBackup promises.
	pieceBytes = 1<<20 - 16<<10
)

// ErrBadStream is documented by package bloom.
var ErrBadStream = errors.New("bloom: the stream is not a whole saved filter")

func badStreamf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format+": save it again, or use another copy",
		append([]any{ErrBadStream}, args...)...)
}

// badString is the error of a stream whose string is not a filter's. It does not
// speak of a key, as the error of Redis does.
func badString(err error) error {
	if e, ok := err.(*notFilter); ok {
		return badStreamf("%s", e.why)
	}
	return badStreamf("%w", err)
}

// WriteFrame writes the stream of a string: its three words and its cells.
func WriteFrame(w io.Writer, words, cells []byte) (n int64, err error) {
	head := append(make([]byte, 0, FrameHeadBytes), FrameMagic...)
	head = append(head, words[:8]...)
	head = binary.BigEndian.AppendUint64(head, uint64(len(words)+len(cells)))
	var sum xxh3.Hasher
	for _, part := range [][]byte{head, words, cells, nil} {
		if part == nil {
			part = binary.BigEndian.AppendUint64(nil, sum.Sum64())
		}
		k, err := write(w, part)
		n += int64(k)
		if err != nil {
			return n, err
		}
		_, _ = sum.Write(part)
	}
	return n, nil
}

// write refuses a writer that takes less without an error: it would leave a cut
// stream.
func write(w io.Writer, p []byte) (n int, err error) {
	n, err = w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = fault.Errorf("bloom: write of a filter: %w", err)
	}
	return n, err
}

// ReadFrame reads a whole stream and checks its words. It returns the string in a
// padded buffer.
func ReadFrame(r io.Reader) (s State, buf []byte, err error) {
	f := frameReader{r: r}
	var head [FrameHeadBytes]byte
	if err = f.fill(head[:]); err != nil {
		return s, nil, err
	}
	h, n, err := parseHead(head[:])
	if err == nil && h.Scheme.CellBits() > 1 {
		err = badStreamf("it holds a filter of scheme %v, which this package does not read", h.Scheme)
	}
	if err == nil {
		buf, err = f.string(n)
	}
	if err == nil {
		var sum [FrameSumBytes]byte
		if sum, err = f.checksum("its"); err == nil {
			err = f.trailer(sum)
		}
	}
	if err != nil {
		return s, nil, err
	}
	data := buf[:n]
	if !h.HasWord() {
		words, last := [HeaderBytes]byte(data), data[n-1]
		s = SetPlain(h, binary.BigEndian.Uint64(data[BirthOffset/8:])>>lowBits&RateMask, data)
		if words != [HeaderBytes]byte(data) || last != data[n-1] {
			return s, nil, badStreamf("bits of its string are set that are always 0")
		}
		return s, buf, nil
	}
	s, err = Words(h, data)
	if err != nil {
		return s, nil, badString(err)
	}
	if s.Length < s.LeastBytes() || s.Length > s.MaxBytes() {
		return s, nil, badStreamf("its string has %d bytes, and its words say %d to %d", n, s.LeastBytes(), s.MaxBytes())
	}
	return s, buf, nil
}

// SetWords writes the words of a plain filter outside of Redis: the code of the
// rate is all that is left of the birth number.
func SetWords(data []byte, h Header, rate uint64) {
	binary.BigEndian.PutUint64(data, h.Word()<<lowBits)
	binary.BigEndian.PutUint64(data[BirthOffset/8:], rate<<lowBits)
	binary.BigEndian.PutUint64(data[KindOffset/8:], 0)
}

// SetPlain is SetWords for a whole string, and clears the bits behind the last
// cell.
func SetPlain(h Header, rate uint64, data []byte) State {
	SetWords(data, h, rate)
	data[len(data)-1] &= 0xff << (-h.Bits & 7)
	return State{Header: h, Birth: int64(Marker | rate), Length: uint64(len(data))}
}

// Padded returns the length of a buffer for a string of n bytes: each word of the
// cells has eight bytes to load, and the whole is a multiple of eight. What is
// behind the string stays 0.
func Padded(n int) int { return (n+7)&^7 + 8 }

// A frameReader counts and hashes what it reads.
type frameReader struct {
	r   io.Reader
	n   int64
	sum xxh3.Hasher
}

// parseHead reads the header and the length of the string from the first bytes of
// a frame.
func parseHead(head []byte) (h Header, n int, err error) {
	if string(head[:len(FrameMagic)]) != FrameMagic {
		return h, 0, badStreamf("its first bytes are not those of a saved filter")
	}
	word := binary.BigEndian.Uint64(head[len(FrameMagic):])
	if h, err = ParseHeader(word >> lowBits); err != nil {
		return h, 0, badString(err)
	}
	if word<<WordBits != 0 {
		return h, 0, badStreamf("bits of its header are set that are always 0")
	}
	length := binary.BigEndian.Uint64(head[len(FrameMagic)+8:])
	least, most := h.frameBytes()
	switch {
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
func (h Header) frameBytes() (least, most uint64) {
	s := State{Header: h}
	least = Bytes(HeaderBits, h.Bits, h.Scheme.CellBits())
	if h.Kind == Window {
		s.Word = WindowWord{Panes: MaxPanes}.Word()
	}
	return least, max(least, s.MaxBytes())
}

// fill reads exactly as much as p holds.
func (f *frameReader) fill(p []byte) error {
	k, err := io.ReadFull(f.r, p)
	f.n += int64(k)
	_, _ = f.sum.Write(p[:k])
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return badStreamf("it ends after %d bytes: %w", f.n, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return fault.Errorf("bloom: read of a filter: %w", err)
	}
	return nil
}

// string reads n bytes into a padded buffer. A stream is not believed to be as
// long as it says: until half of it has come, it is read in pieces.
func (f *frameReader) string(n int) ([]byte, error) {
	var pieces [][]byte
	got := 0
	for n > pieceBytes && got < n/2 {
		piece := make([]byte, min(pieceBytes, n-got))
		if err := f.fill(piece); err != nil {
			return nil, err
		}
		pieces = append(pieces, piece)
		got += len(piece)
	}
	buf := make([]byte, Padded(n))
	from := 0
	for _, piece := range pieces {
		from += copy(buf[from:], piece)
	}
	return buf, f.fill(buf[from:n])
}

// checksum reads the checksum of what came before, and compares it.
func (f *frameReader) checksum(whose string) (sum [FrameSumBytes]byte, err error) {
	want := f.sum.Sum64()
	if err := f.fill(sum[:]); err != nil {
		return sum, err
	}
	if binary.BigEndian.Uint64(sum[:]) != want {
		return sum, badStreamf("%s checksum is wrong, so that some of its bytes were changed", whose)
	}
	return sum, nil
}

// A program may write a note of its own behind a frame, about where the filter
// came from. It is of no meaning to a filter, but a frame has it whole or not at
// all. All numbers are big-endian:
//
//	bytes 0-7   "\x89upbnote"
//	bytes 8-15  n, the length of the note
//	n bytes     the note, a JSON object
//	8 bytes     XXH3-64 of all bytes before, from the frame's checksum on
const (
	TrailerMagic     = "\x89upbnote"
	trailerHeadBytes = len(TrailerMagic) + 8

	// MaxNoteBytes bounds what a reader allocates.
	MaxNoteBytes = 64 << 10
)

// ErrNoteTooLong is the error of a note above MaxNoteBytes.
var ErrNoteTooLong = errors.New("bloom: the note is too long for a stream")

// WriteNoted writes a stream by frame, and a note behind it.
func WriteNoted(w io.Writer, frame io.WriterTo, note []byte) (n int64, err error) {
	if len(note) > MaxNoteBytes {
		return 0, ErrNoteTooLong
	}
	last := lastBytes{w: w}
	n, err = frame.WriteTo(&last)
	if err != nil {
		return n, err
	}
	t := append(last.sum[:len(last.sum):len(last.sum)], TrailerMagic...)
	t = binary.BigEndian.AppendUint64(t, uint64(len(note)))
	t = append(t, note...)
	t = binary.BigEndian.AppendUint64(t, xxh3.Hash(t))[FrameSumBytes:]
	k, err := write(w, t)
	return n + int64(k), err
}

// lastBytes keeps the last bytes written to w, a frame's checksum.
type lastBytes struct {
	w   io.Writer
	sum [FrameSumBytes]byte
}

func (l *lastBytes) Write(p []byte) (int, error) {
	end := append(l.sum[:len(l.sum):len(l.sum)], p[max(0, len(p)-FrameSumBytes):]...)
	copy(l.sum[:], end[len(end)-FrameSumBytes:])
	return l.w.Write(p)
}

// Note returns the note in a trailer that a reader has checked.
func Note(trailer []byte) []byte {
	return trailer[trailerHeadBytes : len(trailer)-FrameSumBytes]
}

// trailer checks what follows a frame with this checksum, if anything does.
func (f *frameReader) trailer(frame [FrameSumBytes]byte) error {
	f.sum.Reset()
	_, _ = f.sum.Write(frame[:])
	var head [trailerHeadBytes]byte
	k, err := io.ReadFull(f.r, head[:])
	f.n += int64(k)
	switch {
	case err == io.EOF:
		return nil
	case err != nil && err != io.ErrUnexpectedEOF:
		return fault.Errorf("bloom: read of a filter: %w", err)
	case !bytes.HasPrefix(head[:k], []byte(TrailerMagic)):
		return badStreamf("more bytes follow its end")
	case err != nil:
		return badStreamf("it ends after %d bytes: %w", f.n, err)
	}
	_, _ = f.sum.Write(head[:])
	n := binary.BigEndian.Uint64(head[len(TrailerMagic):])
	if n > MaxNoteBytes {
		return badStreamf("it says that its note has %d bytes, more than %d", n, MaxNoteBytes)
	}
	if err := f.fill(make([]byte, n)); err != nil {
		return err
	}
	if _, err := f.checksum("its note's"); err != nil {
		return err
	}
	k, err = io.ReadFull(f.r, head[:1])
	if k > 0 {
		return badStreamf("more bytes follow its end")
	}
	if err != io.EOF {
		return fault.Errorf("bloom: read of a filter: %w", err)
	}
	return nil
}
