//go:build !wasm

package bloom_test

import (
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/jstest"
)

// WebAssembly computes the same positions and sizes, bit for bit.
func TestVectorsOnWasm(t *testing.T) {
	t.Parallel()
	jstest.Run(t, "^TestVectors(Blocked|XXH3|FNV1a|Header|Sizing|BlockedSizing|Window|WindowEpochs|Cuckoo|CuckooWord|Layers|Shards)$")
}
