package bloom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// adder is what the handles of all types have in common.
type adder interface {
	Add(ctx context.Context, item string) (bool, error)
	AddAll(ctx context.Context, items []string) ([]bool, error)
	ExistsAll(ctx context.Context, items []string) ([]bool, error)
}

// A wrongKind is a type that may meet another one's key by mistake.
type wrongKind struct {
	name   string
	make   func(c *upstash.Client) (adder, error)
	word   bool // it has a word of its own, the third one
	script bool // its writes are scripts, which look at the header first
}

func wrongKinds() []wrongKind {
	filter := func(cfg bloom.Config) func(*upstash.Client) (adder, error) {
		return func(c *upstash.Client) (adder, error) { return bloom.New(c, key, cfg) }
	}
	window := func(cfg bloom.WindowConfig) func(*upstash.Client) (adder, error) {
		return func(c *upstash.Client) (adder, error) { return bloom.NewWindow(c, key, cfg) }
	}
	span := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour}
	idle := bloom.WindowConfig{Capacity: 300, FPRate: 0.001, Span: time.Hour, Panes: 4, ExpireIdle: true}
	xxh3 := bloom.Config{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeXXH3}
	fnv := bloom.Config{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeFNV1a}
	must := bloom.Config{Capacity: 2000, FPRate: 0.01, MustExist: true}
	return []wrongKind{
		{name: "filter", make: filter(small())},
		{name: "larger filter", make: filter(sparse())},
		{name: "filter with a TTL", make: filter(bloom.Config{Capacity: 500, FPRate: 0.1, TTL: time.Hour})},
		{name: "xxh3 filter", make: filter(xxh3)},
		{name: "fnv1a filter", make: filter(fnv)},
		{name: "filter that must exist", make: filter(must), script: true},
		{name: "window", make: window(span), word: true},
		{name: "window that expires", make: window(idle), word: true},
	}
}

// Every type's Add at every other type's key, by mistake: it is an error, it
// changes none of the other's words and clears none of its bits, so that no "no"
// becomes wrong.
func TestAddAtAnotherKind(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		theirs, ours := numbered("theirs", 300), numbered("ours", 300)
		for _, victim := range wrongKinds() {
			for _, other := range wrongKinds() {
				if victim.name == other.name {
					continue
				}
				t.Run(other.name+" at a "+victim.name, func(t *testing.T) {
					s.FlushAll()
					wrote := makeKind(t, s, victim)
					if c, ok := wrote.(interface {
						Create(context.Context) (bool, error)
					}); ok {
						if _, err := c.Create(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := wrote.AddAll(t.Context(), theirs); err != nil {
						t.Fatal(err)
					}
					before := stored(t, s)
					// A handle refuses once it knows: each Add has its own.
					var mismatch *bloom.MismatchError
					for _, item := range ours[:20] {
						if _, err := makeKind(t, s, other).Add(t.Context(), item); !errors.As(err, &mismatch) {
							t.Fatalf("Add: %v, want a MismatchError", err)
						}
					}
					if _, err := makeKind(t, s, other).AddAll(t.Context(), ours); !errors.As(err, &mismatch) {
						t.Fatalf("AddAll: %v, want a MismatchError", err)
					}
					words := 24
					if !victim.word {
						words = 16 // the third means nothing here
					}
					wantOnlyMore(t, before, stored(t, s), words, other.script)
					found, err := makeKind(t, s, victim).ExistsAll(t.Context(), theirs)
					if err != nil || count(found) != len(theirs) {
						t.Errorf("%d of %d found, %v", count(found), len(theirs), err)
					}
				})
			}
		}
	})
}

func makeKind(t *testing.T, s *upstashtest.Server, k wrongKind) adder {
	t.Helper()
	a, err := k.make(s.Client())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// wantOnlyMore holds a string against what it was: the bytes of its words are
// the same, no bit is cleared, and after scripts nothing has changed.
func wantOnlyMore(t *testing.T, before, after string, words int, same bool) {
	t.Helper()
	if same && before != after {
		t.Error("a script changed the string of another type")
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
