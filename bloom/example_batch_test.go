package bloom_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"testing/iotest"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func ExampleFilter_AddAll() {
	client, stop := database()
	defer stop()

	f, _ := bloom.New(client, "watched:42", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	added, err := f.AddAll(context.Background(), []string{"film-1", "film-2", "film-1"})
	fmt.Println(added, err)
	// Output: [true true false] <nil>
}

// Which of these has the user not watched yet?
func ExampleFilter_ExistsAll() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "watched:42", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.AddAll(ctx, []string{"film-1", "film-2"})

	candidates := []string{"film-1", "film-2", "film-3", "film-4"}
	watched, err := f.ExistsAll(ctx, candidates)
	if err != nil {
		log.Fatal(err)
	}
	for i, film := range candidates {
		if !watched[i] {
			fmt.Println(film)
		}
	}
	// Output:
	// film-3
	// film-4
}

// If one of several requests of a batch fails, its successes stay, and another
// call adds the rest.
func ExampleBatchError() {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := server.Client(upstash.WithRetry(0), upstash.WithMaxRequest(1024)) // ten items
	defer client.Close()
	ctx := context.Background()

	f, _ := bloom.New(client, "crawled", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	urls := []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i", "/j", "/k", "/l"}
	server.Inject(upstashtest.Fault{}, upstashtest.RateLimit(0)) // the second request

	_, err = f.AddAll(ctx, urls)
	var batch *bloom.BatchError
	if errors.As(err, &batch) {
		rest := batch.Remaining(urls) // those that are not done or unknown
		fmt.Println(batch.Count(bloom.ItemDone), "done, to do:", rest)
		fmt.Println("the last did not run:", batch.Items[11] == bloom.ItemNotDone)
		fmt.Println("nothing was done:", batch.SafeToRetry())
		_, err = f.AddAll(ctx, rest)
	}
	fmt.Println(err)
	// Output:
	// 10 done, to do: [/k /l]
	// the last did not run: true
	// nothing was done: false
	// <nil>
}

// The lines of a file. If it cannot be read to its end, nothing is loaded.
func ExampleFilter_Load() {
	client, stop := database()
	defer stop()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)

	f, err := bloom.New(client, "customers", bloom.Config{Capacity: 1_000_000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	load := func(file io.Reader) (bloom.LoadResult, error) {
		return f.Load(ctx, func(yield func(string) bool) {
			lines := bufio.NewScanner(file)
			for lines.Scan() {
				if !yield(lines.Text()) {
					return
				}
			}
			if err := lines.Err(); err != nil {
				cancel(err)
			}
		})
	}
	result, err := load(strings.NewReader("ann\nben\nann\n"))
	fmt.Println(result.Items, result.Created, result.OverCapacity, result.Duration > 0, err)
	result, err = load(iotest.ErrReader(io.ErrUnexpectedEOF))
	fmt.Println(result.NewBits, errors.Is(err, io.ErrUnexpectedEOF), upstash.SafeToRetry(err))
	// Output:
	// 3 true false true <nil>
	// 0 true true
}

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

// A crawler adds a page to those of today and to all pages ever, in one request:
// a Window and a Scalable.
func ExampleAddIn() {
	client, stop := database()
	defer stop()
	today, err := bloom.NewWindow(client, "pages:today", bloom.WindowConfig{
		Capacity: 10_000, FPRate: 0.01, Span: 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	ever, err := bloom.NewScalable(client, "pages:ever", bloom.ScalableConfig{Capacity: 10_000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := ever.Add(ctx, "/old"); err != nil {
		log.Fatal(err)
	}
	for _, page := range []string{"/old", "/new"} {
		answers, err := bloom.AddIn[bloom.AnyFilter](ctx, page, today, ever)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(page, "new today:", answers[0].Yes, "new:", answers[1].Yes)
	}
	// Output:
	// /old new today: true new: false
	// /new new today: true new: true
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

func ExampleFilter_Stats() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "visitors", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.Create(ctx)
	_, _ = f.AddAll(ctx, numbered("visitor", 4000))
	st, err := f.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(st)
	fmt.Printf("at %d items wrong at %.3f\n", st.Capacity, st.FPRate)
	// Output:
	// filter           53,742 bits (6.6 KiB), k=4, blocked
	// fill             [#####...............] 25.7%
	// items            about 3,994 of 5,000
	// false positives  1 in 208 now, 1 in 100 at capacity
	// stored           6,742 bytes, no expiry
	// at 5000 items wrong at 0.010
}

// Look at several filters at once.
func ExampleInspectAll() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "visitors", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.AddAll(ctx, []string{"alice", "bob"})

	keys := []string{"visitors", "buyers"}
	found, err := bloom.InspectAll(ctx, client, keys)
	if err != nil {
		log.Fatal(err)
	}
	for i, key := range keys {
		if found[i].Err != nil {
			fmt.Println(key, "is not there:", errors.Is(found[i].Err, bloom.ErrNotFound))
			continue
		}
		fmt.Println(key, "holds about", found[i].Stats.Items)
	}
	// Output:
	// visitors holds about 2
	// buyers is not there: true
}

// What a handle does is not stored in the filter: whoever opens it says it again.
func ExampleOpen_config() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	made, err := bloom.New(client, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := made.Create(ctx); err != nil {
		log.Fatal(err)
	}
	reader, err := bloom.Open(ctx, client, "seen", bloom.Config{
		ReadsNearest:   true, // of a global database
		MissingIsEmpty: true, // if it goes away later
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := made.Delete(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(reader.ExistsAll(ctx, []string{"a", "b"}))

	_, err = bloom.Open(ctx, client, "seen", bloom.Config{MustExist: true})
	fmt.Println("gone:", errors.Is(err, bloom.ErrNotFound))
	// Output:
	// [false false] <nil>
	// gone: true
}
