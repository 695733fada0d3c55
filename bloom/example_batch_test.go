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
	client := server.Client(upstash.WithRetry(0))
	defer client.Close()
	ctx := context.Background()

	f, _ := bloom.New(client, "crawled", bloom.Config{
		Capacity: 5_000, FPRate: 0.01, BatchBytes: 500, BatchParallel: 1,
	})
	urls := []string{"/a", "/b", "/c", "/d", "/e", "/f"}
	server.Inject(upstashtest.Fault{}, upstashtest.RateLimit(0)) // the second request

	_, err = f.AddAll(ctx, urls)
	var batch *bloom.BatchError
	if errors.As(err, &batch) {
		var rest []string
		for i, state := range batch.Items {
			if state == bloom.ItemNotDone {
				rest = append(rest, urls[i])
			}
		}
		fmt.Println(batch.Count(bloom.ItemDone), "done, to do:", rest)
		_, err = f.AddAll(ctx, rest)
		fmt.Println(err)
	}
	// Output:
	// 3 done, to do: [/d /e /f]
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
