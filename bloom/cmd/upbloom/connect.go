package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// app is one run of the program: its flags and its open things.
type app struct {
	in          io.Reader
	out, errOut io.Writer

	demo, json, quiet bool

	command    string // its name
	began      time.Time
	key        string // the command's key, for its errors
	input      string // the input's name, printable
	inputBytes int64  // 0 if the input is no file
	lineNumber int    // of the last item read
	inLine     int32  // atomic: 1 if a bar has not ended its line on the terminal
	found      bool   // add --items found the filter at the key
	other      opened // the filter of another kind that plainOnly found at the key
	wrote      bool   // a request that changes something was sent, or may have been

	client  *upstash.Client
	server  *upstashtest.Server
	carrier upstash.Transport // nil, except in tests

	lost int32         // atomic: 1 if an attempt may have run and its answer is lost
	late time.Duration // an interrupt may come so long after the input's end
}

func (a *app) close() {
	if a.client != nil {
		_ = a.client.Close()
	}
	if a.server != nil {
		a.server.Close()
	}
}

// connect returns a client of the database in the environment, or of the
// demo's.
func (a *app) connect(ctx context.Context) (*upstash.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	if !a.demo {
		c, err := upstash.FromEnv(upstash.WithObserver(a.attempted), upstash.WithTransport(a.carrier))
		if err != nil {
			return nil, usageError{error: fmt.Errorf("%w; or try --demo", err)}
		}
		a.client = c
		return c, nil
	}
	s, err := upstashtest.Start()
	if err != nil {
		return nil, err
	}
	a.server = s
	c, err := upstash.New(s.URL, s.Token)
	if err != nil {
		return nil, err
	}
	a.client = c
	return c, fillDemo(ctx, c)
}

// attempted observes each attempt of the program's calls.
func (a *app) attempted(ctx context.Context, e upstash.Event) {
	if answer := (*upstash.Error)(nil); e.MayHaveRun > 0 && e.Err != nil && !errors.As(e.Err, &answer) {
		atomic.StoreInt32(&a.lost, 1)
	}
	a.sayWaiting(ctx, e)
}

// sayWaiting prints a line if an attempt of a call ended because no answer came
// in time. The client may try again, and for the user that is all silence.
func (a *app) sayWaiting(ctx context.Context, e upstash.Event) {
	if a.quiet || a.json || ctx.Err() != nil || !errors.Is(e.Err, context.DeadlineExceeded) {
		return
	}
	text, _ := a.endpoint()
	if u, err := url.Parse(text); err == nil {
		text = u.Host
	}
	newline := ""
	if atomic.LoadInt32(&a.inLine) == 1 {
		newline = "\n"
	}
	fmt.Fprintf(a.errOut, "%supbloom: no answer from %s within %v (attempt %d)\n", newline, printable(text),
		e.Duration.Round(time.Second), e.Attempt)
}

// fillDemo makes the filters of the demo.
func fillDemo(ctx context.Context, c *upstash.Client) error {
	for _, d := range []struct {
		key   string
		cfg   bloom.Config
		items int
	}{
		{"demo:webhooks", bloom.Config{Capacity: 10_000, FPRate: 0.001, TTL: 24 * time.Hour}, 4_200},
		{"demo:usernames", bloom.Config{Capacity: 100_000, FPRate: 0.01}, 73_000},
		{"demo:crawled", bloom.Config{Capacity: 2_000, FPRate: 0.01}, 3_500},
	} {
		f, err := bloom.New(c, d.key, d.cfg)
		if err != nil {
			return err
		}
		if _, err := f.Load(ctx, demoItems(d.items)); err != nil {
			return err
		}
	}
	if err := fillDemoKinds(ctx, c); err != nil {
		return err
	}
	_, err := c.Do(ctx, upstash.Cmd("SET", "demo:not-a-filter", "just some text"))
	return err
}

// fillDemoKinds makes one of each other kind.
func fillDemoKinds(ctx context.Context, c *upstash.Client) error {
	w, windowErr := bloom.NewWindow(c, "demo:deliveries", bloom.WindowConfig{
		Capacity: 5_000, FPRate: 0.001, Span: 24 * time.Hour, Panes: 2,
	})
	l, scalableErr := bloom.NewScalable(c, "demo:urls", bloom.ScalableConfig{Capacity: 1_000, FPRate: 0.01})
	f, cuckooErr := bloom.NewCuckoo(c, "demo:seats", bloom.CuckooConfig{Capacity: 2_000, FPRate: 0.001})
	s, shardedErr := bloom.NewSharded([]*upstash.Client{c}, "demo:pages", bloom.ShardedConfig{
		Capacity: 10_000, FPRate: 0.01, Shards: 3,
	})
	if err := errors.Join(windowErr, scalableErr, cuckooErr, shardedErr); err != nil {
		return err
	}
	items := slices.Collect(demoItems(1_200))
	for _, h := range []handle{w, l, f, s} {
		if _, err := h.Create(ctx); err != nil {
			return err
		}
		if _, err := h.AddAll(ctx, items); err != nil {
			return err
		}
	}
	return nil
}

// demoItems returns item-0, item-1 and so on, n of them.
func demoItems(n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield("item-" + strconv.Itoa(i)) {
				return
			}
		}
	}
}

// seed returns UPBLOOM_SEED, which is decimal, or hexadecimal after 0x. If it
// is not set, the seed is 0.
func seed() (uint64, error) {
	text := os.Getenv("UPBLOOM_SEED")
	if text == "" {
		return 0, nil
	}
	base := 10
	if digits, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		text, base = digits, 16
	}
	n, err := strconv.ParseUint(text, base, 64) // base 0 would take 010 for octal
	if err != nil {
		return 0, usagef("UPBLOOM_SEED must be a number from 0 to 2^64-1, or 0x and hexadecimal digits")
	}
	return n, nil
}

// filter returns a handle to the plain filter at key, which must exist. If
// mayMake is true, the command has sizeFlags, and with --items the handle
// creates a missing filter.
func (a *app) filter(ctx context.Context, c *cli.Command, key string, mayMake bool) (*bloom.Filter, error) {
	var cfg bloom.Config
	if mayMake {
		var err error
		if cfg, err = configOf(c); err != nil {
			return nil, err
		}
	}
	s, err := seed()
	if err != nil {
		return nil, err
	}
	client, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Capacity != 0 {
		return bloom.New(client, key, cfg)
	}
	f, err := bloom.Open(ctx, client, key, bloom.Config{Seed: s})
	if err != nil {
		err = a.plainOnly(ctx, err)
	}
	if mayMake && errors.Is(err, bloom.ErrNotFound) && !isHeadless(err) {
		return nil, makeable{err}
	}
	return f, err
}

// arguments returns the command's arguments, at least least and at most most of
// them; a most of -1 is no limit. If least is above 0, the first is the key,
// and errors name it.
func (a *app) arguments(c *cli.Command, least, most int) ([]string, error) {
	a.command, a.began = c.Name, time.Now()
	args := c.Args().Slice()
	if len(args) < least || most >= 0 && len(args) > most {
		return nil, usagef("usage: %s [options]%s; %[1]s --help explains them", c.FullName(),
			strings.TrimRight(" "+c.ArgsUsage, " "))
	}
	if least > 0 {
		if args[0] == "" {
			return nil, usagef("the key is empty")
		}
		if !utf8.ValidString(args[0]) {
			return nil, usagef("the key is not valid UTF-8: is the terminal set to another encoding?")
		}
		a.key = args[0]
	}
	return args, nil
}
