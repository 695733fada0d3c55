package bloom_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/upbloom/upbloom/bloom"
)

// A filter has become too small, and is rebuilt in another size. Readers and
// writers go on meanwhile, and meet no error and no false "no". Each step begins
// when every process has made the one before. Processes at neighbouring steps
// agree on what is new; two that add an item at the same moment may both be told
// that it is. MIGRATING.md has the order without that, and the way for who has no
// list of all items: both filters run for as long as items matter.
func Example_rebuildInAnotherSize() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	old, err := bloom.New(client, "seen:v1", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	all := []string{"order-1", "order-2", "order-3"} // the source of truth
	if _, err := old.AddAll(ctx, all); err != nil {
		log.Fatal(err)
	}

	// 1. Create the new filter at another key.
	larger, err := bloom.New(client, "seen:v2", bloom.Config{Capacity: 100_000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := larger.Create(ctx); err != nil {
		log.Fatal(err)
	}

	// 2. Every writer adds to both, in one request. The old filter decides what
	// is new, and comes first.
	add := func(item string, decides, learns *bloom.Filter) (isNew bool, err error) {
		answers, err := bloom.AddIn(ctx, item, decides, learns)
		if len(answers) == 0 {
			return false, err
		}
		if err := answers[1].Err; err != nil {
			log.Println(err) // it may lack the item; the first answer counts all the same
		}
		return answers[0].Yes, answers[0].Err
	}
	isNew, err := add("order-4", old, larger)
	fmt.Println("order-4 is new:", isNew, err)

	// 3. Load all items from the source of truth, also those that step 2 could not
	// add. What it added stays: do not Replace here.
	if _, err := larger.Load(ctx, slices.Values(all)); err != nil {
		log.Fatal(err)
	}

	// 4. Readers use the new filter. Writers still add to both, but the new one
	// decides, and comes first: a writer that asked the old one would call an item
	// of step 5 new once more.
	found, err := larger.ExistsAll(ctx, []string{"order-1", "order-4", "order-5"})
	fmt.Println("found in the new one:", found, err)
	isNew, err = add("order-5", larger, old)
	fmt.Println("order-5 is new:", isNew, err)

	// 5. Writers add to the new filter alone. Then the old one is deleted.
	fmt.Println(larger.Add(ctx, "order-6"))
	fmt.Println(old.Delete(ctx))
	// Output:
	// order-4 is new: true <nil>
	// found in the new one: [true true false] <nil>
	// order-5 is new: true <nil>
	// true <nil>
	// true <nil>
}
