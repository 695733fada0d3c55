package systemtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// wrongKey is also the key of a shard: the only one of a Sharded at
// bloomtest.Key.
const wrongKey = bloomtest.Key + ":0"

// A wrongKind is a type whose Add runs at another type's key by mistake.
type wrongKind struct {
	name   string
	make   func(c *upstash.Client) (bloomtest.Adder, error)
	word   bool // it has a word of its own, the third one
	looks  bool // it looks at the header before it writes
	warm   bool // its handles knew the key before it became another's
	plain  bool // a plain filter, whose Add sets bits near the header
	layers bool // a Scalable
	cuckoo bool // a table of fingerprints
}

func wrongKinds() []wrongKind {
	filter := func(cfg bloom.Config) func(*upstash.Client) (bloomtest.Adder, error) {
		return func(c *upstash.Client) (bloomtest.Adder, error) { return bloom.New(c, wrongKey, cfg) }
	}
	window := func(cfg bloom.WindowConfig) func(*upstash.Client) (bloomtest.Adder, error) {
		return func(c *upstash.Client) (bloomtest.Adder, error) { return bloom.NewWindow(c, wrongKey, cfg) }
	}
	scalable := func(c *upstash.Client) (bloomtest.Adder, error) {
		return bloom.NewScalable(c, wrongKey, bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
	}
	shard := func(c *upstash.Client) (bloomtest.Adder, error) {
		return bloom.NewSharded([]*upstash.Client{c}, bloomtest.Key,
			bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 1})
	}
	cuckoo := func(c *upstash.Client) (bloomtest.Adder, error) {
		return bloom.NewCuckoo(c, wrongKey, bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01})
	}
	span := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour}
	idle := bloom.WindowConfig{Capacity: 300, FPRate: 0.001, Span: time.Hour, Panes: 4, ExpireIdle: true}
	ttl := bloom.Config{Capacity: 500, FPRate: 0.1, TTL: time.Hour}
	xxh3 := bloom.Config{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeXXH3}
	fnv := bloom.Config{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeFNV1a}
	must := bloom.Config{Capacity: 2000, FPRate: 0.01, MustExist: true}
	return []wrongKind{
		{name: "filter", make: filter(bloomtest.Small()), plain: true},
		{name: "larger filter", make: filter(bloomtest.Sparse()), plain: true},
		{name: "filter with a TTL", make: filter(ttl), plain: true},
		{name: "xxh3 filter", make: filter(xxh3), plain: true},
		{name: "fnv1a filter", make: filter(fnv), plain: true},
		{name: "filter that must exist", make: filter(must), looks: true},
		{name: "window", make: window(span), word: true},
		{name: "window that expires", make: window(idle), word: true},
		{name: "scalable", make: scalable, word: true, layers: true, looks: true}, // its handles are new
		{name: "scalable that grew", make: scalable, word: true, layers: true, warm: true},
		{name: "shard", make: shard, word: true, looks: true},
		{name: "cuckoo", make: cuckoo, word: true, looks: true, cuckoo: true},
	}
}

// Every type's Add at every other type's key, by mistake, is an error. It
// changes none of the other's words and clears none of its bits, so no "no"
// becomes wrong. A cuckoo table is the exception: it holds fingerprints, and
// one more bit makes another fingerprint.
func TestAddAtAnotherKind(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, victim := range wrongKinds() {
			for _, other := range wrongKinds() {
				// Scalables of one Config are the same filter, whatever they
				// know.
				if victim.warm || victim.name == other.name || victim.layers && other.layers {
					continue
				}
				t.Run(other.name+" at a "+victim.name, func(t *testing.T) {
					addAtAnother(t, s, victim, other)
				})
			}
		}
	})
}

func addAtAnother(t *testing.T, s *upstashtest.Server, victim, other wrongKind) {
	s.FlushAll()
	theirs, ours := bloomtest.Numbered("theirs", 300), bloomtest.Numbered("ours", 300)
	writers := wrongWriters(t, s, other, ours[0])
	s.FlushAll()
	wrote := makeKind(t, s, victim)
	if _, err := wrote.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := wrote.AddAll(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	before := bloomtest.StoredAt(t, s, wrongKey)
	var mismatch *bloom.MismatchError
	for i, w := range writers[1:] {
		if _, err := w.Add(t.Context(), ours[i]); !errors.As(err, &mismatch) {
			t.Fatalf("Add: %v, want a MismatchError", err)
		}
	}
	if _, err := writers[0].AddAll(t.Context(), ours); !errors.As(err, &mismatch) {
		t.Fatalf("AddAll: %v, want a MismatchError", err)
	}
	after, words := bloomtest.StoredAt(t, s, wrongKey), 24
	if !victim.word {
		words = 16 // the third means nothing here
	}
	wantOnlyMore(t, before, after, words, other.looks)
	found, err := makeKind(t, s, victim).ExistsAll(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	members := bloomtest.Count(found)
	if victim.cuckoo && !other.looks {
		f := wrote.(*bloom.Cuckoo)
		end := 24 + int(f.Geometry().Bits)/8
		changed := after[:end] != before[:end]
		wantDamage(t, f, changed, members, len(theirs), other.plain)
	} else if members != len(theirs) {
		t.Errorf("%d of %d found by the other type", members, len(theirs))
	}
}

// wrongWriters returns handles of a kind, each for one Add: once a handle knows
// of the other filter, it refuses. If the kind is warm, the handles have seen
// their own filter at the key before.
func wrongWriters(t *testing.T, s *upstashtest.Server, kind wrongKind, item string) []bloomtest.Adder {
	t.Helper()
	writers := make([]bloomtest.Adder, 4)
	if testenv.Long() {
		writers = make([]bloomtest.Adder, 21)
	}
	for i := range writers {
		writers[i] = makeKind(t, s, kind)
	}
	if !kind.warm {
		return writers
	}
	if _, err := writers[0].AddAll(t.Context(), bloomtest.Numbered("before", 1100)); err != nil {
		t.Fatal(err)
	}
	for _, w := range writers {
		if _, err := w.ExistsAll(t.Context(), []string{item}); err != nil {
			t.Fatal(err)
		}
	}
	return writers
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

func makeKind(t *testing.T, s *upstashtest.Server, k wrongKind) bloomtest.Adder {
	t.Helper()
	a, err := k.make(s.Client())
	if err != nil {
		t.Fatal(err)
	}
	return a
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
