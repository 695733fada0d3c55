// Package xxh3 computes XXH3, a hash of the family xxHash, as its specification
// describes it: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
//
// It is Go alone, and does nothing when a program starts. A package with
// assembly asks the processor then which instructions it has, and a virtual
// machine takes most of a millisecond to answer. Up to 128 bytes are hashed as
// fast as with assembly.
package xxh3

import (
	"math/bits"
	"unsafe"
)

// The names of the specification, without underscores.
const (
	prime32x1 = 0x9E3779B1
	prime32x2 = 0x85EBCA77
	prime32x3 = 0xC2B2AE3D
	prime64x1 = 0x9E3779B185EBCA87
	prime64x2 = 0xC2B2AE3D27D4EB4F
	prime64x3 = 0x165667B19E3779F9
	prime64x4 = 0x85EBCA77C2B2AE63
	prime64x5 = 0x27D4EB2F165667C5
	primeMX1  = 0x165667919E3779F9
	primeMX2  = 0x9FB21C651E98DF25
)

// The default secret. Each word is named for its first byte, and is
// little-endian.
const (
	key0, key8     = 0xBE4BA423396CFEB8, 0x1CAD21F72C81017C
	key16, key24   = 0xDB979083E96DD4DE, 0x1F67B3B7A4A44072
	key32, key40   = 0x78E5C0CC4EE679CB, 0x2172FFCC7DD05A82
	key48, key56   = 0x8E2443F7744608B8, 0x4C263A81E69035E0
	key64, key72   = 0xCB00C391BB52283C, 0xA32E531B8B65D088
	key80, key88   = 0x4EF90DA297486471, 0xD8ACDEA946EF1938
	key96, key104  = 0x3F349CE33F76FAA8, 0x1D4F0BC7C7BBDCF9
	key112, key120 = 0x3159B4CD4BE0518A, 0x647378D9C97E9FC8
	key128, key136 = 0xC3EBD33483ACC5EA, 0xEB6313FAFFA081C5
	key144, key152 = 0x49DAF0B751DD0D17, 0x9E68D429265516D3
	key160, key168 = 0xFCA1477D58BE162B, 0xCE31D07AD1B8F88F
	key176, key184 = 0x280416958F3ACB45, 0x7E404BBBCAFBD7AF
)

type keys [24]uint64

var secret = keys{
	key0, key8, key16, key24, key32, key40, key48, key56,
	key64, key72, key80, key88, key96, key104, key112, key120,
	key128, key136, key144, key152, key160, key168, key176, key184,
}

// from returns eight words that begin at any byte of the secret.
func (k *keys) from(i uint) (w [8]uint64) {
	both, shift := k[i/8:i/8+9], i%8*8
	for j := range w {
		w[j] = both[j]>>shift | both[j+1]<<(64-shift)
	}
	return w
}

// The functions below use package unsafe. text returns a string that shares
// the memory of b, and no caller keeps it after its call. The others return the
// bytes of s from i on, and panic if s has too few.

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func at4(s string, i int) *[4]byte {
	return (*[4]byte)(unsafe.Pointer(unsafe.StringData(s[i : i+4])))
}

func at8(s string, i int) *[8]byte {
	return (*[8]byte)(unsafe.Pointer(unsafe.StringData(s[i : i+8])))
}

func at16(s string, i int) *[16]byte {
	return (*[16]byte)(unsafe.Pointer(unsafe.StringData(s[i : i+16])))
}

func at64(s string, i int) *[64]byte {
	return (*[64]byte)(unsafe.Pointer(unsafe.StringData(s[i : i+64])))
}

// fold multiplies a and b, and returns both halves of the product in one.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// avalanche spreads each bit of h over all of them.
func avalanche(h uint64) uint64 {
	h = (h ^ h>>37) * primeMX1
	return h ^ h>>32
}

// avalanche64 is the avalanche of XXH64, for items of up to three bytes.
func avalanche64(h uint64) uint64 {
	h = (h ^ h>>33) * prime64x2
	h = (h ^ h>>29) * prime64x3
	return h ^ h>>32
}

// upTo3 returns the bits of an item of one to three bytes.
func upTo3(s string) uint32 {
	n := len(s)
	return uint32(s[0])<<16 | uint32(s[n>>1])<<24 | uint32(s[n-1]) | uint32(n)<<8
}
