package bloom_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/upbloom/upbloom/bloom"
)

// A filter has become too small, and is rebuilt in another size. Readers and
// writers go on meanwhile, and meet no error and no false "no".
func Example_rebuildInAnotherSize() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	old, err := bloom.New(client, "seen:v1", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		fmt.Println(err)
		return
	}
	all := []string{"order-1", "order-2", "order-3"} // the source of truth
	if _, err := old.AddAll(ctx, all); err != nil {
		fmt.Println(err)
		return
	}

	// 1. Create the new filter at another key.
	larger, err := bloom.New(client, "seen:v2", bloom.Config{Capacity: 100_000, FPRate: 0.01})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := larger.Create(ctx); err != nil {
		fmt.Println(err)
		return
	}

	// 2. Every writer adds to both, in one request. The old filter decides what
	// is new. Go on when no writer adds to the old one alone any more.
	answers, err := bloom.AddIn(ctx, "order-4", old, larger)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("order-4 is new:", answers[0].Yes)

	// 3. Load all items from the source of truth. What was added in step 2
	// stays: do not Replace here.
	if _, err := larger.Load(ctx, slices.Values(all)); err != nil {
		fmt.Println(err)
		return
	}

	// 4. Readers switch to the new filter. Go on when all have.
	found, err := larger.ExistsAll(ctx, []string{"order-1", "order-4", "order-5"})
	fmt.Println("found in the new one:", found, err)

	// 5. Writers switch, and when all have, the old filter is deleted.
	fmt.Println(larger.Add(ctx, "order-5"))
	fmt.Println(old.Delete(ctx))
	// Output:
	// order-4 is new: true
	// found in the new one: [true true false] <nil>
	// true <nil>
	// true <nil>
}
