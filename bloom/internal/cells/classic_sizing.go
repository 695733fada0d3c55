package cells

import "math"

// ln2Squared turns -ln p into bits of filter: one ln 2 changes the base from e to
// 2, and the other is the price of a filter over an optimal structure, 44%.
const ln2Squared = math.Ln2 * math.Ln2

// ClassicBits returns ceil(-n ln p / (ln 2)^2), for n and p as bloom.OptimalBits
// takes them.
func ClassicBits(n uint64, p float64) uint64 {
	switch {
	case math.IsNaN(p):
		return 0
	case p <= 0:
		return math.MaxUint64
	case p >= 1:
		return 1
	}
	bits := math.Ceil(-float64(max(n, 1)) * ln(p) / ln2Squared)
	return max(1, saturate(bits))
}

// ClassicHashes returns max(1, round(m/n ln 2)), at most math.MaxInt32.
func ClassicHashes(m, n uint64) int {
	k := math.Round(float64(m) / float64(max(n, 1)) * math.Ln2)
	return int(min(max(k, 1), math.MaxInt32))
}

// saturate converts a float, which is neither negative nor NaN, to MaxUint64 at
// most. Go's own conversion of a larger value differs between amd64, arm64 and
// wasm.
func saturate(f float64) uint64 {
	if f >= 1<<64 {
		return math.MaxUint64
	}
	return uint64(f)
}
