package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func streamOf(t testing.TB, l *Local) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := l.WriteTo(&b)
	noError(t, err)
	if n != int64(b.Len()) {
		t.Errorf("WriteTo says %d bytes, and wrote %d", n, b.Len())
	}
	return b.Bytes()
}

func filled(g Geometry, n int) *Local {
	l := NewLocal(g)
	for i := range n {
		l.Add(nthItem("user", i))
	}
	return l
}

// sealed sets the right checksum at the end of a frame.
func sealed(frame []byte) []byte {
	body := bytes.Clone(frame[:len(frame)-format.FrameSumBytes])
	return binary.BigEndian.AppendUint64(body, xxh3.Hash(body))
}

func TestLocalStreamRoundTrip(t *testing.T) {
	for _, g := range localGeometries() {
		l := filled(g, 100)
		frame := streamOf(t, l)
		if len(frame) != len(l.raw())+32 {
			t.Errorf("%v: a frame of %d bytes around %d", g, len(frame), len(l.raw()))
		}
		read, err := ReadLocal(iotest.OneByteReader(bytes.NewReader(frame)), g.Seed)
		if err != nil || !bytes.Equal(read.buf, l.buf) || read.Geometry() != g {
			t.Fatalf("%v: ReadLocal: %v", g, err)
		}
		if !reflect.DeepEqual(read.Stats(), l.Stats()) || read.Stats().Capacity != 0 {
			t.Errorf("%v: Stats %+v, want %+v", g, read.Stats(), l.Stats())
		}
		read.Add("new")
		if !read.Exists("new") || !read.Exists("user1") {
			t.Errorf("%v: an item that was added is not found", g)
		}
	}
}

// A stream of megabytes is read in pieces first.
func TestLocalStreamOfMegabytes(t *testing.T) {
	l := filled(Geometry{Bits: 53 * 700_000, Hashes: 4}, 1000)
	read, err := ReadLocal(iotest.HalfReader(bytes.NewReader(streamOf(t, l))), 0)
	if err != nil || !bytes.Equal(read.buf, l.buf) {
		t.Error(err)
	}
}

// The stream has the seed's tag, but not the seed.
func TestLocalStreamNeedsItsSeed(t *testing.T) {
	g := Geometry{Bits: 53 * 40, Hashes: 4, Seed: 0x1122334455667788}
	frame := streamOf(t, filled(g, 10))
	for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
		if bytes.Contains(frame, order.AppendUint64(nil, g.Seed)) {
			t.Error("the stream holds the seed")
		}
	}
	for _, seed := range []uint64{0, 5} {
		_, err := ReadLocal(bytes.NewReader(frame), seed)
		if m, is := errors.AsType[*MismatchError](err); !is || !m.OtherSeed || !strings.Contains(err.Error(), "another seed") {
			t.Errorf("with seed %d: %v, want a MismatchError about the seed", seed, err)
		}
	}
}

// A Local keeps the rate in a stream, and what it does not know of it.
func TestLocalStreamKeepsTheRate(t *testing.T) {
	g, err := Config{Capacity: 5000, FPRate: 0.01}.Geometry()
	noError(t, err)
	l := filled(g, 100)
	l.rate = cells.RateCode(0.01)
	if s := l.Stats(); s.Capacity < 4950 || s.Capacity > 5050 || s.FPRate < 0.0099 || s.FPRate > 0.0101 {
		t.Errorf("%+v, want a Capacity of 5,000 at 1%%", s)
	}
	read, err := ReadLocal(bytes.NewReader(streamOf(t, l)), 0)
	noError(t, err)
	if !reflect.DeepEqual(read.Stats(), l.Stats()) || !reflect.DeepEqual(read.Clone().Stats(), l.Stats()) {
		t.Errorf("read %+v, its Clone %+v, want %+v", read.Stats(), read.Clone().Stats(), l.Stats())
	}
	other := filled(g, 200)
	noError(t, other.Merge(read))
	if s := other.Stats(); s.Capacity != 0 {
		t.Errorf("a Merge brought a Capacity of %d", s.Capacity)
	}
	noError(t, read.Merge(other))
	if s := read.Stats(); s.Capacity != l.Stats().Capacity {
		t.Errorf("a Merge changed the Capacity to %d", s.Capacity)
	}
	for at, b := range read.Bytes()[8:format.HeaderBytes] {
		if b != 0 {
			t.Errorf("byte %d of the string is %#x, want 0", 8+at, b)
		}
	}
	// Codes that no rate has are kept, and mean nothing.
	for _, code := range []uint64{0, 1, 64, 994, 1023} {
		l.rate = code
		frame := streamOf(t, l)
		read, err := ReadLocal(bytes.NewReader(frame), 0)
		if err != nil || read.Stats().Capacity != 0 || !bytes.Equal(streamOf(t, read), frame) {
			t.Errorf("code %d: Capacity %d, %v", code, read.Stats().Capacity, err)
		}
	}
}

// Every cut and every changed byte is an error.
func TestLocalStreamDamage(t *testing.T) {
	g := Geometry{Bits: 53 * 7, Hashes: 4}
	frame := streamOf(t, filled(g, 5))
	try := func(what string, at int, data []byte) {
		t.Helper()
		if _, err := ReadLocal(bytes.NewReader(data), 0); !errors.Is(err, ErrBadStream) {
			t.Errorf("%s at %d: %v", what, at, err)
		}
	}
	for i := range frame {
		_, err := ReadLocal(bytes.NewReader(frame[:i]), 0)
		if !errors.Is(err, ErrBadStream) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", i, err)
		}
		try("cut", i, frame[:i])
		for bit := range 8 {
			bad := bytes.Clone(frame)
			bad[i] ^= 1 << bit
			try("damage", i, bad)
		}
	}
	try("one byte more", len(frame), append(bytes.Clone(frame), 0))
	try("another stream", len(frame), append(bytes.Clone(frame), frame...))
	try("the raw string", 0, filled(g, 3).Bytes())
	try("text", 0, []byte(strings.Repeat("not a filter at all ", 10)))

	// The checksum is right, but no Local writes such bits.
	for at, bits := range map[int]byte{
		len(format.FrameMagic) + 7:                     0x01, // bits 53-63 of the header
		format.FrameHeadBytes + 7:                      0x01, // the same in the string
		format.FrameHeadBytes + 8:                      0x80, // the first bit of the birth number
		format.FrameHeadBytes + 13:                     0x20, // the last of its random bits
		format.FrameHeadBytes + 14:                     0x04, // behind the rate
		format.FrameHeadBytes + 15:                     0x01, // the settled bit
		format.FrameHeadBytes + 16:                     0x80, // the third word
		format.FrameHeadBytes + format.HeaderBytes - 1: 0x01, // its last bit
		len(frame) - format.FrameSumBytes - 1:          0x10, // behind the last cell
		format.FrameHeadBytes - 1:                      0x01, // the length
		format.FrameHeadBytes - 8:                      0x40, // the length, far too long
		len(format.FrameMagic):                         0x20, // the kind
		format.FrameHeadBytes + len(frame)%2 + 1:       0x04, // the string's header
	} {
		bad := bytes.Clone(frame)
		bad[at] ^= bits
		try("sealed damage", at, sealed(bad))
	}
}

// A note that a program has written behind a stream is taken whole, and nothing
// else is: no part of it, none of another stream, nothing behind it.
func TestStreamWithANote(t *testing.T) {
	noted := func(n int, note string) []byte {
		var b bytes.Buffer
		_, err := format.WriteNoted(&b, filled(Geometry{Bits: 53 * 7, Hashes: 4}, n), []byte(note))
		noError(t, err)
		return b.Bytes()
	}
	note := `{"key":"a \u0001 key"}`
	stream, frame := noted(5, note), streamOf(t, filled(Geometry{Bits: 53 * 7, Hashes: 4}, 5))
	if !bytes.HasPrefix(stream, frame) || string(format.Note(stream[len(frame):])) != note {
		t.Fatalf("%x, want the stream, and then the note", stream)
	}
	for what, good := range map[string][]byte{
		"a note": stream, "an empty note": noted(5, ""), "the longest": noted(5, strings.Repeat("x", format.MaxNoteBytes)),
	} {
		l, err := ReadLocal(bytes.NewReader(good), 0)
		noError(t, err)
		if got := streamOf(t, l); !bytes.Equal(got, frame) {
			t.Errorf("%s: read and written as %x, want %x", what, got, frame)
		}
		_, err = ReadBackup(iotest.OneByteReader(bytes.NewReader(good)))
		noError(t, err)
	}
	var nothing bytes.Buffer
	tooLong := make([]byte, format.MaxNoteBytes+1)
	_, err := format.WriteNoted(&nothing, filled(Geometry{Bits: 53 * 7, Hashes: 4}, 5), tooLong)
	if err == nil || nothing.Len() > 0 {
		t.Errorf("a note that is too long: %v, and %d bytes were written", err, nothing.Len())
	}

	refused := func(what string, parts ...[]byte) {
		t.Helper()
		if _, err := ReadBackup(bytes.NewReader(slices.Concat(parts...))); !errors.Is(err, ErrBadStream) {
			t.Errorf("%s: %v, want ErrBadStream", what, err)
		}
	}
	for i := len(frame) + 1; i < len(stream); i++ {
		refused(fmt.Sprintf("cut at %d", i), stream[:i])
	}
	for i := range stream {
		bad := bytes.Clone(stream)
		bad[i] ^= 1 << (i % 8)
		refused(fmt.Sprintf("damage at %d", i), bad)
	}
	refused("two streams", frame, frame)
	refused("two streams, the first with a note", stream, frame)
	refused("two streams with notes", stream, stream)
	refused("two notes", stream, stream[len(frame):])
	refused("a byte more", stream, []byte{'\n'})
	refused("the note of another stream", frame, noted(6, note)[len(frame):])
	long := binary.BigEndian.AppendUint64([]byte(format.TrailerMagic), format.MaxNoteBytes+1)
	long = append(long, make([]byte, format.MaxNoteBytes+1)...)
	sum := xxh3.Hash(slices.Concat(frame[len(frame)-format.FrameSumBytes:], long))
	refused("a note that is too long", frame, long, binary.BigEndian.AppendUint64(nil, sum))
}

// Counters have a place in the format, and no type here reads them.
func TestStreamOfCounters(t *testing.T) {
	data := make([]byte, 32)
	format.SetWords(data, format.Header{Scheme: format.Counters8, Hashes: 4, Bits: 8}, 0)
	var stream bytes.Buffer
	_, err := format.WriteFrame(&stream, data[:format.HeaderBytes], data[format.HeaderBytes:])
	noError(t, err)
	if _, err := ReadBackup(&stream); !errors.Is(err, ErrBadStream) || !strings.Contains(err.Error(), "xxh3/8-bit") {
		t.Errorf("ReadBackup: %v, want ErrBadStream that names the scheme", err)
	}
	s := upstashtest.NewServer(t)
	_, err = s.Exec("SET", "key", string(data))
	noError(t, err)
	_, err = TakeBackup(t.Context(), s.Client(), "key")
	if !errors.Is(err, ErrNotFilter) || !strings.Contains(err.Error(), "xxh3/8-bit") {
		t.Errorf("TakeBackup: %v, want ErrNotFilter that names the scheme", err)
	}
}

// A stream that claims to be long takes no memory for missing bytes. Reading
// it allocates at most 1 MiB plus three times what comes.
func TestLocalStreamBelievesNoLength(t *testing.T) {
	const mib = 1 << 20
	huge := Geometry{Bits: format.Scheme(SchemeBlocked).MaxCells(format.HeaderBits), Hashes: 4}
	head := []byte(format.FrameMagic)
	head = binary.BigEndian.AppendUint64(head, huge.header(KindFilter).Word()<<11)
	head = binary.BigEndian.AppendUint64(head, huge.Bytes(LayoutHeaded))
	check := func(what string, r io.Reader, size int, want error) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadLocal(r, 0)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(3*size+mib) {
			t.Errorf("%s: %d bytes of a stream took %d of memory", what, size, took)
		}
	}
	for _, n := range []int{0, 100, mib - 1, mib, mib + 1, 2 * mib, 4 * mib, 5*mib + 7, 8 * mib} {
		r := io.MultiReader(bytes.NewReader(head), io.LimitReader(zeros{}, int64(n)))
		check(fmt.Sprintf("cut after %d bytes", n), r, len(head)+n, ErrBadStream)
	}
	for _, words := range []uint64{32, 150_000, 160_000, 500_000, 1_300_000} {
		frame := streamOf(t, NewLocal(Geometry{Bits: 53 * words, Hashes: 4}))
		check(fmt.Sprintf("whole, of %d words", words), bytes.NewReader(frame), len(frame), nil)
		half := frame[:len(frame)/2]
		check(fmt.Sprintf("half of %d words", words), bytes.NewReader(half), len(half), ErrBadStream)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

var errDisk = errors.New("disk is on fire")

func TestLocalStreamPassesErrorsOn(t *testing.T) {
	l := filled(Geometry{Bits: 53 * 40, Hashes: 4}, 10)
	frame := streamOf(t, l)
	for _, after := range []int{0, 10, 100, len(frame)} {
		r := io.MultiReader(bytes.NewReader(frame[:after]), iotest.ErrReader(errDisk))
		_, err := ReadLocal(r, 0)
		if !errors.Is(err, errDisk) || errors.Is(err, ErrBadStream) {
			t.Errorf("read after %d bytes: %v", after, err)
		}
		room := min(after, len(frame)-1)
		for want, w := range map[error]*failingWriter{errDisk: {room, errDisk}, io.ErrShortWrite: {room, nil}} {
			if n, err := l.WriteTo(w); !errors.Is(err, want) || n != int64(room) {
				t.Errorf("write after %d bytes: %d, %v; want %v", room, n, err, want)
			}
		}
	}
}

// failingWriter has room for some bytes. Some writers then return no error.
type failingWriter struct {
	room int
	err  error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	w.room -= n
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}

// sealedNote puts the right checksums into a stream: its own, or those of the
// frame and of what follows.
func sealedNote(data []byte) []byte {
	const head = format.FrameHeadBytes
	n := binary.BigEndian.Uint64(data[head-8:])
	if room := len(data) - head - 2*format.FrameSumBytes; room < 0 || n > uint64(room) {
		return sealed(data)
	}
	end := head + int(n) + format.FrameSumBytes
	if end == len(data) {
		return sealed(data)
	}
	frame := sealed(data[:end:end])
	return append(frame[:end-8:end-8], sealed(slices.Concat(frame[end-8:], data[end:]))...)
}

// Any bytes are refused, or read as a filter that writes the same bytes again, but
// for a note behind them.
func FuzzLocalStream(f *testing.F) {
	for _, g := range localGeometries() {
		frame := streamOf(f, filled(g, 3))
		if len(frame) < 400 {
			f.Add(frame, g.Seed)
			f.Add(frame[:len(frame)-9], g.Seed)
			var noted bytes.Buffer
			_, err := format.WriteNoted(&noted, filled(g, 3), []byte(`{"key":"a"}`))
			noError(f, err)
			f.Add(noted.Bytes(), g.Seed)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		if len(data) >= format.FrameHeadBytes+format.FrameSumBytes {
			data = sealedNote(data) // to test more than the checksum
		}
		l, err := ReadLocal(bytes.NewReader(data), seed)
		var m *MismatchError
		switch {
		case err == nil:
		case errors.Is(err, ErrBadStream), errors.As(err, &m):
			return
		default:
			t.Fatalf("%v, want ErrBadStream or a MismatchError", err)
		}
		if l.Geometry().impossible() != "" {
			t.Fatalf("read %v, want a possible geometry", l)
		}
		again := streamOf(t, l)
		if after, ok := bytes.CutPrefix(data, again); !ok || len(after) > 0 && !bytes.HasPrefix(after, []byte(format.TrailerMagic)) {
			t.Fatalf("written again\n%x, want\n%x", again, data)
		}
		l.Add("item")
		if !l.Exists("item") || l.setBits() > l.Geometry().Bits {
			t.Fatal("an item that was added is not found, or bits behind the last cell are set")
		}
	})
}
