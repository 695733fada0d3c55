package bloom

import "github.com/upbloom/upbloom/bloom/internal/cells"

// Positions appends the item's positions to dst and returns the longer slice:
// g.Hashes numbers from 0 to g.Bits-1, in the order of the format, some of them
// perhaps equal. Cell number p is at bit 192+p of the Redis string, or at bit p
// in the Bare layout. [SchemeBlocked] has two positions in each word. An odd
// number of hashes counts as one less, and fewer than 53 bits hold no word and
// no position.
//
// It allocates nothing if dst has room, and costs one hash of the item and a
// few instructions a position. If the geometry has no bits or no hashes, it
// appends nothing. It takes any other number of bits, even if no [Config]
// accepts it. An unknown scheme counts as [SchemeXXH3].
func (g Geometry) Positions(dst []uint64, item string) []uint64 {
	if g.Bits == 0 || g.Hashes < 1 {
		return dst
	}
	if g.Scheme == SchemeFNV1a {
		h1, h2 := cells.FNV1aPair(item)
		return cells.AppendDoubleHashed(dst, h1, h2, g.Bits, g.Hashes)
	}
	x, y := cells.Digest(item, g.Seed)
	if g.Scheme == SchemeBlocked {
		return cells.AppendBlocked(dst, x, y, g.Bits/wordBits, g.Hashes/2)
	}
	return cells.AppendEnhanced(dst, x, y, g.Bits, g.Hashes)
}

// appendWords appends the words of an item of the blocked scheme.
func (g Geometry) appendWords(dst []cells.Word, item string) []cells.Word {
	x, y := cells.Digest(item, g.Seed)
	return cells.AppendWords(dst, x, y, g.Bits/wordBits, g.Hashes/2)
}
