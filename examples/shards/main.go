// Command shards keeps a filter in two databases, because it is too large for
// one. Then one database goes down. The items of the other one still get their
// answers. The program keeps the rest, and asks again when the database is
// back. Two servers in this process play the databases.
//
//	go run ./examples/shards
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	// A call about both databases waits for the one that stalls, so long in each attempt.
	err := run(context.Background(), os.Stdout, upstash.WithTimeout(2*time.Second))
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts ...upstash.Option) error {
	opts = append(opts, upstash.WithRetry(0)) // a short demonstration; leave the retries on
	var servers [2]*upstashtest.Server
	var clients []*upstash.Client
	for i := range servers {
		server, err := upstashtest.Start() // upstash.New with the URL and token of each of your databases
		if err != nil {
			return err
		}
		defer server.Close()
		client := server.Client(opts...)
		defer client.Close()
		servers[i], clients = server, append(clients, client)
	}
	pages, err := bloom.NewSharded(clients, "pages", bloom.ShardedConfig{
		Capacity: 100_000, FPRate: 1e-6, Shards: 8,
	})
	if err != nil {
		return err
	}
	if _, err := pages.Create(ctx); err != nil { // once, when you deploy
		return err
	}
	q := &queue{pages: pages}
	if err := q.report(ctx, out, "both are up", urls(0, 1000)); err != nil {
		return err
	}
	servers[1].InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.BadGateway(upstashtest.BeforeExec)
	})
	if err := q.report(ctx, out, "one is down", urls(500, 1500)); err != nil {
		return err
	}
	servers[1].InjectFunc(nil)
	return q.report(ctx, out, "it is back", nil)
}

func urls(from, to int) []string {
	var urls []string
	for i := from; i < to; i++ {
		urls = append(urls, fmt.Sprintf("https://example.com/%d", i))
	}
	return urls
}

// A queue has the pages to fetch, and those that were perhaps fetched before.
type queue struct {
	pages   *bloom.Sharded
	fetched int
	later   []string
}

// report offers pages and prints the outcome.
func (q *queue) report(ctx context.Context, out io.Writer, when string, urls []string) error {
	fetched := q.fetched
	if err := q.offer(ctx, urls); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s: %d pages to fetch, %d wait\n", when, q.fetched-fetched, len(q.later))
	return err
}

// offer fetches the new pages, including those that waited. Pages whose
// database does not answer wait for the next call. The look-up comes first. It
// changes nothing, so a page without an answer is as it was.
func (q *queue) offer(ctx context.Context, urls []string) error {
	urls = append(q.later, urls...)
	q.later = nil
	found, err := q.pages.ExistsAll(ctx, urls)
	state, err := states(err)
	if err != nil {
		q.later = urls
		return err
	}
	var absent []string
	for i, url := range urls {
		switch {
		case state(i) != bloom.ItemDone:
			q.later = append(q.later, url)
		case !found[i]:
			absent = append(absent, url)
		}
	}
	added, err := q.pages.AddAll(ctx, absent)
	if state, err = states(err); err != nil {
		q.later = append(q.later, absent...)
		return err
	}
	for i, url := range absent {
		switch state(i) {
		case bloom.ItemDone:
			if added[i] {
				q.fetch(url)
			}
		case bloom.ItemUncertain: // it is in, and was not a moment ago
			q.fetch(url)
		case bloom.ItemUnknown: // better twice than never
			q.fetch(url)
			q.later = append(q.later, url)
		case bloom.ItemNotDone:
			q.later = append(q.later, url)
		}
	}
	return nil
}

// states returns what is known of each item after a batch, or err if it is no
// BatchError.
func states(err error) (state func(i int) bloom.ItemState, _ error) {
	var batch *bloom.BatchError
	if errors.As(err, &batch) {
		return func(i int) bloom.ItemState { return batch.Items[i] }, nil
	}
	return func(int) bloom.ItemState { return bloom.ItemDone }, err
}

func (q *queue) fetch(string) { q.fetched++ }
