package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// plan is what a filter of a size costs, for programs.
type plan struct {
	Items          uint64  `json:"items"`
	Rate           float64 `json:"rate"`
	Scheme         string  `json:"scheme"`
	Bits           uint64  `json:"bits"`
	Hashes         int     `json:"hashes"`
	Bytes          uint64  `json:"bytes"`
	BitsAnItem     float64 `json:"bitsAnItem"`
	RateHalf       float64 `json:"rateAtHalf"`
	RateFull       float64 `json:"rateAtCapacity"`
	RateTwice      float64 `json:"rateAtTwice"`
	RateFive       float64 `json:"rateAtFiveTimes"`
	RequestsToLoad int     `json:"requestsToLoad"`
}

func (a *app) calcCommand() *cli.Command {
	return &cli.Command{
		Name: "calc", Usage: "work out what a filter costs", ArgsUsage: " ",
		Flags: []cli.Flag{
			&cli.Uint64Flag{Name: "items", Aliases: []string{"n"}, Usage: "for `N` items"},
			&cli.Float64Flag{
				Name: "rate", Aliases: []string{"p"}, Value: 0.01,
				Usage: "at a false positive rate of `P`",
			},
			&cli.StringFlag{
				Name: "scheme", Value: "blocked",
				Usage: "`NAME` of the scheme: blocked, or xxh3 for the least memory",
			},
		},
		Action: func(_ context.Context, c *cli.Command) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			cfg := bloom.Config{Capacity: c.Uint64("items"), FPRate: c.Float64("rate")}
			if cfg.Capacity == 0 {
				return usagef("--items says for how many, e.g. upbloom calc --items 1000000")
			}
			switch c.String("scheme") {
			case "blocked":
			case "xxh3":
				cfg.Scheme = bloom.SchemeXXH3
			default:
				return usagef("--scheme is %q: use blocked or xxh3", c.String("scheme"))
			}
			g, err := cfg.Geometry()
			if err != nil {
				return err
			}
			p := planOf(cfg, g)
			return a.print(p, p.text(g))
		},
	}
}

func planOf(cfg bloom.Config, g bloom.Geometry) plan {
	n, size := cfg.Capacity, g.Bytes(bloom.LayoutHeaded)
	return plan{
		Items: n, Rate: cfg.FPRate, Scheme: g.Scheme.String(), Bits: g.Bits, Hashes: g.Hashes, Bytes: size,
		BitsAnItem: float64(g.Bits) / float64(n), RateHalf: g.FalsePositiveRate(n / 2),
		RateFull: g.FalsePositiveRate(n), RateTwice: g.FalsePositiveRate(2 * n),
		RateFive: g.FalsePositiveRate(5 * n),
		// One for each part of 1 MiB, the script, and one that removes the
		// parts.
		RequestsToLoad: int((size+1<<20-1)>>20) + 2,
	}
}

func (p plan) text(g bloom.Geometry) string {
	reads, writes := g.Hashes, g.Hashes
	if g.Scheme == bloom.SchemeBlocked {
		reads = g.Hashes / 2
	}
	var b strings.Builder
	fmt.Fprintf(&b, "filter           %v\n", g)
	fmt.Fprintf(&b, "memory           %s bytes, %.1f bits an item\n", human.Count(p.Bytes), p.BitsAnItem)
	fmt.Fprintf(&b, "false positives  %s at %s items\n", human.OneIn(p.RateFull), human.Count(p.Items))
	fmt.Fprintf(&b, "  half full      %s at %s\n", human.OneIn(p.RateHalf), human.Count(p.Items/2))
	fmt.Fprintf(&b, "  over-filled    %s at %s, %s at %s\n", human.OneIn(p.RateTwice), human.Count(2*p.Items),
		human.OneIn(p.RateFive), human.Count(5*p.Items))
	fmt.Fprintf(&b, "Exists, Add      1 command each: %d reads, %d writes in it\n", reads, writes)
	fmt.Fprintf(&b, "Load of all      %d requests", p.RequestsToLoad)
	if p.Bytes > 100<<20 {
		fmt.Fprintf(&b, "\nplan             a record above 100 MB needs one of the larger plans")
	}
	return b.String()
}

func (a *app) serveCommand() *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "run a REST server for tests on this machine", ArgsUsage: " ",
		Description: "In memory, or in front of a Redis. Prints two lines to paste into the shell in\n" +
			"which your program runs, and serves until it is interrupted. Other machines reach\n" +
			"it only if --addr names more than the loopback interface.",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "addr", Value: "127.0.0.1:8079",
				Usage: "listen on `HOST:PORT`; port 0 picks a free one",
			},
			&cli.StringFlag{
				Name: "redis", Usage: "serve the Redis at `HOST:PORT` instead of an empty memory",
			},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			opts := []upstashtest.Option{upstashtest.WithAddr(c.String("addr"))}
			if redis := c.String("redis"); redis != "" {
				opts = append(opts, upstashtest.WithRedis(redis))
			}
			s, err := upstashtest.Start(opts...)
			var network *net.OpError
			if errors.As(err, &network) && network.Op == "listen" {
				return usagef("--addr: %w: choose another address", network)
			}
			if err != nil {
				return err
			}
			a.server = s
			text := fmt.Sprintf("export UPSTASH_REDIS_REST_URL='%s'\nexport UPSTASH_REDIS_REST_TOKEN='%s'",
				s.URL, s.Token)
			if !isLoopback(c.String("addr")) {
				fmt.Fprintln(a.errOut, "upbloom: other machines can reach this server, over plain http,"+
					" and whoever has the token may do everything: to keep it on this machine, listen on"+
					" 127.0.0.1")
			}
			if err := a.print(map[string]string{"url": s.URL, "token": s.Token}, text); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		},
	}
}

// isLoopback reports whether only this machine reaches the address.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
