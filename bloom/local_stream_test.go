package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zeebo/xxh3"
)

func marshal(t testing.TB, l *Local) []byte {
	t.Helper()
	b, err := l.MarshalBinary()
	noError(t, err)
	return b
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
	body := bytes.Clone(frame[:len(frame)-frameSumBytes])
	return binary.BigEndian.AppendUint64(body, xxh3.Hash(body))
}

func TestLocalStreamRoundTrip(t *testing.T) {
	for _, g := range localGeometries() {
		l := filled(g, 100)
		frame := marshal(t, l)
		if len(frame) != len(l.raw())+32 {
			t.Errorf("%v: a frame of %d bytes around %d", g, len(frame), len(l.raw()))
		}
		var b bytes.Buffer
		if n, err := l.WriteTo(&b); err != nil || n != int64(len(frame)) || !bytes.Equal(b.Bytes(), frame) {
			t.Errorf("%v: WriteTo: %d, %v, want the %d bytes of MarshalBinary", g, n, err, len(frame))
		}
		same := NewLocal(g)
		same.Add("is replaced")
		n, err := same.ReadFrom(iotest.OneByteReader(bytes.NewReader(frame)))
		if err != nil || n != int64(len(frame)) || !bytes.Equal(same.buf, l.buf) {
			t.Errorf("%v: ReadFrom: %d, %v", g, n, err)
		}
		read, err := ReadLocal(bytes.NewReader(frame), g.Seed)
		if err != nil || !bytes.Equal(read.buf, l.buf) || read.Geometry() != g {
			t.Errorf("%v: ReadLocal: %v", g, err)
		}
		var zero Local
		err = zero.UnmarshalBinary(frame)
		if g.Seed == 0 && (err != nil || !bytes.Equal(zero.buf, l.buf) || zero.Geometry() != g) {
			t.Errorf("%v: into a zero Local: %v", g, err)
		}
		if err == nil && zero.Exists("user 1") != l.Exists("user 1") {
			t.Errorf("%v: another answer after the round trip", g)
		}
	}
}

// A stream of megabytes is read in pieces first.
func TestLocalStreamOfMegabytes(t *testing.T) {
	l := filled(Geometry{Bits: 53 * 700_000, Hashes: 4}, 1000)
	var zero Local
	n, err := zero.ReadFrom(iotest.HalfReader(bytes.NewReader(marshal(t, l))))
	if err != nil || n != int64(l.size+32) || !bytes.Equal(zero.buf, l.buf) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// The stream has the seed's tag, but not the seed.
func TestLocalStreamNeedsItsSeed(t *testing.T) {
	g := Geometry{Bits: 53 * 40, Hashes: 4, Seed: 0x1122334455667788}
	frame := marshal(t, filled(g, 10))
	for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
		if bytes.Contains(frame, order.AppendUint64(nil, g.Seed)) {
			t.Error("the stream holds the seed")
		}
	}
	unseeded, other := g, g
	unseeded.Seed, other.Seed = 0, 5
	for name, read := range map[string]func() error{
		"ReadLocal without": func() error { _, err := ReadLocal(bytes.NewReader(frame), 0); return err },
		"ReadLocal, other":  func() error { _, err := ReadLocal(bytes.NewReader(frame), 5); return err },
		"zero Local":        func() error { return new(Local).UnmarshalBinary(frame) },
		"without":           func() error { return NewLocal(unseeded).UnmarshalBinary(frame) },
		"other":             func() error { return NewLocal(other).UnmarshalBinary(frame) },
	} {
		err := read()
		var m *MismatchError
		if !errors.As(err, &m) || !m.OtherSeed || !strings.Contains(err.Error(), "another seed") {
			t.Errorf("%s: %v, want a MismatchError about the seed", name, err)
		}
	}
}

func TestLocalStreamOfAnotherGeometry(t *testing.T) {
	frame := marshal(t, filled(Geometry{Bits: 53 * 40, Hashes: 4}, 10))
	l := filled(Geometry{Bits: 53 * 41, Hashes: 4}, 5)
	before := l.Bytes()
	err := l.UnmarshalBinary(frame)
	var m *MismatchError
	if !errors.As(err, &m) || m.Got.Bits != 53*40 || m.Want.Bits != 53*41 || m.OtherSeed {
		t.Errorf("%v, want a MismatchError", err)
	}
	if !bytes.Equal(l.Bytes(), before) {
		t.Error("the filter was changed")
	}
}

// Every cut and every changed byte is an error. The filter stays unchanged.
func TestLocalStreamDamage(t *testing.T) {
	g := Geometry{Bits: 53 * 7, Hashes: 4}
	frame := marshal(t, filled(g, 5))
	l := filled(g, 3)
	before := l.Bytes()
	try := func(what string, at int, data []byte) {
		t.Helper()
		_, err := ReadLocal(bytes.NewReader(data), 0)
		for _, err := range []error{l.UnmarshalBinary(data), err} {
			// Changed bytes must not pass for another seed or geometry.
			var m *MismatchError
			if !errors.Is(err, ErrBadStream) && !(what == "sealed damage" && errors.As(err, &m)) {
				t.Errorf("%s at %d: %v", what, at, err)
			}
		}
		if !bytes.Equal(l.Bytes(), before) {
			t.Fatalf("%s at %d changed the filter", what, at)
		}
	}
	for i := range frame {
		err := l.UnmarshalBinary(frame[:i])
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
	try("the raw string", 0, l.Bytes())
	try("text", 0, []byte(strings.Repeat("not a filter at all ", 10)))

	// The checksum is right, but no Local writes such bits.
	for at, bits := range map[int]byte{
		len(frameMagic) + 7:               0x01, // bits 53-63 of the header
		frameHeadBytes + 7:                0x01, // the same in the string
		frameHeadBytes + 8:                0x80, // the second word
		frameHeadBytes + 15:               0x01, // the settled bit
		frameHeadBytes + 16:               0x80, // the third word
		frameHeadBytes + headerBytes - 1:  0x01, // its last bit
		len(frame) - frameSumBytes - 1:    0x10, // behind the last cell
		frameHeadBytes - 1:                0x01, // the length
		frameHeadBytes - 8:                0x40, // the length, far too long
		len(frameMagic):                   0x20, // the kind
		frameHeadBytes + len(frame)%2 + 1: 0x04, // the string's header
	} {
		bad := bytes.Clone(frame)
		bad[at] ^= bits
		try("sealed damage", at, sealed(bad))
	}
}

// A stream that claims to be long takes no memory for missing bytes. Reading
// it allocates at most 1 MiB plus three times what comes.
func TestLocalStreamBelievesNoLength(t *testing.T) {
	const mib = 1 << 20
	huge := Geometry{Bits: maxCells(SchemeBlocked, LayoutHeaded), Hashes: 4}
	head := []byte(frameMagic)
	head = binary.BigEndian.AppendUint64(head, encodeHeader(KindFilter, huge)<<11)
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
		frame := marshal(t, NewLocal(Geometry{Bits: 53 * words, Hashes: 4}))
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
	frame := marshal(t, l)
	for _, after := range []int{0, 10, 100, len(frame)} {
		r := io.MultiReader(bytes.NewReader(frame[:after]), iotest.ErrReader(errDisk))
		n, err := new(Local).ReadFrom(r)
		if !errors.Is(err, errDisk) || errors.Is(err, ErrBadStream) || n != int64(after) {
			t.Errorf("read after %d bytes: %d, %v", after, n, err)
		}
		w := &failingWriter{room: after}
		if after == len(frame) {
			w.room--
		}
		n, err = l.WriteTo(w)
		if !errors.Is(err, errDisk) || n > int64(after) {
			t.Errorf("write after %d bytes: %d, %v", after, n, err)
		}
	}
}

type failingWriter struct{ room int }

func (w *failingWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	if w.room -= n; n < len(p) {
		return n, errDisk
	}
	return n, nil
}

// Any bytes are refused, or read as a filter that writes the same bytes again.
func FuzzLocalStream(f *testing.F) {
	for _, g := range localGeometries() {
		frame := marshal(f, filled(g, 3))
		if len(frame) < 400 {
			f.Add(frame, g.Seed)
			f.Add(frame[:len(frame)-9], g.Seed)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		if len(data) >= frameHeadBytes+frameSumBytes {
			data = sealed(data) // to test more than the checksum
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
		if again := marshal(t, l); !bytes.Equal(again, data) {
			t.Fatalf("written again\n%x, want\n%x", again, data)
		}
		l.Add("item")
		if !l.Exists("item") || l.setBits() > l.Geometry().Bits {
			t.Fatal("an item that was added is not found, or bits behind the last cell are set")
		}
	})
}
