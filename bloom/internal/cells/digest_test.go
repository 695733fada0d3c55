package cells

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/zeebo/xxh3"
)

// What the tests want was printed by Python's xxhash, for
//
//	def item(n): return bytes((7*i*i + i//256) % 256 for i in range(n))
func testItem(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(7*i*i + i/256)
	}
	return string(b)
}

// goldenSeed is as good as any: it has the digits of the golden ratio.
const goldenSeed = 0x9e3779b97f4a7c15

// TestDigests compares the SHA-256 of the digests of all lengths, one behind the
// other. Each of the hash's ways has its longest item and the shortest one of the
// next.
func TestDigests(t *testing.T) {
	all := sha256.New()
	for _, seed := range []uint64{0, 1, goldenSeed, 1<<64 - 1} {
		for n := range 2051 {
			if n == 2050 {
				n = 17_408 // of several of its blocks
			}
			x, y := Digest(testItem(n), seed)
			all.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, x), y))
		}
	}
	want := "ae48f38e679efce7e22c4a95a59e122bb1e8ef764e12d4b74188b9d0b01d9314"
	if got := fmt.Sprintf("%x", all.Sum(nil)); got != want {
		t.Errorf("SHA-256 of the digests = %s, want %s", got, want)
	}
}

// TestChecksums does the same for the hash of 64 bits, of a seed and of a
// stream, in one piece and in several.
func TestChecksums(t *testing.T) {
	all := sha256.New()
	for n := range 2050 {
		item := testItem(n)
		sum := xxh3.HashString(item)
		all.Write(binary.BigEndian.AppendUint64(nil, sum))
		for _, size := range []int{7, 240, 1024} {
			if got := inPieces(item, size); got != sum {
				t.Errorf("%d bytes in pieces of %d: %x, want %x", n, size, got, sum)
			}
		}
	}
	want := "d25a3e071ceba077e6ce9944b1d7498ffd07d759554af49a73a5a13d87ca3268"
	if got := fmt.Sprintf("%x", all.Sum(nil)); got != want {
		t.Errorf("SHA-256 of the hashes = %s, want %s", got, want)
	}
}

func inPieces(item string, size int) uint64 {
	var h xxh3.Hasher
	for len(item) > size {
		_, _ = h.WriteString(item[:size])
		item = item[size:]
	}
	_, _ = h.WriteString(item)
	return h.Sum64()
}

func TestDigestAllocations(t *testing.T) {
	item := testItem(2000)
	if each := testing.AllocsPerRun(100, func() { Digest(item, 7) }); each != 0 {
		t.Errorf("%v allocations a digest, want none", each)
	}
}
