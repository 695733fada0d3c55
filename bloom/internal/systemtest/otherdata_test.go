package systemtest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// javaObject is Integer.valueOf(42) as written by ObjectOutputStream.
const javaObject = "\xac\xed\x00\x05sr\x00\x11java.lang.Integer\x12\xe2\xa0\xa4\xf7\x81\x878\x02" +
	"\x00\x01I\x00\x05valuexr\x00\x10java.lang.Number\x86\xac\x95\x1d\x0b\x94\xe0\x8b\x02\x00\x00" +
	"xp\x00\x00\x00*"

// javaString is a string as written by ObjectOutputStream.
func javaString(s string) string {
	return "\xac\xed\x00\x05t" + string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s
}

// hangul returns n syllables. Each has three bytes, the first with its top bit
// set, like a header.
func hangul(r *rand.Rand, n int) string {
	text := make([]rune, n)
	for i := range text {
		text[i] = '가' + r.Int32N('힣'-'가'+1)
	}
	return string(text)
}

func gzipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// refusedAsOtherData puts data at the key and checks that Open and Inspect
// refuse it as no filter.
func refusedAsOtherData(t *testing.T, s *upstashtest.Server, name, data string) {
	t.Helper()
	bloomtest.Do(t, s, "SET", bloomtest.Key, data)
	if f, err := bloom.Open(t.Context(), s.Client(), bloomtest.Key); !errors.Is(err, bloom.ErrNotFilter) {
		t.Errorf("%s: Open = %v, %v, want ErrNotFilter\n%x", name, f, err, data)
	}
	if st, err := bloom.Inspect(t.Context(), s.Client(), bloomtest.Key); !errors.Is(err, bloom.ErrNotFilter) {
		t.Errorf("%s: Inspect = %v, %v, want ErrNotFilter\n%x", name, st, err, data)
	}
	if got := bloomtest.Stored(t, s); got != data {
		t.Errorf("%s: the data was changed", name)
	}
}

func TestOtherDataIsNoFilter(t *testing.T) {
	document, err := json.Marshal(map[string]any{"id": 42, "tags": []string{"a", "b"}, "name": "é"})
	if err != nil {
		t.Fatal(err)
	}
	seeded := bloom.Geometry{Bits: 53, Hashes: 2, Scheme: bloom.SchemeFNV1a, Seed: 1} // fnv1a has no seed
	half := bloom.Geometry{Bits: 1000, Hashes: 7, Scheme: bloom.SchemeFNV1a}
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, data := range map[string]string{
			"a Java object": javaObject,
			"a Java string": javaString("the quick brown fox jumps over the lazy dog"),
			"Hangul":        strings.Repeat("안녕하세요 세계 ", 10),
			"gzip":          gzipped(t, strings.Repeat("the quick brown fox ", 10)),
			"JSON":          string(document),
			"a number":      "12345678901234567890",
			"ASCII":         "the quick brown fox jumps over the lazy dog",
			"Cyrillic":      "съешь же ещё этих мягких французских булок",
			"Chinese":       "我能吞下玻璃而不伤身体",
			"emoji":         strings.Repeat("🔑👋🏽", 5),
			"a PNG": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" +
				"\x00\x00\x01\x00\x00\x00\x01\x00\x08\x06\x00\x00\x00",
			"zeros":           strings.Repeat("\x00", 100),
			"ones":            strings.Repeat("\xff", 100),
			"one byte":        "\x80",
			"a bare filter":   bloomtest.StringOf(half, bloom.LayoutBare, bloomtest.Numbered("item", 100)...),
			"a full one":      bloomtest.StringOf(half, bloom.LayoutBare, bloomtest.Numbered("item", 1000)...),
			"base64":          base64.StdEncoding.EncodeToString([]byte(javaObject)),
			"a header alone":  bloomtest.HeaderOf(bloom.KindFilter, bloomtest.Small1000),
			"too long":        bloomtest.StringOf(bloomtest.Small1000, bloom.LayoutHeaded, "item") + "\x00",
			"bit 53":          bloomtest.Spoilt(53),
			"bit 63":          bloomtest.Spoilt(63),
			"bit 117":         bloomtest.Spoilt(117),
			"bit 126":         bloomtest.Spoilt(126),
			"version 2":       bloomtest.HeaderOfVersion(2, bloom.KindFilter, bloomtest.Small1000) + "\x01",
			"scheme 6":        bloomtest.HeaderOf(bloom.KindFilter, bloom.Geometry{Bits: 53, Hashes: 2, Scheme: 6}) + "\x01",
			"fnv1a, seeded":   bloomtest.HeaderOf(bloom.KindFilter, seeded) + "\x01",
			"odd hashes":      bloomtest.HeaderOf(bloom.KindFilter, bloom.Geometry{Bits: 53, Hashes: 3}) + "\x01",
			"a word and more": bloomtest.HeaderOf(bloom.KindFilter, bloom.Geometry{Bits: 54, Hashes: 2}) + "\x01",
		} {
			refusedAsOtherData(t, s, name, data)
		}
	})
}

// An Add for a larger filter lengthens the string, and may set bits of the last
// byte beyond the cells. The filter loses nothing.
func TestFilterThatALargerOneMet(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		cfg := bloom.Config{Bits: 1001, Hashes: 7, Scheme: bloom.SchemeXXH3}
		f := bloomtest.Handle(t, c, cfg)
		bloomtest.Add(t, f, "item", true)
		want := bloom.NewLocal(f.Geometry())
		want.Add("item")
		bloomtest.Do(t, s, "SETBIT", bloomtest.Key, "1135", "1") // the last of 7 bits after the cells
		large := bloomtest.Handle(t, c, bloom.Config{Capacity: 100_000, FPRate: 0.01})
		var mismatch *bloom.MismatchError
		if _, err := large.Add(ctx, "other"); !errors.As(err, &mismatch) {
			t.Fatalf("%v, want a MismatchError", err)
		}
		if _, err := bloom.Open(ctx, c, bloomtest.Key); err != nil {
			t.Error("Open:", err)
		}
		if _, err := bloom.Inspect(ctx, c, bloomtest.Key); err != nil {
			t.Error("Inspect:", err)
		}
		l, err := f.Snapshot(ctx)
		if err != nil {
			t.Error("Snapshot:", err)
		} else if !l.Exists("item") || len(l.Bytes()) != len(want.Bytes()) {
			t.Errorf("Snapshot is %x, want at least %x", l.Bytes(), want.Bytes())
		}
		m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Refresh(ctx); err != nil {
			t.Error("Refresh:", err)
		}
		s.ResetStats()
		for item, want := range map[string]bool{"item": true, "another": false} {
			if found, err := m.Exists(ctx, item); found != want || err != nil {
				t.Errorf("the copy answers for %s: %v, %v, want %v", item, found, err, want)
			}
		}
		if n := s.Stats().Requests; n != 0 {
			t.Errorf("%d requests, want the copy's answers", n)
		}
		if err := m.Refresh(ctx); err != nil {
			t.Error("Refresh of what did not change:", err)
		}
	})
}

// One random string in 400 million passes for a filter, and text never does. None
// of these may.
func TestRandomDataIsNoFilter(t *testing.T) {
	s := upstashtest.NewServer(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		refusedAsOtherData(t, s, "Hangul", hangul(r, 6+r.IntN(60)))
		refusedAsOtherData(t, s, "Java", javaString(strings.Repeat("x", r.IntN(100))+hangul(r, 3)))
		b := make([]byte, 17+r.IntN(200))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		b[0] |= 0x80
		refusedAsOtherData(t, s, "random bytes", string(b))
	}
}
