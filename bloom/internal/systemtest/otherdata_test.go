package systemtest

import (
	"bytes"
	"compress/gzip"
	"context"
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
	"github.com/upbloom/upbloom/internal/testkit/testenv"
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
	bloomtest.NoError(t, bloomtest.ErrorOf(w.Write([]byte(s))))
	bloomtest.NoError(t, w.Close())
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
	bloomtest.NoError(t, err)
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

// putOther returns ways to put other data at the key.
func putOther(t *testing.T, s *upstashtest.Server) map[string]func() {
	return map[string]func(){
		"another filter": func() { bloomtest.Add(t, bloomtest.Handle(t, s.Client(), bloomtest.Sparse()), "theirs", true) },
		"a text":         func() { bloomtest.Do(t, s, "SET", bloomtest.Key, "some text of theirs") },
		"zeros":          func() { bloomtest.Do(t, s, "SET", bloomtest.Key, "\x00\x00\x00\x00\x00\x00\x08 eight") },
		"a list":         func() { bloomtest.Do(t, s, "RPUSH", bloomtest.Key, "theirs") },
	}
}

// content is what the key holds: a string, or the first element of a list.
func content(t *testing.T, s *upstashtest.Server) any {
	t.Helper()
	if bloomtest.Do(t, s, "TYPE", bloomtest.Key) == "list" {
		return bloomtest.Do(t, s, "LINDEX", bloomtest.Key, "0")
	}
	return bloomtest.Stored(t, s)
}

// Every call refuses other data and leaves it and its TTL alone, whatever the
// Config says of a missing filter. Only an Add that may make a filter does not
// look first.
func TestEveryCallAtOtherData(t *testing.T) {
	lenient, strict := bloomtest.Expiring(time.Hour), bloomtest.Expiring(time.Hour)
	lenient.MissingIsEmpty, strict.MustExist = true, true
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for what, put := range putOther(t, s) {
			for name, call := range bloomtest.Calls(bloomtest.Reads, bloomtest.Adds, bloomtest.Orders) {
				for _, cfg := range []bloom.Config{lenient, strict} {
					for _, expires := range []bool{false, true} {
						s.FlushAll()
						put()
						if expires {
							bloomtest.Do(t, s, "EXPIRE", bloomtest.Key, "60")
						}
						before := content(t, s)
						err := call(t.Context(), bloomtest.Handle(t, s.Client(), cfg))
						looksFirst := bloomtest.Adds[name] == nil || cfg.MustExist
						if !bloomtest.IsRefusal(err) || looksFirst && content(t, s) != before {
							t.Errorf("%s of %s, %v: %v, want a refusal and no change", name, what, cfg, err)
						}
						if left := bloomtest.PTTL(t, s); left > time.Minute || (left > 0) != expires {
							t.Errorf("%s of %s, %v: the TTL is %v now", name, what, cfg, left)
						}
						bloomtest.WantNoKey(t, s, "elsewhere")
					}
				}
			}
		}
	})
}

// After a refusal no request tries to add more, until a call finds the key free
// or the handle's own filter.
func TestRefusalIsRememberedAndHeals(t *testing.T) {
	s := upstashtest.NewServer(t)
	refused := func(by bloomtest.Call) *bloom.Filter {
		t.Helper()
		s.FlushAll()
		bloomtest.Add(t, bloomtest.Handle(t, s.Client(), bloomtest.Sparse()), "theirs", true)
		f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
		_ = by(t.Context(), f)
		s.ResetStats()
		for name, add := range bloomtest.Adds {
			if err := add(t.Context(), f); !bloomtest.IsRefusal(err) {
				t.Errorf("%s: %v, want a refusal", name, err)
			}
		}
		bloomtest.WantRequests(t, s, 0)
		bloomtest.Do(t, s, "DEL", bloomtest.Key)
		return f
	}
	for _, meet := range []string{"Add", "AddAll", "Exists", "ExistsAll"} {
		f := refused(bloomtest.Calls(bloomtest.Reads, bloomtest.Adds)[meet])
		bloomtest.WantError(t, bloomtest.ErrorOf(f.Exists(t.Context(), "a")), bloom.ErrNotFound)
		bloomtest.Add(t, f, "a", true)
	}
	for _, order := range []string{"Create", "Delete"} {
		f := refused(bloomtest.Orders[order])
		bloomtest.NoError(t, bloomtest.Orders[order](t.Context(), f))
		bloomtest.Add(t, f, "a", true)
	}
	f := refused(bloomtest.Adds["Add"])
	bloomtest.Add(t, bloomtest.Handle(t, s.Client(), bloomtest.Small()), "b", true)
	bloomtest.Exists(t, f, "b", true)
	bloomtest.Add(t, f, "a", true)
}

// A MismatchError says both geometries, whether the seed alone differs, and shows
// no key.
func TestMismatch(t *testing.T) {
	s := upstashtest.NewServer(t)
	ours := bloomtest.Handle(t, s.Client(), bloomtest.Small())
	for _, other := range []bloom.Config{
		{Capacity: 2000, FPRate: 0.01},
		{Capacity: 1000, FPRate: 0.01, Seed: 7},
		{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeFNV1a},
		{Bits: 10_759, Hashes: 6},
	} {
		s.FlushAll()
		theirs := bloomtest.Handle(t, s.Client(), other)
		bloomtest.Add(t, theirs, "a", true)
		_, err := ours.Exists(t.Context(), "a")
		m, is := errors.AsType[*bloom.MismatchError](err)
		if !is {
			t.Fatalf("%v: %v, want a MismatchError", other, err)
		}
		got := theirs.Geometry()
		got.Seed = 0 // the header does not have it
		if m.Want != ours.Geometry() || m.Got != got || m.OtherSeed != (other.Seed != 0) ||
			m.WantKind != bloom.KindFilter || m.GotKind != bloom.KindFilter ||
			strings.Contains(err.Error(), bloomtest.Key) {
			t.Errorf("%v: %+v (%v), want a mismatch of %v with %v", other, m, err, ours.Geometry(), got)
		}
	}
}

// An Add to a string that begins with zeros writes its header there, and one to
// a text adds it to the first bits. It notices both, even if the sum looks like
// a header.
func TestAddToText(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, text := range []string{
			"text", "\x00\x00\x00\x00\x00\x00\x08 eight", "\x00\x00\x01", "~~~~~~~~", "\x90",
		} {
			bloomtest.Do(t, s, "SET", bloomtest.Key, text)
			f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
			if added, err := f.Add(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFilter) || added {
				t.Errorf("Add to %q = %v, %v, want ErrNotFilter", text, added, err)
			} else if !strings.Contains(err.Error(), "the Add that found this has ") || bloomtest.Stored(t, s) == text {
				t.Errorf("Add to %q = %v, want it to say that the data was changed", text, err)
			}
		}
	})
}

// An Add for a larger filter lengthens the string, and may set bits of the last
// byte beyond the cells. The filter loses nothing.
func TestFilterThatALargerOneMet(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		f := bloomtest.Handle(t, c, bloom.Config{Bits: 1001, Hashes: 7, Scheme: bloom.SchemeXXH3})
		bloomtest.Add(t, f, "item", true)
		bloomtest.Do(t, s, "SETBIT", bloomtest.Key, "1135", "1") // the last of 7 bits after the cells
		large := bloomtest.Handle(t, c, bloom.Config{Capacity: 100_000, FPRate: 0.01})
		bloomtest.WantMismatch(t, bloomtest.ErrorOf(large.Add(ctx, "other")))

		bloomtest.NoError(t, bloomtest.ErrorOf(bloom.Open(ctx, c, bloomtest.Key)))
		bloomtest.NoError(t, bloomtest.ErrorOf(bloom.Inspect(ctx, c, bloomtest.Key)))
		l, err := f.Snapshot(ctx)
		bloomtest.NoError(t, err)
		if want := len(bloom.NewLocal(f.Geometry()).Bytes()); !l.Exists("item") || len(l.Bytes()) != want {
			t.Errorf("Snapshot is %x, want the item in %d bytes", l.Bytes(), want)
		}
		m := bloomtest.Mirror(t, f, bloom.MirrorConfig{MaxStale: time.Hour})
		bloomtest.NoError(t, m.Refresh(ctx))
		s.ResetStats()
		bloomtest.Exists(t, m, "item", true)
		bloomtest.Exists(t, m, "another", false)
		bloomtest.WantRequests(t, s, 0)
		bloomtest.NoError(t, m.Refresh(ctx))
	})
}

// wrongKey is also the key of a shard: the only one of a Sharded at
// bloomtest.Key.
const wrongKey = bloomtest.Key + ":0"

// A wrongKind is a type whose Add runs at another type's key by mistake.
type wrongKind struct {
	name   string
	cfg    any
	word   bool // it has a word of its own, the third one
	looks  bool // it looks at the header before it writes
	warm   bool // its handles knew the key before it became another's
	plain  bool // a plain filter, whose Add sets bits near the header
	layers bool // a Scalable
}

func (k wrongKind) open(t *testing.T, s *upstashtest.Server) bloomtest.Adder {
	t.Helper()
	if k.name == "shard" {
		return bloomtest.Made(t, s.Client(), bloomtest.Key, k.cfg)
	}
	return bloomtest.Made(t, s.Client(), wrongKey, k.cfg)
}

func wrongKinds() []wrongKind {
	const n, p = 1000, 0.01
	layers := bloom.ScalableConfig{Capacity: n, FPRate: p}
	idle := bloom.WindowConfig{Capacity: 300, FPRate: 0.001, Span: time.Hour, Panes: 4, ExpireIdle: true}
	return []wrongKind{
		{name: "filter", cfg: bloomtest.Small(), plain: true},
		{name: "larger filter", cfg: bloomtest.Sparse(), plain: true},
		{name: "filter with a TTL", cfg: bloom.Config{Capacity: 500, FPRate: 0.1, TTL: time.Hour}, plain: true},
		{name: "xxh3 filter", cfg: bloom.Config{Capacity: n, FPRate: p, Scheme: bloom.SchemeXXH3}, plain: true},
		{name: "fnv1a filter", cfg: bloom.Config{Capacity: n, FPRate: p, Scheme: bloom.SchemeFNV1a}, plain: true},
		{name: "filter that must exist", cfg: bloom.Config{Capacity: 2 * n, FPRate: p, MustExist: true}, looks: true},
		{name: "window", cfg: bloom.WindowConfig{Capacity: n, FPRate: p, Span: time.Hour}, word: true},
		{name: "window that expires", cfg: idle, word: true},
		{name: "scalable", cfg: layers, word: true, layers: true, looks: true}, // its handles are new
		{name: "scalable that grew", cfg: layers, word: true, layers: true, warm: true},
		{name: "shard", cfg: bloom.ShardedConfig{Capacity: n, FPRate: p, Shards: 1}, word: true, looks: true},
		{name: "cuckoo", cfg: bloom.CuckooConfig{Capacity: n, FPRate: p}, word: true, looks: true},
	}
}

// Every type's Add at every other type's key, by mistake, is an error. It
// changes none of the other's words and clears none of its bits, so no "no"
// becomes wrong. A cuckoo table is the exception: it holds fingerprints, and
// one more bit makes another fingerprint.
func TestAddAtAnotherKind(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, other := range wrongKinds() {
			grown := ""
			if other.warm {
				s.FlushAll()
				bloomtest.MustAdd(t, other.open(t, s), bloomtest.Numbered("before", 1100)...)
				grown = bloomtest.StoredAt(t, s, wrongKey)
			}
			for _, victim := range wrongKinds() {
				// Scalables of one Config are the same filter, whatever they
				// know.
				if victim.warm || victim.name == other.name || victim.layers && other.layers {
					continue
				}
				t.Run(other.name+" at a "+victim.name, func(t *testing.T) {
					addAtAnother(t, s, victim, other, grown)
				})
			}
		}
	})
}

// addAtAnother has handles of other, which may know their own filter from before,
// add at the key of a victim.
func addAtAnother(t *testing.T, s *upstashtest.Server, victim, other wrongKind, grown string) {
	theirs, ours := bloomtest.Numbered("theirs", 100), bloomtest.Numbered("ours", 100)
	handles := 4 // each for one Add: once it knows of the other filter, it refuses
	if testenv.Long() {
		handles = 21
	}
	s.FlushAll()
	var writers []bloomtest.Adder
	for range handles {
		writers = append(writers, other.open(t, s))
	}
	if other.warm {
		bloomtest.Do(t, s, "SET", wrongKey, grown)
		for _, w := range writers {
			bloomtest.NoError(t, bloomtest.ErrorOf(w.ExistsAll(t.Context(), ours)))
		}
		s.FlushAll()
	}
	wrote := victim.open(t, s)
	bloomtest.Create(t, wrote, true)
	bloomtest.MustAdd(t, wrote, theirs...)
	before := bloomtest.StoredAt(t, s, wrongKey)

	for i, w := range writers[1:] {
		bloomtest.WantMismatch(t, bloomtest.ErrorOf(w.Add(t.Context(), ours[i])))
	}
	bloomtest.WantMismatch(t, bloomtest.ErrorOf(writers[0].AddAll(t.Context(), ours)))

	after, words := bloomtest.StoredAt(t, s, wrongKey), 24
	if !victim.word {
		words = 16 // the third means nothing here
	}
	wantOnlyMore(t, before, after, words, other.looks)
	found, err := victim.open(t, s).ExistsAll(t.Context(), theirs)
	bloomtest.NoError(t, err)
	if f, is := wrote.(*bloom.Cuckoo); is && !other.looks {
		end := 24 + int(f.Geometry().Bits)/8
		wantDamage(t, f, after[:end] != before[:end], bloomtest.Count(found), len(theirs), other.plain)
	} else if n := bloomtest.Count(found); n != len(theirs) {
		t.Errorf("%d of %d found by the other type", n, len(theirs))
	}
}

// wantDamage checks a cuckoo table with so many of its members found. Stats must
// say so if the table has changed at all: panes and layers may lie behind its
// end. A plain filter's Adds change the table, and hide members.
func wantDamage(t *testing.T, f *bloom.Cuckoo, changed bool, found, members int, plain bool) {
	t.Helper()
	if st, err := f.Stats(t.Context()); err != nil || st.Damaged != changed {
		t.Errorf("Stats: damaged %v, %v, want %v", st.Damaged, err, changed)
	}
	if plain && (!changed || found == members) {
		t.Errorf("all %d members are found, changed %v: want some missing", found, changed)
	}
	if !changed && found != members {
		t.Errorf("%d of %d found in a table that was not changed", found, members)
	}
}

// wantOnlyMore compares a string with its earlier state: its words are the
// same, and no bit was cleared. If same, nothing may have changed.
func wantOnlyMore(t *testing.T, before, after string, words int, same bool) {
	t.Helper()
	if same && before != after {
		t.Error("a type that looks first changed another type's string")
	}
	if !strings.HasPrefix(after, before[:words]) {
		t.Errorf("words %x, want %x", after[:words], before[:words])
	}
	if len(after) < len(before) {
		t.Fatalf("the string is %d bytes long, it was %d", len(after), len(before))
	}
	for i := words; i < len(before); i++ {
		if before[i]&^after[i] != 0 {
			t.Fatalf("bits of byte %d were cleared: %08b, it was %08b", i, after[i], before[i])
		}
	}
}

// ordered has the orders of all kinds, and expiring those that some have.
type (
	ordered interface {
		Delete(context.Context) (bool, error)
		Rename(context.Context, string) error
	}
	expiring interface {
		Expire(context.Context, time.Duration) (bool, error)
		Persist(context.Context) (bool, error)
	}
)

// Delete, Rename, Expire and Persist of each kind leave filters of other kinds,
// and of another Config, alone. Some have the same header.
func TestOrdersOfOtherKinds(t *testing.T) {
	const n, p = 100, 0.01
	ctx, s := t.Context(), upstashtest.NewServer(t)
	all := []any{
		bloom.Config{Capacity: n, FPRate: p},
		bloom.CuckooConfig{Capacity: n, FPRate: p},
		bloom.ScalableConfig{Capacity: 10 * n, FPRate: p},
		bloom.WindowConfig{Capacity: n, FPRate: 2 * p, Span: time.Hour, Panes: 1},
		bloom.WindowConfig{Capacity: n, FPRate: 2 * p, Span: 2 * time.Hour, Panes: 1},
		bloom.WindowConfig{Capacity: n, FPRate: 3 * p, Span: 2*time.Hour + 5*time.Second, Panes: 2},
		bloom.WindowConfig{Capacity: n, FPRate: 2 * p, Span: time.Hour, Panes: 1, ExpireIdle: true},
	}
	for i, there := range all {
		s.FlushAll()
		bloomtest.Create(t, bloomtest.Made(t, s.Client(), bloomtest.Key, there), true)
		before, ttl := bloomtest.Stored(t, s), bloomtest.PTTL(t, s)
		for j, cfg := range all {
			if i == j {
				continue
			}
			ours := bloomtest.Made(t, s.Client(), bloomtest.Key, cfg).(ordered)
			bloomtest.WantMismatch(t, bloomtest.ErrorOf(ours.Delete(ctx)))
			bloomtest.WantMismatch(t, ours.Rename(ctx, "elsewhere"))
			if ours, can := ours.(expiring); can {
				bloomtest.WantMismatch(t, bloomtest.ErrorOf(ours.Expire(ctx, time.Minute)))
				bloomtest.WantMismatch(t, bloomtest.ErrorOf(ours.Persist(ctx)))
			}
			left := bloomtest.PTTL(t, s)
			if bloomtest.Stored(t, s) != before || (left < 0) != (ttl < 0) || ttl > 0 && left < ttl/2 {
				t.Fatalf("the orders of a %v changed a %v, whose TTL was %v and is %v", cfg, there, ttl, left)
			}
		}
	}
}
