// Command crawler visits every page of a small web once. It adds a URL first
// and fetches it afterwards. If a fetch fails, the page is skipped, which is no
// loss for a crawler.
//
// Most links lead to known pages, so the crawler asks first: that is one billed
// command, and only a new URL takes three more, to add it. With nine known URLs
// in ten that is 1.3 commands a URL, where Add alone takes 2.1. The Add decides:
// of two crawlers that both found a URL to be unknown, only one is told that it
// is new. A crawler that has many URLs at once takes ExistsAll and AddAll: a
// thousand URLs are then one command, and a few more for the new ones.
//
// Nobody knows how large the frontier becomes. Therefore the filter is a
// [bloom.Scalable], which begins with room for 1,000 URLs and grows to 341
// times as many. Now and then the crawler asks whether it has outgrown even that,
// or the longest string allowed.
//
//	go run ./examples/crawler
//
// FPRate is the share of new pages taken for seen by a full filter. They are
// never fetched. If the work must not be lost, look first and add last instead:
//
//	_, err := done.Create(ctx)        // once: Exists of a missing filter is an error
//	seen, err := done.Exists(ctx, id) // false: it was certainly never done
//	err = handle(id)                  // if it was not seen
//	_, err = done.Add(ctx, id)        // only once it is done
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	// A crawler has time, but a page is worth no minute of waiting.
	err := run(context.Background(), os.Stdout, 3000, upstash.WithTimeout(3*time.Second))
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, pages int, opts ...upstash.Option) error {
	server, err := upstashtest.Start() // upstash.FromEnv for your database
	if err != nil {
		return err
	}
	defer server.Close()
	client := server.Client(opts...)
	defer client.Close()
	// Whoever owns a page chooses its links: with the usual seed anybody can compute a few
	// that make another page look fetched. ParseUint refuses an UPBLOOM_SEED that is not
	// set; only here, where the database ends with the program, that is the usual seed.
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("UPBLOOM_SEED"), "0"), 0, 64)
	if err != nil {
		return err
	}
	c := &crawler{fetch: web(pages), full: func(st bloom.Stats) {
		fmt.Fprintln(out, "the filter cannot grow any more:", st)
	}}
	c.seen, err = newSeen(client, seed)
	if err != nil {
		return err
	}
	if err := c.crawl(ctx, page(0)); err != nil {
		return err
	}
	commands := server.Stats().Commands
	st, err := c.seen.Stats(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d pages fetched, each once, %d missed by false positives;"+
		" %d layers, %d bytes, %d commands\n", c.fetched, pages, pages-c.fetched, len(st.Parts), st.Bytes, commands)
	return nil
}

// newSeen returns the filter of seen URLs, which need not exist yet.
func newSeen(client *upstash.Client, seed uint64) (*bloom.Scalable, error) {
	return bloom.NewScalable(client, "crawler:visited", bloom.ScalableConfig{
		Capacity: 1000, FPRate: 0.001, Seed: seed, MissingIsEmpty: true,
	})
}

// crawler is one crawl.
type crawler struct {
	seen    *bloom.Scalable
	fetch   func(url string) (links []string)
	full    func(bloom.Stats) // is told if the filter is over its capacity
	fetched int
}

// crawl visits every page within reach of links from start.
func (c *crawler) crawl(ctx context.Context, start string) error {
	for queue := []string{start}; len(queue) > 0; {
		url := queue[0]
		queue = queue[1:]
		if known, err := c.seen.Exists(ctx, url); known || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		isNew, err := c.seen.Add(ctx, url)
		// If it is uncertain whether the URL is new, fetching it twice is
		// better than never.
		if err != nil && !errors.Is(err, bloom.ErrUncertain) {
			return err
		}
		if !isNew && err == nil {
			continue
		}
		queue = append(queue, c.fetch(url)...)
		c.fetched++
		if c.fetched%1000 == 0 {
			st, err := c.seen.Stats(ctx)
			if err != nil {
				return err
			}
			if st.OverCapacity() {
				c.full(st)
			}
		}
	}
	return nil
}

func page(n int) string { return fmt.Sprintf("https://example.com/page/%d", n) }

// web has pages with links to two later ones and back to the first.
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
