package bloom_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/upbloom/upbloom/bloom"
)

// A filter of its own, without a database.
func ExampleLocal() {
	g, err := bloom.Config{Capacity: 10_000, FPRate: 0.001}.Geometry()
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := bloom.NewLocal(g)
	for _, url := range []string{"/a", "/b", "/a"} {
		fmt.Println(url, seen.Add(url))
	}
	fmt.Println(seen.Exists("/b"), seen.Exists("/c"))
	items, err := seen.Cardinality()
	fmt.Println("about", items, err)
	// Output:
	// /a true
	// /b true
	// /a false
	// true false
	// about 2 <nil>
}

// Many items in a call: in a large filter they take half of the time.
func ExampleLocal_AddAll() {
	g, err := bloom.Config{Capacity: 10_000, FPRate: 0.001}.Geometry()
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := bloom.NewLocal(g)
	fmt.Println(seen.AddAll([]string{"/a", "/b", "/a"}))
	fmt.Println(seen.ExistsAll([]string{"/b", "/c"}))
	// Output:
	// [true true false]
	// [true false]
}

// A sequence of any length, here the lines of a file.
func ExampleLocal_AddSeq() {
	g, err := bloom.Config{Capacity: 10_000, FPRate: 0.001}.Geometry()
	if err != nil {
		fmt.Println(err)
		return
	}
	file := "/a\n/b\n/a"
	seen := bloom.NewLocal(g)
	result := seen.AddSeq(strings.SplitSeq(file, "\n"))
	fmt.Println(result.New, "of", result.Items, "are new")
	// Output:
	// 2 of 3 are new
}

// Workers fill filters of their own, which are put together at the end.
func ExampleLocal_Merge() {
	g, err := bloom.Config{Capacity: 10_000, FPRate: 0.01}.Geometry()
	if err != nil {
		fmt.Println(err)
		return
	}
	all := bloom.NewLocal(g)
	for _, part := range [][]string{{"ann", "bob"}, {"bob", "cid"}} {
		worker := bloom.NewLocal(g)
		for _, name := range part {
			worker.Add(name)
		}
		if err := all.Merge(worker); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(all.Exists("ann"), all.Exists("cid"), all.Exists("dan"))

	g.Bits *= 2
	var mismatch *bloom.MismatchError
	fmt.Println(errors.As(all.Merge(bloom.NewLocal(g)), &mismatch))
	// Output:
	// true true false
	// true
}

// A filter is saved with a checksum. Its seed is a secret, and not in the file.
func ExampleReadLocal() {
	const seed = 8213
	g, err := bloom.Config{Capacity: 1_000, FPRate: 0.01, Seed: seed}.Geometry()
	if err != nil {
		fmt.Println(err)
		return
	}
	names := bloom.NewLocal(g)
	names.Add("ann")
	var file bytes.Buffer
	if _, err := names.WriteTo(&file); err != nil {
		fmt.Println(err)
		return
	}
	saved := file.Bytes()

	read, err := bloom.ReadLocal(bytes.NewReader(saved), seed)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.Exists("ann"), read.Exists("bob"))

	_, err = bloom.ReadLocal(bytes.NewReader(saved[:len(saved)/2]), seed)
	fmt.Println(errors.Is(err, bloom.ErrBadStream))
	// Output:
	// true false
	// true
}
