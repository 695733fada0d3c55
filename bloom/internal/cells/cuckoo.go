package cells

import (
	"math"
	"math/bits"
)

// The cuckoo scheme. The body is buckets of 53 bits. A bucket has k slots, each
// with a fingerprint or 0; slot 0 is the lowest. An item belongs into one of two
// buckets, and each is found from the other and the fingerprint alone.

// cuckooFactor spreads fingerprints over the buckets. Its product with the
// widest fingerprint stays below 2^53, which Lua's numbers carry exactly.
const cuckooFactor = 96280213

// CuckooWidth returns the bits of a slot, for k slots a bucket.
func CuckooWidth(k int) int { return WordBits / k }

// CuckooPlace returns the fingerprint, from 1 up, and the two buckets of the
// digest x, y in a table of so many buckets of k slots. They may be one bucket.
func CuckooPlace(x, y, buckets uint64, k int) (fp, first, second uint64) {
	fp = 1 + y%(1<<CuckooWidth(k)-1)
	first = x % buckets
	return fp, first, CuckooOther(fp, first, buckets)
}

// CuckooOther returns the other bucket of a fingerprint. Applied twice, it
// returns the first.
func CuckooOther(fp, bucket, buckets uint64) uint64 {
	other := fp * cuckooFactor % buckets
	if other < bucket {
		other += buckets
	}
	return other - bucket
}

// CuckooHas reports whether one of the bucket's k slots holds the fingerprint.
func CuckooHas(bucket uint64, fp uint64, k int) bool {
	width := CuckooWidth(k)
	for range k {
		if bucket&(1<<width-1) == fp {
			return true
		}
		bucket >>= width
	}
	return false
}

// A cuckooClass describes the tables with so many slots a bucket.
type cuckooClass struct {
	slots int
	rate  float64 // the lowest for which it is chosen: 2k / 2^width
	load  uint64  // the share of filled slots at capacity, in percent
}

// The loads are a little below those at which the first item finds no place,
// measured with 20 million buckets: 96, 95.5, 92.7 and 85.5%.
var cuckooClasses = [...]cuckooClass{
	{5, 10.0 / (1 << 10), 95},
	{4, 8.0 / (1 << 13), 94},
	{3, 6.0 / (1 << 17), 91},
	{2, 4.0 / (1 << 26), 84},
}

// MinCuckooRate is the lowest false positive rate of the cuckoo scheme, 1 in 17
// million.
const MinCuckooRate = 4.0 / (1 << 26)

// CuckooSize returns the cells m and the slots a bucket k for n items at rate p,
// which is MinCuckooRate or more. ok is false if m overflows.
func CuckooSize(n uint64, p float64) (m uint64, k int, ok bool) {
	for _, c := range cuckooClasses {
		if p < c.rate {
			continue
		}
		k := uint64(c.slots)
		hi, lo := bits.Mul64(100, n)
		if hi != 0 || lo > 1<<63 {
			return 0, 0, false
		}
		buckets := (lo+k*c.load-1)/(k*c.load) + 16
		return WordBits * buckets, c.slots, true
	}
	return 0, 0, false
}

// CuckooCapacity returns how many items a table is sized for.
func CuckooCapacity(buckets uint64, k int) uint64 {
	for _, c := range cuckooClasses {
		if c.slots == k && buckets > 16 {
			return (buckets - 16) * uint64(k) * c.load / 100
		}
	}
	return 0
}

// CuckooRate returns the false positive rate of a table with n items: the
// chance that one of the 2k slots of an item's two buckets has its fingerprint.
func CuckooRate(buckets uint64, k int, n float64) float64 {
	load := math.Min(1, n/(float64(buckets)*float64(k)))
	others := float64(uint64(1)<<CuckooWidth(k) - 1)
	return -math.Expm1(2 * float64(k) * math.Log1p(-load/others))
}

// CuckooItems returns the likely number of items in a table of so many set bits.
// A fingerprint is any number of CuckooWidth bits but 0.
func CuckooItems(k int, setBits uint64) float64 {
	width := CuckooWidth(k)
	ones := float64(width) / 2 * float64(uint64(1)<<width) / float64(uint64(1)<<width-1)
	return float64(setBits) / ones
}
