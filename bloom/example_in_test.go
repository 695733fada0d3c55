package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Who of these three has seen the post? One request asks all their filters.
func ExampleExistsIn() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	var filters []*bloom.Filter
	for _, user := range []string{"ann", "bob", "cho"} {
		f, err := bloom.New(client, "seen:"+user, bloom.Config{
			Capacity: 1000, FPRate: 0.01, MissingIsEmpty: true, // cho has seen nothing yet
		})
		if err != nil {
			log.Fatal(err)
		}
		filters = append(filters, f)
	}
	if _, err := bloom.AddIn(ctx, "post-7", filters[0]); err != nil {
		log.Fatal(err)
	}
	answers, err := bloom.ExistsIn(ctx, "post-7", filters...)
	if err != nil {
		log.Fatal(err)
	}
	for i, user := range []string{"ann", "bob", "cho"} {
		fmt.Println(user, answers[i].Yes)
	}
	// Output:
	// ann true
	// bob false
	// cho false
}

// A sequence of any length is added to a live filter, a part at a time.
func ExampleFilter_AddSeq() {
	client, stop := database()
	defer stop()
	f, err := bloom.New(client, "pages", bloom.Config{Capacity: 10_000, FPRate: 0.001})
	if err != nil {
		log.Fatal(err)
	}
	pages := func(yield func(string) bool) {
		for i := range 5000 {
			if !yield(fmt.Sprint("/page/", i%4000)) { // a thousand come twice
				return
			}
		}
	}
	var result bloom.AddResult
	result, err = f.AddSeq(context.Background(), pages)
	fmt.Println(result.Items, result.New, result.Uncertain, err)
	// Output: 5000 4000 0 <nil>
}

// A batch of several requests, one of which was refused. What remains is added
// later.
func ExampleBatchError_Remaining() {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()
	f, err := bloom.New(client, "pages", bloom.Config{
		Capacity: 1000, FPRate: 0.01, BatchBytes: 4096, BatchParallel: 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	var pages []string
	for i := range 100 {
		pages = append(pages, fmt.Sprint("/page/", i))
	}
	server.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		if n == 2 {
			return upstashtest.RateLimit(time.Minute)
		}
		return upstashtest.Fault{}
	})
	_, err = f.AddAll(ctx, pages)
	var batch *bloom.BatchError
	if errors.As(err, &batch) {
		rest := batch.Remaining(pages)
		fmt.Println("of", len(pages), "are left", len(rest))
		fmt.Println("nothing was done:", batch.SafeToRetry())
		_, err = f.AddAll(ctx, rest)
	}
	fmt.Println(err)
	// Output:
	// of 100 are left 52
	// nothing was done: false
	// <nil>
}
