package bloom

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// seedTag returns the byte of the header that tells filters of different seeds apart: 0 for
// seed 0, else 1 to 255. The tag gives away no more than these 8 bits of a secret seed, and
// so misses one difference in 255.
func seedTag(seed uint64) uint8 {
	if seed == 0 {
		return 0
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	return uint8(1 + xxh3.Hash(b[:])%255)
}
