package bloom_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

func ExampleConfig() {
	cfg := bloom.Config{Capacity: 5_000, FPRate: 0.01, TTL: 24 * time.Hour}
	fmt.Println(cfg)
	// Output: bloom.Config{Capacity: 5000, FPRate: 0.01, Scheme: blocked, Layout: headed, TTL: 24h0m0s}
}

func ExampleConfig_Geometry() {
	g, err := bloom.Config{Capacity: 10_000, FPRate: 0.01}.Geometry()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g)
	// Output: 107,484 bits (13.1 KiB), k=4, blocked
}

// A filter by another program: its bits and hashes are given, not worked out.
func ExampleConfig_Geometry_explicit() {
	g, err := bloom.Config{
		Bits: 95_851, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare,
	}.Geometry()
	fmt.Println(g, err)
	// Output: 95,851 bits (11.7 KiB), k=7, fnv1a <nil>
}

func ExampleConfigError() {
	_, err := bloom.Config{Capacity: 10_000, FPRate: 1.5}.Geometry()
	fmt.Println(err)

	var cerr *bloom.ConfigError
	if errors.As(err, &cerr) {
		fmt.Println(cerr.Field)
	}
	// Output:
	// bloom: Config.FPRate is 1.5: it must be above 0 and below 1, e.g. 0.01
	// FPRate
}

// A program deployed with another capacity finds out, and gets no wrong answer.
func ExampleMismatchError() {
	err := error(&bloom.MismatchError{ // as a look-up returns it
		Want: bloom.Geometry{Bits: 21_518, Hashes: 4},
		Got:  bloom.Geometry{Bits: 10_759, Hashes: 4},
		// The stored filter has a seed, and it is not ours.
		OtherSeed: true, GotSeeded: true,
	})

	var mismatch *bloom.MismatchError
	if errors.As(err, &mismatch) {
		fmt.Println("stored:", mismatch.Got)
		fmt.Println("wanted:", mismatch.Want)
		fmt.Println("ask for its seed:", mismatch.GotSeeded && mismatch.OtherSeed)
	}
	// Output:
	// stored: 10,759 bits (1.3 KiB), k=4, blocked
	// wanted: 21,518 bits (2.6 KiB), k=4, blocked
	// ask for its seed: true
}

func ExampleGeometry_Positions() {
	g := bloom.Geometry{Bits: 10_751_050, Hashes: 4} // a million items at 1 in 100
	var dst []uint64                                 // only the first call allocates
	for _, item := range []string{"abc", "user-123@example.com"} {
		dst = g.Positions(dst[:0], item)
		fmt.Println(dst)
	}
	// Output:
	// [5375652 5375676 6518010 6517996]
	// [6123236 6123214 6105787 6105789]
}

func ExampleGeometry_Bytes() {
	g := bloom.Geometry{Bits: 107_484, Hashes: 4}
	fmt.Println(g.Bytes(bloom.LayoutHeaded), g.Bytes(bloom.LayoutBare))
	// Output: 13460 13436
}

func ExampleGeometry_String() {
	fmt.Println(bloom.Geometry{Bits: 107_484, Hashes: 4, Seed: 0x5eed})
	// Output: 107,484 bits (13.1 KiB), k=4, blocked, seeded
}

func ExampleGeometry_Format() {
	fmt.Printf("%#v\n", bloom.Geometry{Bits: 107_484, Hashes: 4, Seed: 0x5eed})
	// Output: 107,484 bits (13.1 KiB), k=4, blocked, seeded
}

func ExampleScheme() {
	fmt.Println(bloom.SchemeXXH3, bloom.SchemeFNV1a)
	// Output: xxh3 fnv1a
}

func ExampleLayout() {
	fmt.Println(bloom.LayoutHeaded, bloom.LayoutBare)
	// Output: headed bare
}

func ExampleKind() {
	fmt.Println(bloom.KindFilter, bloom.KindShard, bloom.KindLayers, bloom.KindWindow)
	// Output: filter shard layers window
}
