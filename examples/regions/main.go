// Command regions shows what look-ups cost from a far region of a global
// database: at the primary, at the nearest region, and with two handles, which
// take the region's "yes" and ask the primary about all else. A server in this
// process plays the database. Its primary is 20 ms away from the region, and the
// region is 50 writes behind the primary. The program takes about 30 seconds.
//
//	go run ./examples/regions
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	// Who reads in a near region is in a hurry.
	hurry := []upstash.Option{upstash.WithTimeout(time.Second), upstash.WithRetry(2)}
	if err := run(context.Background(), os.Stdout, 20*time.Millisecond, 250, hurry...); err != nil {
		log.Fatal(err)
	}
}

// result has the measurements of one stream of calls in one mode.
type result struct {
	mode       mode
	syncTokens bool
	p50, p90   time.Duration
	billed     float64 // commands a look-up
	wrong      int     // a "no" for an item whose Add was acknowledged
}

// A mode says who answers look-ups.
type mode string

const (
	primary   mode = "primary"
	nearest   mode = "nearest"
	nearFirst mode = "two handles"
)

// seen is what a program near a region asks. Only a handle may be missing.
type seen struct {
	near    *bloom.Filter // with ReadsNearest
	primary *bloom.Filter
}

// Exists reports whether the item was added. The region's "yes" holds, because
// nothing takes an item out of a filter again. Its "no" may come from its lag, so
// the primary is asked about everything else.
func (s seen) Exists(ctx context.Context, item string) (bool, error) {
	if s.near != nil {
		found, err := s.near.Exists(ctx, item)
		if found && err == nil || s.primary == nil {
			return found, err
		}
	}
	return s.primary.Exists(ctx, item)
}

// open makes the handles of a mode. If both are there, the client of the near one
// sends no sync tokens: with one, the region passes a question on to the primary
// until it has that client's writes, and the primary is asked anyway.
func open(cfg bloom.Config, of mode, client, untied *upstash.Client) (s seen, err error) {
	if of != nearest {
		s.primary, err = bloom.New(client, "seen", cfg)
	}
	if of != primary && err == nil {
		cfg.ReadsNearest = true
		if of == nearFirst {
			client = untied
		}
		s.near, err = bloom.New(client, "seen", cfg)
	}
	return s, err
}

func run(ctx context.Context, out io.Writer, latency time.Duration, calls int, opts ...upstash.Option) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "asked\tsync tokens\tp50\tp90\tbilled a look-up\twrong \"no\"")
	for _, of := range []mode{primary, nearest, nearFirst} {
		for _, tokens := range []bool{true, false} {
			r, err := stream(ctx, of, tokens, latency, calls, opts...)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%v\t%v\t%.1f ms\t%.1f ms\t%.2f\t%d of %d\n", r.mode, r.syncTokens,
				r.p50.Seconds()*1000, r.p90.Seconds()*1000, r.billed, r.wrong, calls)
		}
	}
	return w.Flush()
}

// stream looks up items and adds the new ones. Four in five items were added
// before, some of them just now.
func stream(
	ctx context.Context, of mode, tokens bool, latency time.Duration, calls int, opts ...upstash.Option,
) (result, error) {
	server, err := upstashtest.Start(upstashtest.WithRegions(
		upstashtest.Region{Name: "far", Latency: latency, Lag: 50}))
	if err != nil {
		return result{}, err
	}
	defer server.Close()
	untied := server.RegionClient("far", append(opts, upstash.WithoutSyncToken())...)
	client := untied
	if tokens {
		client = server.RegionClient("far", opts...)
	}
	defer untied.Close()
	defer client.Close()
	const before = 500 // items, added by a program near the primary
	cfg := bloom.Config{Capacity: 10_000, FPRate: 0.001}
	if err := fill(ctx, server.Client(), cfg, before); err != nil {
		return result{}, err
	}
	filter, err := bloom.New(client, "seen", cfg)
	if err != nil {
		return result{}, err
	}
	seen, err := open(cfg, of, client, untied)
	if err != nil {
		return result{}, err
	}
	r := result{mode: of, syncTokens: tokens}
	var times []time.Duration
	next, billed := before, int64(0)
	for i := range calls {
		item, isNew := draw(i, next)
		billedBefore, start := server.Stats().Billed, time.Now()
		found, err := seen.Exists(ctx, item)
		if err != nil {
			return result{}, err
		}
		times = append(times, time.Since(start))
		billed += server.Stats().Billed - billedBefore
		if !found && !isNew {
			r.wrong++
		}
		if isNew {
			if _, err := filter.Add(ctx, item); err != nil {
				return result{}, err
			}
			next++
		}
	}
	slices.Sort(times)
	r.p50, r.p90 = times[len(times)/2], times[len(times)*9/10]
	r.billed = float64(billed) / float64(calls)
	return r, nil
}

// fill adds the first n items.
func fill(ctx context.Context, client *upstash.Client, cfg bloom.Config, n int) error {
	filter, err := bloom.New(client, "seen", cfg)
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := filter.Add(ctx, name(i)); err != nil {
			return err
		}
	}
	return nil
}

// draw returns the item of a call, if the items before next were added.
func draw(call, next int) (item string, isNew bool) {
	switch call % 5 {
	case 0:
		return name(next), true
	case 1:
		return name(next - 1), false // added by this program, a moment ago
	}
	return name(call * 7 % next), false
}

func name(item int) string { return "item-" + strconv.Itoa(item) }
