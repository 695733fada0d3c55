package peertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A pairing is a geometry for both sides, and one of the ways in which
// filter.mjs talks to Redis.
type pairing struct {
	bits   uint64
	hashes int
	way    string
}

// The first is so full that it has false positives, and both sides must agree
// about them. The last needs offsets of 22 bits.
var pairings = []pairing{
	{149, 3, "setbit"},
	{4096, 7, "pipeline"},
	{2_500_000, 7, "bitfield"},
}

func (p pairing) String() string {
	return fmt.Sprintf("bits=%d,hashes=%d,way=%s", p.bits, p.hashes, p.way)
}

// key returns the key of the filter that a side fills.
func (p pairing) key(side string) string { return side + ":" + p.way }

// filter returns Go's handle to the filter of a side.
func (p pairing) filter(t *testing.T, server *upstashtest.Server, side string) *bloom.Filter {
	t.Helper()
	return bloomtest.HandleAt(t, server.Client(), p.key(side), bloom.Config{
		Layout: bloom.LayoutBare, Scheme: bloom.SchemeFNV1a,
		Bits: p.bits, Hashes: p.hashes,
	})
}

// steps returns the steps of JavaScript with both filters, after Go has filled
// its own.
func (p pairing) steps() []string {
	js := func(side, call string) string {
		return fmt.Sprintf("new Filter(redis, %q, {bits: %d, hashes: %d, way: %q}).%s",
			p.key(side), p.bits, p.hashes, p.way, call)
	}
	return []string{
		js("js", "addAll(items.present)"),
		js("js", "hasAll(items.absent)"),
		js("go", "hasAll(items.present)"),
		js("go", "hasAll(items.absent)"),
		js("go", "addAll(items.present)"),
	}
}

// TestFilterIsShared fills one filter from JavaScript and another from Go, with
// the same items in the same order. Then each side reads both.
func TestFilterIsShared(t *testing.T) {
	everywhere(t, func(t *testing.T, server *upstashtest.Server, set settings) {
		var steps []string
		added := make([][]bool, len(pairings))
		for i, p := range pairings {
			added[i] = answers(t)(p.filter(t, server, "go").AddAll(t.Context(), presentItems()))
			steps = append(steps, p.steps()...)
		}
		out := play(t, session{
			URL: server.URL, Token: server.Token, Options: set, Steps: steps,
			Items: map[string][]string{"present": presentItems(), "absent": absentItems()},
		})
		for i, p := range pairings {
			t.Run(p.String(), func(t *testing.T) {
				compare(t, server, p, added[i], out[:len(p.steps())])
			})
			out = out[len(p.steps()):]
		}
	})
}

// compare compares the answers of JavaScript with Go's, and the bytes of the
// two filters.
func compare(t *testing.T, server *upstashtest.Server, p pairing, added []bool, out []outcome) {
	ours, theirs := p.filter(t, server, "go"), p.filter(t, server, "js")
	present, absent := presentItems(), absentItems()
	all, none := slices.Repeat([]bool{true}, len(present)), make([]bool, len(present))

	// Both report the same items as new, although items share bits.
	equal(t, "JavaScript's added", decode[[]bool](t, out[0]), added)
	equal(t, "Go's items in JavaScript", decode[[]bool](t, out[2]), all)
	equal(t, "JavaScript's items in Go", answers(t)(theirs.ExistsAll(t.Context(), present)), all)

	verdicts := answers(t)(ours.ExistsAll(t.Context(), absent))
	equal(t, "JavaScript on its own filter, absent items", decode[[]bool](t, out[1]), verdicts)
	equal(t, "JavaScript on Go's filter, absent items", decode[[]bool](t, out[3]), verdicts)
	equal(t, "Go on JavaScript's filter, absent items",
		answers(t)(theirs.ExistsAll(t.Context(), absent)), verdicts)
	if !slices.Contains(verdicts, false) {
		t.Error("no absent item was denied: the filter is too full to show anything")
	}
	if p == pairings[0] && !slices.Contains(verdicts, true) {
		t.Error("no false positive: the filter is too empty to compare them")
	}

	equal(t, "JavaScript adds to Go's filter again", decode[[]bool](t, out[4]), none)
	equal(t, "Go adds to JavaScript's filter again",
		answers(t)(theirs.AddAll(t.Context(), present)), none)
	own, js := bloomtest.StoredAt(t, server, p.key("go")), bloomtest.StoredAt(t, server, p.key("js"))
	if own == "" || own != js {
		t.Error("the strings that Go and JavaScript wrote differ, want equal ones")
	}
}

// answers returns the answers of a batch, or ends the test.
func answers(t *testing.T) func([]bool, error) []bool {
	return func(a []bool, err error) []bool {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

// presentItems are items often spoilt by encodings, and others to fill the
// filter.
func presentItems() []string {
	items := []string{
		"", "a", "user-123@example.com", "https://example.com/a/b?c=d#e", `"\/'`,
		"naïve-ключ-🔑", "日本語", "👩‍👩‍👧", "é", "e\u0301", "\ufeffbom", "\ufffd",
		"\x00", "a\x00", "\x1f\x7f\u0080", "\u2028\u2029", "<&>", "\U0010ffff",
		strings.Repeat("long ", 1000), "__proto__",
	}
	for i := range 10 {
		items = append(items, fmt.Sprintf("item-%d ж", i))
	}
	return items
}

func absentItems() []string {
	items := []string{" ", "A", "è", "\x01", "\x00a", "日本", "👩", "bom"}
	for i := range 32 {
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
