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

// goldenSeed is as good as any: its digits are those of the golden ratio.
const goldenSeed = 0x9e3779b97f4a7c15

// TestDigest has the longest item of each of the hash's ways and the shortest
// one of the next.
func TestDigest(t *testing.T) {
	for _, v := range []struct {
		length int
		seed   uint64
		want   string
	}{
		{0, 0x0, "99aa06d3014798d86001c324468d497f"},
		{1, goldenSeed, "e366b8c99a31df50062b185e4e01441a"},
		{3, goldenSeed, "ddf425069397ef64d2672b4946682e45"},
		{4, 0x0, "879236df2f90a4976e5aea3de87f763b"},
		{8, 0x0, "cf06cef0b74d268d6d58e81b4fac6d31"},
		{9, goldenSeed, "16e03dff34301b5a49d169cba55884c0"},
		{16, 0x0, "65a342cedcedaeb47345e6afaf8005f7"},
		{17, goldenSeed, "ee124107f17e199a564a38703121a0df"},
		{128, 0x0, "525cdcce9a4594b4899ac935e88cae79"},
		{129, goldenSeed, "095e7d0d19612b4616aeb14dcc071683"},
		{240, 0x0, "0985c8df63549acaae48975e6aacc567"},
		{241, goldenSeed, "87986873161f34164e4e303639ebdc1d"},
		{1024, 0x0, "91c982cfddd9f89e8625d7e9ff26fe3b"},
		{1025, goldenSeed, "0257b9830b07360472172c3663582625"},
		{17408, 0x0, "b4541677e270f4ea8af2b690d7e65ab5"},
	} {
		x, y := Digest(testItem(v.length), v.seed)
		if got := fmt.Sprintf("%016x%016x", x, y); got != v.want {
			t.Errorf("%d bytes, seed %#x: %s, want %s", v.length, v.seed, got, v.want)
		}
	}
}

// TestDigestsOfAllLengths compares the SHA-256 of all digests, one behind the
// other.
func TestDigestsOfAllLengths(t *testing.T) {
	all := sha256.New()
	for _, seed := range []uint64{0, 1, goldenSeed, 1<<64 - 1} {
		for n := range 2050 {
			x, y := Digest(testItem(n), seed)
			all.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, x), y))
		}
	}
	want := "b8393e39eea37ccdd2dd2862dfb989a4162f9f0ead8245bf1d3171058103193c"
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
