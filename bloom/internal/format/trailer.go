package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom/internal/fault"
)

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
