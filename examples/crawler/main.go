// Command crawler visits every page of a small web once. It adds a URL first
// and fetches it afterwards: if a fetch fails, the page is skipped, and for a
// crawler that is no loss. One request and one billed command decide about a
// URL.
//
// Its filter is too small on purpose. When the filter is over its capacity, the
// crawler loads the visited URLs into a larger one under another key, and goes
// on with that.
//
// If the work must not be lost, look first and add last instead:
//
//	seen, err := done.Exists(ctx, id) // false: it was certainly never done
//	err = handle(id)                  // if it was not seen
//	_, err = done.Add(ctx, id)        // only once it is done
//
//	go run ./examples/crawler
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	if err := run(context.Background(), os.Stdout, 3000); err != nil {
		fmt.Fprintln(os.Stderr, "crawler:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, pages int) error {
	server, err := upstashtest.Start() // upstash.FromEnv for your database
	if err != nil {
		return err
	}
	defer server.Close()
	c := &crawler{client: server.Client(), out: out, fetch: web(pages)}
	defer c.client.Close()
	if err := c.useFilter("crawler:visited", 1000); err != nil {
		return err
	}
	if err := c.crawl(ctx, page(0)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d pages fetched, each once; %d commands\n",
		len(c.visited), pages, server.Stats().Commands)
	return nil
}

// crawler is one crawl.
type crawler struct {
	client  *upstash.Client
	seen    *bloom.Filter
	full    bool     // seen is over its capacity
	visited []string // the truth, which a real crawler keeps in a table
	fetch   func(url string) (links []string)
	out     io.Writer
}

// useFilter makes the crawler use the filter at key, which need not exist.
func (c *crawler) useFilter(key string, capacity uint64) (err error) {
	c.full = false
	c.seen, err = bloom.New(c.client, key, bloom.Config{
		Capacity: capacity, FPRate: 0.001, WarnFill: func(bloom.Stats) { c.full = true },
	})
	return err
}

// crawl visits every page that links lead to from start.
func (c *crawler) crawl(ctx context.Context, start string) error {
	for queue := []string{start}; len(queue) > 0; {
		url := queue[0]
		queue = queue[1:]
		isNew, err := c.seen.Add(ctx, url)
		// If it is uncertain whether the URL is new, better fetch it twice than
		// never.
		if err != nil && !errors.Is(err, bloom.ErrUncertain) {
			return err
		}
		if !isNew && err == nil {
			continue
		}
		queue = append(queue, c.fetch(url)...)
		c.visited = append(c.visited, url)
		if c.full {
			if err := c.grow(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// grow loads the visited URLs into a filter for four times as many. That takes
// a few requests, however many URLs there are.
func (c *crawler) grow(ctx context.Context) error {
	old := c.seen
	capacity := uint64(4 * len(c.visited))
	if err := c.useFilter(fmt.Sprintf("crawler:visited:%d", capacity), capacity); err != nil {
		return err
	}
	r, err := c.seen.Load(ctx, slices.Values(c.visited))
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "full at %d pages: a filter for %d, loaded in %d requests\n",
		len(c.visited), capacity, r.Requests)
	_, err = old.Delete(ctx)
	return err
}

func page(n int) string { return fmt.Sprintf("https://example.com/page/%d", n) }

// web is pages that link to two later ones and back to the first.
func web(pages int) func(url string) []string {
	return func(url string) (links []string) {
		var n int
		if _, err := fmt.Sscanf(url, "https://example.com/page/%d", &n); err != nil {
			return nil
		}
		for _, next := range []int{2*n + 1, 2*n + 2} {
			if next < pages {
				links = append(links, page(next))
			}
		}
		return append(links, page(0))
	}
}
