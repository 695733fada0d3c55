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
	// Output: bloom.Config{Capacity: 5000, FPRate: 0.01, Scheme: xxh3, Layout: headed, TTL: 24h0m0s}
}

func ExampleConfig_Geometry() {
	g, err := bloom.Config{Capacity: 10_000, FPRate: 0.01}.Geometry()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g)
	// Output: 95,851 bits (11.7 KiB), k=7, xxh3
}

// A filter that another program wrote: its bits and hashes are given, not worked out.
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

// A program that was deployed with another capacity finds out, and gets no wrong answer.
func ExampleMismatchError() {
	err := error(&bloom.MismatchError{ // as a look-up returns it
		Want: bloom.Geometry{Bits: 19_171, Hashes: 7},
		Got:  bloom.Geometry{Bits: 9_586, Hashes: 7},
	})

	var mismatch *bloom.MismatchError
	if errors.As(err, &mismatch) {
		fmt.Println("stored:", mismatch.Got)
		fmt.Println("wanted:", mismatch.Want)
	}
	// Output:
	// stored: 9,586 bits (1.2 KiB), k=7, xxh3
	// wanted: 19,171 bits (2.3 KiB), k=7, xxh3
}

func ExampleGeometry_Positions() {
	g := bloom.Geometry{Bits: 9_585_059, Hashes: 7}
	var dst []uint64 // kept from item to item, so that no call but the first allocates
	for _, item := range []string{"abc", "user-123@example.com"} {
		dst = g.Positions(dst[:0], item)
		fmt.Println(dst)
	}
	// Output:
	// [786495 6538471 2705389 52516 5804498 3151632 8903623]
	// [1849695 614155 558823 8908345 8853018 7617488 7562170]
}

func ExampleGeometry_Bytes() {
	g := bloom.Geometry{Bits: 95_851, Hashes: 7}
	fmt.Println(g.Bytes(bloom.LayoutHeaded), g.Bytes(bloom.LayoutBare))
	// Output: 11998 11982
}

func ExampleGeometry_String() {
	fmt.Println(bloom.Geometry{Bits: 95_851, Hashes: 7, Seed: 0x5eed})
	// Output: 95,851 bits (11.7 KiB), k=7, xxh3, seeded
}

func ExampleGeometry_Format() {
	fmt.Printf("%#v\n", bloom.Geometry{Bits: 95_851, Hashes: 7, Seed: 0x5eed})
	// Output: 95,851 bits (11.7 KiB), k=7, xxh3, seeded
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
	fmt.Println(bloom.KindFilter, bloom.Kind(1), bloom.Kind(2), bloom.Kind(3))
	// Output: filter shard layer pane
}
