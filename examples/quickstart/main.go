// Quickstart puts 5,000 e-mail addresses into a Bloom filter behind the Upstash
// Redis REST API, looks up 100,000 others, and shows the cost and the false
// positives.
//
// If UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN are set, it uses this
// database, with its own key, and deletes the key at the end. Otherwise it uses
// a server inside this process.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

const (
	members   = 5_000
	strangers = 100_000
	batch     = 5_000
	fpRate    = 0.01
)

func main() {
	// Nobody watches a database that stalls for longer than ten seconds.
	program(upstash.WithTimeout(3*time.Second), upstash.WithRetry(2))
}

func program(opts ...upstash.Option) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, opts...); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts ...upstash.Option) (err error) {
	var used usage
	client, where, closeAll, err := connect(append(opts, upstash.WithObserver(used.observe))...)
	if err != nil {
		return err
	}
	defer closeAll()

	key := "upbloom:quickstart:" + strconv.FormatInt(time.Now().UnixNano(), 36)
	filter, err := bloom.New(client, key, bloom.Config{
		Capacity: members, FPRate: fpRate, TTL: time.Hour, // if it cannot be deleted
	})
	if err != nil {
		return err
	}
	defer func() {
		// A signal may have ended ctx, but the key must still be deleted.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, delErr := filter.Delete(cleanup)
		if err == nil {
			err = delErr
		}
	}()

	start := time.Now()
	r := result{where: where, used: &used}
	if err := r.measure(ctx, filter); err != nil {
		return err
	}
	r.took = time.Since(start)
	var text bytes.Buffer
	r.print(&text)
	if _, err := os.Stdout.Write(text.Bytes()); err != nil {
		return err
	}
	if r.found != members {
		return fmt.Errorf("%d addresses that were added were not found", members-r.found)
	}
	return nil
}

// measure adds the members, looks them up, and looks up the strangers.
func (r *result) measure(ctx context.Context, filter *bloom.Filter) error {
	progress := newProgress(os.Stdout, 2*members+strangers)
	defer progress.clear()
	for from := 0; from < members; from += 1000 {
		added, err := filter.AddAll(ctx, addresses("member", from, 1000))
		if !bloom.InFilter(err) {
			return err
		}
		r.added += count(added)
		progress.advance("adding", len(added))
	}
	for from := 0; from < members; from += batch {
		found, err := filter.ExistsAll(ctx, addresses("member", from, batch))
		if err != nil {
			return err
		}
		r.found += count(found)
		progress.advance("checking", len(found))
	}
	for from := 0; from < strangers; from += batch {
		found, err := filter.ExistsAll(ctx, addresses("stranger", from, batch))
		if err != nil {
			return err
		}
		r.falsePositives += count(found)
		progress.advance("asking for strangers", len(found))
	}
	var err error
	r.stats, err = filter.Stats(ctx)
	return err
}

// addresses returns n different e-mail addresses.
func addresses(name string, from, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = name + "-" + strconv.Itoa(from+i) + "@example.com"
	}
	return out
}

func count(answers []bool) int {
	n := 0
	for _, yes := range answers {
		if yes {
			n++
		}
	}
	return n
}
