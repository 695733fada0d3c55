package opsize_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/bloom/internal/opsize"
	"github.com/upbloom/upbloom/upstash"
)

func TestSizesOfOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]string{"u1", "i8", "u53", "i64"}).Draw(t, "type")
		offset := rapid.Uint64Range(0, 1<<32-1).Draw(t, "offset")
		value := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 2)).Draw(t, "value")
		empty := upstash.NewBitField("k").Size()
		get := upstash.NewBitField("k").Get(typ, offset).Size() - empty
		if got := opsize.Get(typ, offset); got != get {
			t.Errorf("Get = %d, want %d", got, get)
		}
		set := upstash.NewBitField("k").Set(typ, offset, value).Size() - empty
		if got := opsize.Set(typ, offset, value); got != set {
			t.Errorf("Set = %d, want %d", got, set)
		}
	})
}
