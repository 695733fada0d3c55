package bloom_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

var schemes = []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a}

// withoutBirth checks the second word of a plain filter against the format, and
// returns the string with that word zeroed.
func withoutBirth(t *testing.T, stored string, settled bool) string {
	t.Helper()
	word := ""
	for _, b := range []byte(stored[8:16]) {
		word += fmt.Sprintf("%08b", b)
	}
	if word[0] != '1' || word[53:63] != "0000000000" || (word[63] == '1') != settled {
		t.Errorf("second word %s, want 1, 42 random bits, the rate, 10 zeros and bit 127 to be %t", word, settled)
	}
	if stored[16:24] != strings.Repeat("\x00", 8) {
		t.Errorf("third word %x, want zeros", stored[16:24])
	}
	return stored[:8] + strings.Repeat("\x00", 8) + stored[16:]
}

func TestStoredBytesAreTheFormat(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		rapid.Check(t, func(rt *rapid.T) {
			s.FlushAll()
			cfg := bloom.Config{
				Bits:   rapid.Uint64Range(1, 5000).Draw(rt, "bits"),
				Hashes: rapid.IntRange(1, 63).Draw(rt, "hashes"),
				Scheme: rapid.SampledFrom(schemes).Draw(rt, "scheme"),
				TTL:    rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "ttl"),
			}
			if cfg.Scheme == bloom.SchemeBlocked {
				cfg.Bits, cfg.Hashes = 53*(1+cfg.Bits/53), 2*(1+cfg.Hashes/3)
			}
			if cfg.Scheme != bloom.SchemeFNV1a {
				cfg.Seed = rapid.Uint64().Draw(rt, "seed")
			}
			items := rapid.SliceOfN(rapid.String(), 0, 20).Draw(rt, "items")
			f := handle(t, c, cfg)
			if created, err := f.Create(t.Context()); err != nil || !created {
				rt.Fatalf("Create = %v, %v, want true", created, err)
			}
			if _, err := f.AddAll(t.Context(), items); err != nil {
				rt.Fatal(err)
			}
			got := withoutBirth(t, stored(t, s), cfg.TTL != 0)
			if want := stringOf(f.Geometry(), bloom.LayoutHeaded, items...); got != want {
				rt.Fatalf("stored\n%x, want\n%x", got, want)
			}
		})
	})
}

// Each scheme has the positions of the format's description, which the test works
// out with big integers.
func TestPositionsAreTheFormat(t *testing.T) {
	for _, scheme := range schemes {
		t.Run(scheme.String(), rapid.MakeCheck(func(t *rapid.T) {
			g := bloom.Geometry{
				Scheme: scheme,
				Bits:   rapid.OneOf(rapid.Uint64Range(53, 1000), rapid.Uint64Min(53)).Draw(t, "bits"),
				Hashes: 2 * rapid.IntRange(1, 31).Draw(t, "hashes / 2"),
			}
			if scheme == bloom.SchemeBlocked {
				g.Bits -= g.Bits % 53
			}
			if scheme != bloom.SchemeFNV1a {
				g.Seed = rapid.Uint64().Draw(t, "seed")
			}
			item := rapid.String().Draw(t, "item")
			if got, want := g.Positions(nil, item), positionsOf(g, item); !slices.Equal(got, want) {
				t.Fatalf("%v of %q: %d, want %d", g, item, got, want)
			}
		}))
	}
}

// A Local and its stream have the bytes of the format's description.
func TestStreamIsTheFormat(t *testing.T) {
	for _, g := range []bloom.Geometry{
		{Bits: 53 * 40, Hashes: 6, Seed: 99},
		{Bits: 2001, Hashes: 5, Scheme: bloom.SchemeXXH3},
		{Bits: 2000, Hashes: 5, Scheme: bloom.SchemeFNV1a},
	} {
		items := numbered("item", 100)
		l := bloom.NewLocal(g)
		for _, item := range items {
			l.Add(item)
		}
		want := stringOf(g, bloom.LayoutHeaded, items...)
		want = "\x89upbloom" + want[:8] + string(binary.BigEndian.AppendUint64(nil, uint64(len(want)))) + want
		want += string(binary.BigEndian.AppendUint64(nil, xxh3.HashString(want)))
		var got bytes.Buffer
		if _, err := l.WriteTo(&got); err != nil || got.String() != want {
			t.Errorf("%v: %v, stream\n%x, want\n%x", g, err, got.Bytes(), want)
		}
	}
}

// Open and Exists read a string made from the format's description alone, with
// a second word of zero.
func TestReadsWhatTheFormatSays(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, g := range []bloom.Geometry{
			{Bits: 53 * 40, Hashes: 6, Seed: 99},
			{Bits: 2000, Hashes: 5, Scheme: bloom.SchemeXXH3, Seed: 99},
			{Bits: 2000, Hashes: 5, Scheme: bloom.SchemeFNV1a},
		} {
			items := numbered("theirs", 100)
			do(t, s, "SET", key, stringOf(g, bloom.LayoutHeaded, items...))
			f, err := bloom.Open(t.Context(), s.Client(), key, bloom.Config{Seed: g.Seed})
			if err != nil || f.Geometry() != g {
				t.Fatalf("Open = %v, %v, want %v", f, err, g)
			}
			wantFound(t, f, items)
			exists(t, f, "never", false)
		}
	})
}

// A kindString is a complete string of another program, with its Config.
type kindString struct {
	Kind     uint8 // as in the header
	Capacity uint64
	P        float64
	Seed     uint64 `json:"seed,string"`
	Span     int64  `json:"span_seconds"`
	Seconds  int64  `json:"pane_seconds"`
	Panes    int
	Idle     bool
	Epoch    int64
	Items    []string
	FoundAt  map[string][]string `json:"found_at"`
	Shards   int
	Index    int
	// Others are found of "other 0" to "other 1999", none of which was added. A
	// shard's Others belong to it.
	Others []string `json:"others_found"`
	Hex    string
	// What the string's stream has before it and after it.
	StreamBytes int    `json:"stream_bytes"` // of the string in it
	StreamHead  string `json:"stream_head"`
	StreamSum   string `json:"stream_sum"`
}

// A plainStream is the stream of a plain filter of another program.
type plainStream struct {
	Scheme bloom.Scheme
	Seed   uint64 `json:",string"`
	M      uint64
	K      int
	P      float64
	Rate   uint64 // the code in it
	Holds  uint64 // the Capacity that follows, 0 if it is not known
	Items  []string
	Others []string `json:"others_found"` // of "other 0" to "other 99"
	Hex    string

	Trailer string // of the note {"key":"filter-M"}
}

type windowTurn struct {
	Panes   int
	C, To   int64
	Steps   int64
	Cleared []int `json:"cleared_panes"`
}

func loadKinds(t testing.TB) (v struct {
	Strings     []kindString
	Streams     []plainStream
	WindowTurns []windowTurn `json:"window_turns"`
},
) {
	t.Helper()
	data, err := os.ReadFile("testdata/v1-kinds.json")
	noError(t, err)
	noError(t, json.Unmarshal(data, &v))
	if len(v.Strings) != 8 || len(v.Streams) != 11 || len(v.WindowTurns) != 144 {
		t.Fatalf("%d strings, %d streams and %d turns, want 8, 11 and 144", len(v.Strings), len(v.Streams), len(v.WindowTurns))
	}
	return v
}

func (v kindString) bytes(t *testing.T) string {
	t.Helper()
	return string(decoded(t, v.Hex))
}

func (v kindString) stream(t testing.TB) []byte {
	t.Helper()
	zeros := strings.Repeat("00", v.StreamBytes-len(v.Hex)/2)
	return decoded(t, v.StreamHead+v.Hex+zeros+v.StreamSum)
}

func (v kindString) windowConfig() bloom.WindowConfig {
	return bloom.WindowConfig{
		Capacity: v.Capacity, FPRate: v.P, Span: time.Duration(v.Span) * time.Second,
		Panes: v.Panes, Seed: v.Seed, ExpireIdle: v.Idle,
	}
}

// at returns a clock in the middle of an epoch.
func (v kindString) at(epoch int64) *clock {
	return &clock{now: time.Unix(epoch*v.Seconds+v.Seconds/2, 0)}
}

func decoded(t testing.TB, digits string) []byte {
	t.Helper()
	data, err := hex.DecodeString(digits)
	noError(t, err)
	return data
}

// A plain filter in another program's stream is read with its items and its
// rate, written as the same bytes, and restored as a filter that knows its
// Capacity.
func TestStreamOfAnotherProgram(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, v := range loadKinds(t).Streams {
			stream, others := decoded(t, v.Hex), others()[:100]
			g := bloom.Geometry{Bits: v.M, Hashes: v.K, Scheme: v.Scheme, Seed: v.Seed}
			l, err := bloom.ReadLocal(bytes.NewReader(stream), v.Seed)
			noError(t, err)
			b := readBackup(t, l)
			var wrote, kept, noted bytes.Buffer
			noError(t, errorOf(l.WriteTo(&wrote)))
			note := fmt.Appendf(nil, `{"key":"filter-%d"}`, v.M)
			noError(t, errorOf(format.WriteNoted(&noted, b, note)))
			if want := decoded(t, v.Hex+v.Trailer); !bytes.Equal(noted.Bytes(), want) {
				t.Errorf("%v: with a note\n%x, want\n%x", g, noted.Bytes(), want)
			}
			noError(t, errorOf(bloom.ReadLocal(&noted, v.Seed)))
			noError(t, errorOf(b.WriteTo(&kept)))
			if !bytes.Equal(wrote.Bytes(), stream) || !bytes.Equal(kept.Bytes(), stream) {
				t.Errorf("%v, rate %d: wrote\n%x, and a Backup\n%x, want\n%x", g, v.Rate, wrote.Bytes(), kept.Bytes(), stream)
			}
			do(t, s, "FLUSHALL")
			noError(t, errorOf(b.Restore(t.Context(), s.Client(), key, 0)))
			f, err := bloom.Open(t.Context(), s.Client(), key, bloom.Config{Seed: v.Seed})
			noError(t, err)
			replaced := handleAt(t, s.Client(), "replaced", bloom.Config{Bits: g.Bits, Hashes: g.Hashes, Scheme: g.Scheme, Seed: g.Seed})
			noError(t, replaced.Replace(t.Context(), l))
			again, err := bloom.Open(t.Context(), s.Client(), "replaced", bloom.Config{Seed: v.Seed})
			noError(t, err)
			for _, f := range []*bloom.Filter{f, again} {
				if st, err := f.Stats(t.Context()); err != nil || st.Capacity != v.Holds || f.Geometry() != g {
					t.Errorf("%v, rate %d: Capacity %d, %v, want %v for %d", f, v.Rate, st.Capacity, err, g, v.Holds)
				}
				snapshot, err := f.Snapshot(t.Context())
				noError(t, err)
				for _, l := range []*bloom.Local{l, snapshot} {
					if got := l.Stats().Capacity; got != v.Holds || l.Geometry() != g {
						t.Errorf("%v, rate %d: Capacity %d, want %d", l, v.Rate, got, v.Holds)
					}
				}
				for _, item := range others {
					if want := slices.Contains(v.Others, item); l.Exists(item) != want {
						t.Errorf("%v: found %s: %v", l, item, !want)
					}
				}
				wantFound(t, f, v.Items)
				for _, item := range v.Items {
					if !l.Exists(item) {
						t.Errorf("%v: %s is lost", l, item)
					}
				}
			}
		}
	})
}

// The stream of another program's string, of each kind that has its own word, is
// the one that program writes.
func TestStreamOfEachKind(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, v := range loadKinds(t).Strings {
			want := v.stream(t)
			do(t, s, "SET", key, v.bytes(t))
			var got bytes.Buffer
			noError(t, errorOf(takeBackup(t, s.Client(), key).WriteTo(&got)))
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("kind %d: stream\n%x, want\n%x", v.Kind, got.Bytes(), want)
			}
			if _, err := bloom.ReadBackup(bytes.NewReader(want)); err != nil {
				t.Errorf("kind %d: %v", v.Kind, err)
			}
		}
	})
}

// In a window of another program, Go finds the same items, at every epoch
// around the window's own.
func TestWindowOfAnotherProgram(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, v := range stringsOf(t, bloom.KindWindow, 2) {
			for after, want := range v.FoundAt {
				do(t, s, "SET", key, v.bytes(t))
				d, err := strconv.ParseInt(after, 10, 64)
				noError(t, err)
				c, _ := timedClient(t, s, v.at(v.Epoch+d))
				opened, err := bloom.OpenWindow(t.Context(), c, key, bloom.WindowConfig{Seed: v.Seed})
				noError(t, err)
				for _, w := range []*bloom.Window{window(t, c, v.windowConfig()), opened} {
					found, err := w.ExistsAll(t.Context(), v.Items)
					noError(t, err)
					for i, item := range v.Items {
						if found[i] != slices.Contains(want, item) {
							t.Errorf("%v, %s epochs after: found %s: %v", w, after, item, found[i])
						}
					}
				}
			}
		}
	})
}

// A window that Go writes epoch by epoch equals the other program's string.
func TestWindowIsTheFormat(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		windows := stringsOf(t, bloom.KindWindow, 2)
		// The other has items in its spare pane, and the next Add clears it.
		v := windows[slices.IndexFunc(windows, func(v kindString) bool { return v.Idle })]
		for d := int64(-v.Panes); d <= 0; d++ {
			c, _ := timedClient(t, s, v.at(v.Epoch+d))
			w := window(t, c, v.windowConfig())
			for _, item := range v.Items {
				if strings.HasPrefix(item, fmt.Sprintf("epoch %d,", d)) {
					noError(t, errorOf(w.Add(t.Context(), item)))
				}
			}
		}
		v.wantSame(t, stored(t, s))
	})
}

// A turn clears exactly the panes named by the format.
func TestWindowTurnClears(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		turned := 0
		for _, v := range loadKinds(t).WindowTurns {
			if v.Steps > 1<<19 {
				continue // to is behind C: no writer turns back
			}
			turned++
			s.FlushAll()
			cfg := bloom.WindowConfig{
				Capacity: 1, FPRate: 0.5, Panes: v.Panes,
				Span: time.Duration(60*v.Panes-5) * time.Second, // 60 s a pane
			}
			at := func(epoch int64) *bloom.Window {
				c, _ := timedClient(t, s, &clock{now: time.Unix(60*epoch+30, 0)})
				return window(t, c, cfg)
			}
			w := at(v.C)
			create(t, w, true)
			pane := int(w.Geometry().Bits+7) / 8
			for j := range v.Panes + 2 {
				do(t, s, "SETRANGE", key, strconv.Itoa(24+j*pane), strings.Repeat("\xff", pane))
			}
			noError(t, errorOf(at(v.To).Add(t.Context(), "item")))
			body := stored(t, s)[24:]
			for j := range v.Panes + 2 {
				full := body[j*pane:(j+1)*pane] == strings.Repeat("\xff", pane)
				if want := !slices.Contains(v.Cleared, j); full != want {
					t.Errorf("%+v: pane %d is still full: %v, want %v", v, j, full, want)
				}
			}
		}
		if turned != 128 {
			t.Errorf("%d turns, want 128", turned)
		}
	})
}

// wantAnswers looks up all items, and others that were never added.
func (v kindString) wantAnswers(t *testing.T, f bloomtest.Adder, others []string) {
	t.Helper()
	found, err := f.ExistsAll(t.Context(), append(slices.Clone(v.Items), others...))
	noError(t, err)
	if n := count(found[:len(v.Items)]); n != len(v.Items) {
		t.Errorf("%v: %d of %d items found", f, n, len(v.Items))
	}
	for i, item := range others {
		if got, want := found[len(v.Items)+i], slices.Contains(v.Others, item); got != want {
			t.Errorf("%v: %s: %v, want %v", f, item, got, want)
		}
	}
}

func others() (items []string) {
	for i := range 2000 {
		items = append(items, fmt.Sprint("other ", i))
	}
	return items
}

// wantSame compares Go's string with the other program's, apart from the birth
// number and trailing zeros.
func (v kindString) wantSame(t *testing.T, got string) {
	t.Helper()
	want := v.bytes(t)
	if len(got) < 24 {
		t.Fatalf("stored %x", got)
	}
	got = strings.TrimRight(got[:8]+want[8:16]+got[16:], "\x00")
	if got != strings.TrimRight(want, "\x00") {
		t.Errorf("stored\n%x, want\n%x", got, want)
	}
}

// stringsOf returns the n strings of a kind.
func stringsOf(t *testing.T, kind bloom.Kind, n int) (out []kindString) {
	t.Helper()
	for _, v := range loadKinds(t).Strings {
		if bloom.Kind(v.Kind) == kind {
			out = append(out, v)
		}
	}
	if len(out) != n {
		t.Fatalf("%d strings of kind %v, want %d", len(out), kind, n)
	}
	return out
}

// Another program's layers give the same answers in Go. Written by Go, layer by
// layer, they are the same string.
func TestLayersOfAnotherProgram(t *testing.T) {
	v := stringsOf(t, bloom.KindScalable, 1)[0]
	cfg := bloom.ScalableConfig{Capacity: v.Capacity, FPRate: v.P, Seed: v.Seed}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		do(t, s, "SET", key, v.bytes(t))
		opened, err := bloom.OpenScalable(t.Context(), s.Client(), key, bloom.ScalableConfig{Seed: v.Seed})
		noError(t, err)
		for _, f := range []*bloom.Scalable{scalable(t, s.Client(), cfg), opened} {
			v.wantAnswers(t, f, others())
			st, err := f.Stats(t.Context())
			if err != nil || len(st.Parts) != 3 {
				t.Fatalf("Stats: %d layers, %v, want 3", len(st.Parts), err)
			}
		}
		s.FlushAll()
		for layer := range 3 {
			if layer > 0 { // as if the layer before were full
				do(t, s, "BITFIELD", key, "SET", "u32", "149", strconv.FormatUint(1000<<(2*(layer-1)), 10))
			}
			f := scalable(t, s.Client(), cfg)
			for _, item := range v.Items[30*layer : 30*layer+30] {
				if added, err := f.Add(t.Context(), item); !added || err != nil {
					t.Fatalf("Add of %s = %v, %v", item, added, err)
				}
			}
		}
		v.wantSame(t, stored(t, s))
	})
}

// Another program's shard gives the same answers in Go. Written by Go it is the
// same string.
func TestShardOfAnotherProgram(t *testing.T) {
	v := stringsOf(t, bloom.KindShard, 1)[0]
	cfg := bloom.ShardedConfig{Capacity: v.Capacity, FPRate: v.P, Shards: v.Shards, Seed: v.Seed}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := sharded(t, cfg, s.Client())
		create(t, f, true)
		if added, err := f.AddAll(t.Context(), v.Items); err != nil || count(added) != len(v.Items) {
			t.Fatalf("AddAll: %d new, %v", count(added), err)
		}
		v.wantSame(t, storedAt(t, s, shardKey(v.Index)))

		do(t, s, "SET", shardKey(v.Index), v.bytes(t))
		opened, err := bloom.OpenSharded(t.Context(), []*upstash.Client{s.Client()}, key, bloom.ShardedConfig{Seed: v.Seed})
		noError(t, err)
		mine := slices.DeleteFunc(others(), func(item string) bool { return f.ShardOf(item) != v.Index })
		for _, f := range []*bloom.Sharded{sharded(t, cfg, s.Client()), opened} {
			v.wantAnswers(t, f, mine)
		}
	})
}

// A cuckoo table of another program gives the same answers in Go, has as many
// copies, and is empty once all of them are removed.
func TestCuckooOfAnotherProgram(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, v := range stringsOf(t, bloom.KindFilter, 4) {
			do(t, s, "SET", key, v.bytes(t))
			opened, err := bloom.OpenCuckoo(t.Context(), s.Client(), key, bloom.CuckooConfig{Seed: v.Seed})
			noError(t, err)
			made := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: v.Capacity, FPRate: v.P, Seed: v.Seed})
			for _, f := range []*bloom.Cuckoo{made, opened} {
				v.wantAnswers(t, f, others())
				st, err := f.Stats(t.Context())
				if err != nil || st.Damaged || st.Items != uint64(len(v.Items)) {
					t.Errorf("%v: %d copies, damaged %v, %v", f, st.Items, st.Damaged, err)
				}
			}
			removed, err := made.RemoveAll(t.Context(), v.Items)
			if err != nil || count(removed) != len(v.Items) {
				t.Fatalf("RemoveAll: %d of %d, %v", count(removed), len(v.Items), err)
			}
			// Of the third word and the buckets, only the first bit remains.
			if got := strings.TrimRight(stored(t, s)[16:], "\x00"); got != "\x80" {
				t.Errorf("%v: after RemoveAll %x", made, got)
			}
		}
	})
}
