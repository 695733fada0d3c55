package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

// filter is a plain filter of 53 cells, in 31 bytes.
var filter = Header{Bits: 53, Hashes: 2}

// stringOf returns a string of n bytes with these words.
func stringOf(h Header, birth, word uint64, n int) []byte {
	data := make([]byte, n)
	binary.BigEndian.PutUint64(data, h.Word()<<lowBits)
	binary.BigEndian.PutUint64(data[BirthOffset/8:], birth<<lowBits)
	binary.BigEndian.PutUint64(data[KindOffset/8:], word<<lowBits)
	return data
}

// streamOf returns a frame around anything, with the right checksum.
func streamOf(data []byte) []byte {
	s := append([]byte(FrameMagic), data[:8]...)
	s = binary.BigEndian.AppendUint64(s, uint64(len(data)))
	s = append(s, data...)
	return binary.BigEndian.AppendUint64(s, xxh3.Hash(s))
}

// taker takes so many bytes, and then fails, or says nothing.
type taker struct {
	room int
	err  error
}

func (w *taker) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	w.room -= n
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}

// A write of a stream fails if its writer takes less.
func TestFrameIsWrittenWhole(t *testing.T) {
	data, failed := stringOf(filter, 0, 0, 31), errors.New("no room")
	var whole bytes.Buffer
	n, err := WriteNoted(&whole, frame(data), []byte("{}"))
	if err != nil || int(n) != whole.Len() {
		t.Fatalf("WriteNoted = %d, %v; %d bytes", n, err, whole.Len())
	}
	for room := range whole.Len() {
		for want, silent := range map[error]error{failed: failed, io.ErrShortWrite: nil} {
			if _, err := WriteNoted(&taker{room, silent}, frame(data), []byte("{}")); !errors.Is(err, want) {
				t.Errorf("room for %d bytes: %v, want %v", room, err, want)
			}
		}
	}
}

// frame writes its bytes as a stream.
type frame []byte

func (f frame) WriteTo(w io.Writer) (int64, error) {
	return WriteFrame(w, f[:HeaderBytes], f[HeaderBytes:])
}

// A stream of each kind is read whole, with a note behind it or without one, and
// one of several megabytes.
func TestReadFrame(t *testing.T) {
	window := Header{Kind: Window, Bits: 53, Hashes: 2}
	long := Header{Bits: 24_000_000, Hashes: 7, Scheme: XXH3}
	for name, data := range map[string][]byte{
		"filter": stringOf(filter, 0, 0, 31),
		"window": stringOf(window, Marker, uint64(WindowWord{Panes: 3, Seconds: 10}.Word()), 24+3*7),
		"shard":  stringOf(Header{Kind: Shard, Bits: 53, Hashes: 2}, Marker, uint64(ShardWord{Count: 2, Index: 1}.Word()), 31),
		"long":   stringOf(long, 0, 0, 24+3_000_000),
	} {
		data[24] = 0x12
		for _, note := range []string{"", `{"a":1}`} {
			var stream bytes.Buffer
			if _, err := WriteNoted(&stream, frame(data), []byte(note)); err != nil {
				t.Fatal(err)
			}
			s, got, err := ReadFrame(&stream)
			if err != nil || !bytes.Equal(got[:len(data)], data) || s.Length != uint64(len(data)) {
				t.Errorf("%s with the note %q: %+v, %v", name, note, s, err)
			}
		}
		if _, _, err := ReadFrame(bytes.NewReader(streamOf(data))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is no whole stream says how.
func TestReadFrameRefuses(t *testing.T) {
	window := Header{Kind: Window, Bits: 53, Hashes: 2}
	layers := Header{Kind: Layers, Bits: 53, Hashes: 2}
	word := func(panes, seconds int) uint64 {
		return uint64(WindowWord{Panes: panes, Seconds: uint64(seconds)}.Word())
	}
	whole := streamOf(stringOf(filter, 0, 0, 31))
	set := func(data []byte, at int, bits byte) []byte {
		data[at] |= bits
		return data
	}
	for name, c := range map[string]struct {
		stream []byte
		says   string
	}{
		"nothing":            {nil, "ends after 0 bytes"},
		"half a head":        {whole[:12], "ends after 12 bytes"},
		"half a string":      {whole[:40], "ends after 40 bytes"},
		"no checksum":        {whole[:len(whole)-8], "ends after"},
		"half a checksum":    {whole[:len(whole)-1], "ends after"},
		"another magic":      {append([]byte{'x'}, whole[1:]...), "first bytes"},
		"another byte":       {append(append([]byte{}, whole[:30]...), append([]byte{1}, whole[31:]...)...), "checksum is wrong"},
		"one byte more":      {append(append([]byte{}, whole...), 0x89), "more bytes follow"},
		"half a note":        {append(append([]byte{}, whole...), TrailerMagic...), "ends after"},
		"bytes of no note":   {append(append([]byte{}, whole...), "xx"...), "more bytes follow"},
		"counters":           {streamOf(stringOf(Header{Bits: 54, Hashes: 2, Scheme: Counters4}, 0, 0, 51)), "does not read"},
		"counters, and bits": {streamOf(set(stringOf(Header{Bits: 54, Hashes: 2, Scheme: Counters4}, 0, 0, 51), 7, 1)), "bits of its header"},
		"shorter":            {streamOf(stringOf(filter, 0, 0, 30)), "has 30 bytes, and its geometry 31"},
		"longer":             {streamOf(stringOf(filter, 0, 0, 32)), "has 32 bytes, and its geometry 31"},
		"a birth number":     {streamOf(stringOf(filter, Marker, 0, 31)), "always 0"},
		"bits at the end":    {streamOf(set(stringOf(filter, 0, 0, 31), 30, 1)), "always 0"},
		"a window's length":  {streamOf(stringOf(window, Marker, word(4, 10), 24+3*7)), "has 45 bytes, and its words say 52 to 52"},
		"too long a window":  {streamOf(stringOf(window, Marker, word(3, 10), 24+6*7)), "has 66 bytes, and its words say 45 to 45"},
		"no panes":           {streamOf(stringOf(window, Marker, word(2, 10), 24+2*7)), "always 0"},
		"few panes":          {streamOf(stringOf(window, Marker, word(2, 10), 24+3*7)), "always 0"},
		"no kind's word":     {streamOf(stringOf(window, Marker, 0, 24+3*7)), "always 0"},
		"a layer is missing": {streamOf(stringOf(layers, Marker, uint64(LayersWord{Capacity: 2048, Layers: 2}.Word()), 31)), "its words say 58 to"},
	} {
		_, _, err := ReadFrame(bytes.NewReader(c.stream))
		if !errors.Is(err, ErrBadStream) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want that it says %q", name, err, c.says)
		}
	}
}
