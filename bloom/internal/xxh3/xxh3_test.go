package xxh3

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	peer "github.com/zeebo/xxh3"
)

// The package zeebo/xxh3 is the witness. The vectors of package bloom, written
// by Python's xxhash, are another.

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// lengths are all up to two blocks, and those around the ends of more blocks.
func lengths() (all []int) {
	for n := range 2*blockBytes + 2 {
		all = append(all, n)
	}
	for _, blocks := range []int{3, 4, 16, 17} {
		for _, stripes := range []int{0, 1} {
			end := blocks*blockBytes + stripes*stripeBytes
			all = append(all, end-1, end, end+1)
		}
	}
	return all
}

func TestSums(t *testing.T) {
	b := noise(18 * blockBytes)
	for _, n := range lengths() {
		// Each begins at another address.
		checkSums(t, b[n%64:n%64+n], []uint64{0, 1, 1 << 63, math.MaxUint64, 0x0123456789ABCDEF})
	}
	checkSums(t, nil, []uint64{0, 1})
}

func checkSums(t *testing.T, b []byte, seeds []uint64) {
	t.Helper()
	if got, want := Sum64(b), peer.Hash(b); got != want {
		t.Errorf("Sum64 of %d bytes = %016x, want %016x", len(b), got, want)
	}
	for _, seed := range seeds {
		hi, lo := Sum128(string(b), seed)
		if want := peer.Hash128Seed(b, seed); hi != want.Hi || lo != want.Lo {
			t.Errorf("Sum128 of %d bytes, seed %#x = %016x%016x, want %x", len(b), seed, hi, lo, want.Bytes())
		}
	}
}

// TestHasher writes in pieces of all kinds of sizes.
func TestHasher(t *testing.T) {
	b := noise(18 * blockBytes)
	for _, n := range lengths() {
		for _, size := range []int{1, 63, 240, blockBytes - 1, blockBytes, blockBytes + 1, 5000, len(b)} {
			checkHasher(t, b[:n], size)
		}
	}
}

func checkHasher(t *testing.T, b []byte, size int) {
	t.Helper()
	var h Hasher
	for rest := b; len(rest) > 0; {
		piece := rest[:min(size, len(rest))]
		if n, err := h.Write(piece); n != len(piece) || err != nil {
			t.Fatalf("Write of %d bytes = %d, %v", len(piece), n, err)
		}
		rest = rest[len(piece):]
		if size >= blockBytes {
			h.Sum64() // changes nothing
		}
	}
	if got, want := h.Sum64(), peer.Hash(b); got != want {
		t.Errorf("%d bytes in pieces of %d: %016x, want %016x", len(b), size, got, want)
	}
}

func FuzzSums(f *testing.F) {
	for _, n := range []int{0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025, 3000} {
		f.Add(noise(n), uint64(n), uint16(100))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64, size uint16) {
		checkSums(t, b, []uint64{0, seed})
		checkHasher(t, b, int(size)+1)
	})
}

// BenchmarkSum128 has both packages hash the same.
//
//	go test -run '^$' -bench Sum128 ./bloom/internal/xxh3
//
// With -tags noasm the other one does without its assembly too.
func BenchmarkSum128(b *testing.B) {
	for _, n := range []int{4, 8, 16, 24, 36, 64, 128, 240, 256, 1024, 16384} {
		s := strings.Repeat("x", n)
		b.Run(fmt.Sprintf("bytes=%d/by=us", n), func(b *testing.B) {
			for b.Loop() {
				Sum128(s, 0)
			}
		})
		b.Run(fmt.Sprintf("bytes=%d/by=zeebo", n), func(b *testing.B) {
			for b.Loop() {
				peer.HashString128(s)
			}
		})
	}
}
