package bloom_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Exists reports whether an item was added. A "no" is always true; a missing
// filter is an error, as nobody knows what was in it.
func TestExists(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		f, err := bloom.New(s.Client(), "usernames", bloom.Config{Capacity: 1000, FPRate: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := f.Exists(ctx, "alice"); !errors.Is(err, bloom.ErrNotFound) || found {
			t.Errorf("without a filter: %v, %v, want ErrNotFound", found, err)
		}
		if _, err := f.AddAll(ctx, []string{"alice", "bob"}); err != nil {
			t.Fatal(err)
		}
		for item, want := range map[string]bool{"alice": true, "bob": true, "carol": false, "": false} {
			found, err := f.Exists(ctx, item)
			if err != nil {
				t.Fatal(err)
			}
			if found != want {
				t.Errorf("Exists(%q) = %v, want %v", item, found, want)
			}
		}
	})
}

// largestWord is the largest that a word of 53 bits can be.
const largestWord = 1<<53 - 1

// An impossible word is an error, not a "no" and not a "yes".
func TestImpossibleWords(t *testing.T) {
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.1, MissingIsEmpty: true} // one word an item
	h := headerWordOf(cfg)
	for _, word := range []string{
		"-1", "-9007199254740992", "9007199254740992", "9223372036854775807", "99999999999999999999",
		"9.007199254740991e15", "9007199254740991.0", "9e15", "0e0", "null", "true", `"9007199254740991"`, "[1]",
	} {
		c := canned(t, fmt.Sprintf(`{"result":[%s,%s]}`, h, word))
		found, err := handle(t, c, cfg).Exists(t.Context(), "a")
		if found || !errors.Is(err, upstash.ErrBadResponse) {
			t.Errorf("%s: Exists = %v, %v, want ErrBadResponse", word, found, err)
		}
		all, err := handle(t, c, cfg).ExistsAll(t.Context(), []string{"a"})
		if count(all) != 0 || !errors.Is(err, upstash.ErrBadResponse) {
			t.Errorf("%s: ExistsAll = %v, %v, want ErrBadResponse", word, all, err)
		}
	}
	for word, want := range map[int64]bool{0: false, largestWord: true} {
		c := canned(t, fmt.Sprintf(`{"result":[%s,%d]}`, h, word))
		exists(t, handle(t, c, cfg), "a", want)
	}
}

// A look-up finds an item only if all of its bits are set, in each of its
// words.
func TestEveryBitOfAWordCounts(t *testing.T) {
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01}
	g, err := cfg.Geometry()
	if err != nil {
		t.Fatal(err)
	}
	h, positions := headerWordOf(cfg), g.Positions(nil, "a")
	for missing := range positions {
		words := []int64{largestWord, largestWord}
		words[missing/2] &^= 1 << (52 - positions[missing]%53)
		c := canned(t, fmt.Sprintf(`{"result":[%s,%d,%d]}`, h, words[0], words[1]))
		exists(t, handle(t, c, cfg), "a", false)
	}
}

// If an item meets a word twice, it reads the word once, and sets all of its
// bits.
func TestRepeatedWordIsReadOnce(t *testing.T) {
	s := upstashtest.NewServer(t)
	c, w := watch(t, s)
	f := handle(t, c, bloom.Config{Bits: 53, Hashes: 62})
	add(t, f, "a", true)
	add(t, f, "a", false)
	w.Bodies = nil
	exists(t, f, "a", true)
	if n := operations(w.Bodies[0], "GET"); n != 2 {
		t.Errorf("%d reads, want the header and one word: %s", n, w.Bodies[0])
	}
	if !strings.Contains(w.Bodies[0], `"GET","u53","192"`) {
		t.Errorf("the word is not the one at bit 192: %s", w.Bodies[0])
	}
}
