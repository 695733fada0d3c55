package peertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// geometries are shared by both sides. The first is so full that it has false
// positives, on which both must agree too; the last needs offsets of 22 bits.
var geometries = []struct {
	bits   uint64
	hashes int
	way    string // how JavaScript talks to Redis, see filter.mjs
}{
	{509, 4, "setbit"},
	{4096, 7, "pipeline"},
	{2_500_000, 7, "bitfield"},
}

// TestFilterIsShared fills one filter from JavaScript and another from Go with
// the same items in the same order, and lets each side read both.
func TestFilterIsShared(t *testing.T) {
	everywhere(t, func(t *testing.T, server *upstashtest.Server, set settings) {
		for _, geo := range geometries {
			t.Run(fmt.Sprintf("bits=%d,hashes=%d,way=%s", geo.bits, geo.hashes, geo.way), func(t *testing.T) {
				cfg := bloom.Config{
					Layout: bloom.LayoutBare, Scheme: bloom.SchemeFNV1a,
					Bits: geo.bits, Hashes: geo.hashes,
				}
				share(t, server, set, cfg, geo.way)
			})
		}
	})
}

func share(t *testing.T, server *upstashtest.Server, set settings, cfg bloom.Config, way string) {
	client := server.Client()
	suffix := fmt.Sprint(cfg.Bits)
	open := func(key string) *bloom.Filter {
		f, err := bloom.New(client, key+suffix, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	ours, theirs := open("go"), open("js")
	ask := func(answers []bool, err error) []bool {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answers
	}
	present, absent := presentItems(), absentItems()

	added := ask(ours.AddAll(t.Context(), present))
	js := func(key, call string) string {
		return fmt.Sprintf("new Filter(redis, %q, {bits: %d, hashes: %d, way: %q}).%s",
			key+suffix, cfg.Bits, cfg.Hashes, way, call)
	}
	out := play(t, session{
		URL: server.URL, Token: server.Token, Options: set,
		Items: map[string][]string{"present": present, "absent": absent},
		Steps: []string{
			js("js", "addAll(items.present)"),
			js("js", "hasAll(items.absent)"),
			js("go", "hasAll(items.present)"),
			js("go", "hasAll(items.absent)"),
			js("go", "addAll(items.present)"),
		},
	})

	// New or seen: the same for both, although some items hit bits of others.
	equal(t, "JavaScript's added", decode[[]bool](t, out[0]), added)
	all, none := repeat(true, len(present)), repeat(false, len(present))
	equal(t, "Go's items in JavaScript", decode[[]bool](t, out[2]), all)
	equal(t, "JavaScript's items in Go", ask(theirs.ExistsAll(t.Context(), present)), all)

	verdicts := ask(ours.ExistsAll(t.Context(), absent))
	equal(t, "JavaScript on its own filter, absent items", decode[[]bool](t, out[1]), verdicts)
	equal(t, "JavaScript on Go's filter, absent items", decode[[]bool](t, out[3]), verdicts)
	equal(t, "Go on JavaScript's filter, absent items", ask(theirs.ExistsAll(t.Context(), absent)), verdicts)
	if !slices.Contains(verdicts, false) {
		t.Error("no absent item was denied: the filter is too full to show anything")
	}
	if cfg.Bits < 1000 && !slices.Contains(verdicts, true) {
		t.Error("no false positive: the filter is too empty to compare them")
	}

	equal(t, "JavaScript adds to Go's filter again", decode[[]bool](t, out[4]), none)
	equal(t, "Go adds to JavaScript's filter again", ask(theirs.AddAll(t.Context(), present)), none)
	if stored(t, server, "go"+suffix) != stored(t, server, "js"+suffix) {
		t.Error("the two strings differ")
	}
}

// presentItems are what encodings get wrong, and more to fill the filter.
func presentItems() []string {
	items := []string{
		"", "a", "user-123@example.com", "https://example.com/a/b?c=d#e", `"\/'`,
		"naïve-ключ-🔑", "日本語", "👩‍👩‍👧", "é", "e\u0301", "\ufeffbom", "\ufffd",
		"\x00", "a\x00", "\x1f\x7f\u0080", "\u2028\u2029", "<&>", "\U0010ffff",
		strings.Repeat("long ", 1000), "__proto__",
	}
	for i := range 80 {
		items = append(items, fmt.Sprintf("item-%d ж", i))
	}
	return items
}

func absentItems() []string {
	items := []string{" ", "A", "è", "\x01", "\x00a", "日本", "👩", "bom"}
	for i := range 192 {
		items = append(items, fmt.Sprintf("absent-%d ✗", i))
	}
	return items
}

func equal(t *testing.T, what string, got, want []bool) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d answers, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: item %d: %v, want %v", what, i, got[i], want[i])
		}
	}
}

func repeat(v bool, n int) []bool { return slices.Repeat([]bool{v}, n) }

func stored(t *testing.T, server *upstashtest.Server, key string) string {
	t.Helper()
	v, err := server.Exec("GET", key)
	s, ok := v.(string)
	if err != nil || !ok || s == "" {
		t.Fatalf("GET %s: %T, %v", key, v, err)
	}
	return s
}
