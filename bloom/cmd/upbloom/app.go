package main

import (
	"bytes"
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

	"github.com/goccy/go-json"
	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// app is one run of the program: its flags and its open things.
type app struct {
	in          io.Reader
	out, errOut io.Writer

	demo, json, quiet bool

	command string // its name
	began   time.Time
	key     string // the command's key, for its errors
	inLine  int32  // atomic: 1 if a bar has not ended its line on the terminal
	wrote   bool   // a request that changes something was sent, or may have been

	client  *upstash.Client // of a command on the database
	seed    uint64          // of UPBLOOM_SEED, for the same
	server  *upstashtest.Server
	options []upstash.Option  // of the client; none, except in tests
	clients []*upstash.Client // to close

	lost       int32 // atomic: 1 if an attempt may have run and its answer is lost
	attempts   int32 // atomic: all attempts
	unanswered int32 // atomic: those to which the database gave no answer
}

func (a *app) close() {
	for _, c := range a.clients {
		_ = c.Close()
	}
	if a.server != nil {
		a.server.Close()
	}
}

// connect reads the seed, and makes a client of the database in the environment,
// or of the demo's.
func (a *app) connect(ctx context.Context) (err error) {
	if a.seed, err = seed(); err != nil {
		return err
	}
	if !a.demo {
		a.client, err = a.connected()
		if err != nil {
			return usageError{error: fmt.Errorf("%w; or try --demo", err)}
		}
		return nil
	}
	if a.server, err = upstashtest.Start(); err != nil {
		return err
	}
	return a.fillDemo(ctx)
}

// connected makes a client of the database in the environment. If that has a proxy,
// the client goes over net/http, which uses it.
func (a *app) connected(opts ...upstash.Option) (*upstash.Client, error) {
	opts = slices.Concat([]upstash.Option{
		upstash.WithObserver(a.attempted),
		upstash.WithMaxRequest(2 * mostPart), // doctor asks where the database's own limit is
	}, a.options, opts)
	client, err := upstash.FromEnv(opts...)
	if errors.Is(err, upstash.ErrProxy) {
		client, err = upstash.FromEnv(append(opts, upstash.WithTransport(httptransport.New(nil)))...)
	}
	if err == nil {
		a.clients = append(a.clients, client)
	}
	return client, err
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

// attempted observes each attempt of the program's calls.
func (a *app) attempted(ctx context.Context, e upstash.Event) {
	if e.MayHaveRun > 0 && e.Err != nil && !isA[*upstash.Error](e.Err) {
		atomic.StoreInt32(&a.lost, 1)
	}
	atomic.AddInt32(&a.attempts, 1)
	if noAnswer(e.Err) {
		atomic.AddInt32(&a.unanswered, 1)
	}
	a.sayWaiting(ctx, e)
}

// sayWaiting prints a line if an attempt of a call ended because no answer came
// in time. The client may try again, and for the user that is all silence.
func (a *app) sayWaiting(ctx context.Context, e upstash.Event) {
	if a.quiet || a.json || ctx.Err() != nil || !errors.Is(e.Err, context.DeadlineExceeded) {
		return
	}
	newline := ""
	if atomic.LoadInt32(&a.inLine) == 1 {
		newline = "\n"
	}
	fmt.Fprintf(a.errOut, "%supbloom: no answer from %s within %v (attempt %d)\n", newline, a.host(),
		e.Duration.Round(time.Second), e.Attempt)
}

// host names connect's database.
func (a *app) host() string {
	if a.demo {
		return "the demo"
	}
	text, _, _ := a.endpoint()
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return printable(u.Host)
	}
	return "the database"
}

// endpoint returns the URL of connect's database, its token, and the one for reads
// alone, or "".
func (a *app) endpoint() (url, token, reads string) {
	if a.server != nil {
		return a.server.URL, a.server.Token, a.server.ReadOnlyToken
	}
	url, token = os.Getenv("UPSTASH_REDIS_REST_URL"), os.Getenv("UPSTASH_REDIS_REST_TOKEN")
	if url == "" && token == "" {
		return os.Getenv("KV_REST_API_URL"), os.Getenv("KV_REST_API_TOKEN"), os.Getenv("KV_REST_API_READ_ONLY_TOKEN")
	}
	return url, token, os.Getenv("UPSTASH_REDIS_REST_READONLY_TOKEN")
}

// An action runs a command with its arguments.
type action func(ctx context.Context, c *cli.Command, args []string) error

// taking returns the action of a command that takes at least least and at most
// most arguments; a most of -1 is no limit. An empty argument is an error. If least
// is above 0, the first is the key, and errors name it.
func (a *app) taking(least, most int, run action) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		a.command, a.began = c.Name, time.Now()
		args := c.Args().Slice()
		if len(args) < least || most >= 0 && len(args) > most {
			return usagef("usage: %s [options]%s; %[1]s --help explains them", c.FullName(),
				strings.TrimRight(" "+c.ArgsUsage, " "))
		}
		if i := slices.Index(args, ""); i >= 0 {
			return usagef("argument %d is empty: is a variable of the shell not set?", i+1)
		}
		if least > 0 {
			if !utf8.ValidString(args[0]) {
				return usagef("the key is not valid UTF-8: is the terminal set to another encoding?")
			}
			a.key = args[0]
		}
		return run(ctx, c, args)
	}
}

// onDatabase is taking for a command on the database.
func (a *app) onDatabase(least, most int, run action) cli.ActionFunc {
	return a.taking(least, most, func(ctx context.Context, c *cli.Command, args []string) error {
		if err := a.connect(ctx); err != nil {
			return err
		}
		return run(ctx, c, args)
	})
}

// typed reports whether standard input is a terminal.
func (a *app) typed() bool {
	f, ok := a.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminal returns standard error if a progress bar may be drawn there, else
// nil.
func (a *app) terminal() *os.File {
	f, ok := a.errOut.(*os.File)
	if a.quiet || a.json || !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// progress returns an option that draws a progress bar, or nil if standard
// error is no terminal.
func (a *app) progress(what string) bloom.MoveOption {
	f := a.terminal()
	if f == nil {
		return nil
	}
	var b *bar
	return bloom.WithProgress(func(done, total int64) {
		if b == nil {
			b = a.newBar(f, what, total)
		}
		b.at(done)
	})
}

// bar shows how many bytes were moved. It has a rate a second after its first
// ones.
type bar struct {
	*progressbar.ProgressBar
	what  string
	first int64
	begun time.Time
}

// newBar draws a bar of bytes. A total of -1 is unknown.
func (a *app) newBar(f *os.File, what string, total int64) *bar {
	atomic.StoreInt32(&a.inLine, 1)
	return &bar{what: what, ProgressBar: progressbar.NewOptions64(total, progressbar.OptionSetDescription(what),
		progressbar.OptionSetWriter(f), progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionOnCompletion(func() { fmt.Fprintln(f); atomic.StoreInt32(&a.inLine, 0) }))}
}

func (b *bar) at(done int64) {
	if b.begun.IsZero() {
		b.first, b.begun = done, time.Now()
	}
	text := b.what + " " + human.Bytes(uint64(done))
	if t := time.Since(b.begun); t >= time.Second {
		text += ", " + human.Bytes(uint64(float64(done-b.first)/t.Seconds())) + "/s"
	}
	b.Describe(text)
	_ = b.Set64(done)
}

// seconds returns how long the command has run.
func (a *app) seconds() float64 { return time.Since(a.began).Seconds() }

// output is standard output, or a pipe with a name. Its error is errNoReader if
// nobody reads it.
type output struct{ *os.File }

func (o output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if isReaderGone(err) {
		err = errNoReader
	}
	return n, err
}

// isReaderGone reports whether a write failed because nobody reads the pipe.
func isReaderGone(err error) bool {
	return slices.ContainsFunc(readerGone, func(gone error) bool { return errors.Is(err, gone) })
}

// print writes v as JSON, or text for people.
func (a *app) print(v any, text string) (err error) {
	if a.json {
		err = writeJSON(a.out, v)
	} else {
		_, err = fmt.Fprintln(a.out, text)
	}
	return a.unprinted(err)
}

// unprinted is the error of a write to the output, of a command that is done.
func (a *app) unprinted(err error) error {
	if err == nil || !a.wrote || errors.Is(err, errNoReader) {
		return err
	}
	text := "the command was carried out, but its result could not be printed: " + plain(err)
	return advised{marked{err, errWritten}, text}
}

// writeJSON writes v in one line.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
}

// message returns the text of an error for people who do not write Go. It names
// the key if the error is about one, and contains no control characters.
func (a *app) message(err error) string {
	text := plain(err)
	if usage, ok := errors.AsType[usageError](err); ok && usage.own {
		return harmless(text)
	}
	if a.key != "" {
		text = printable(a.key) + ": " + text
	}
	if errors.Is(err, context.Canceled) {
		text = "interrupted: " + text
	}
	return oneLine(text)
}

// notChanged is the error of a command interrupted before its first write, or of
// one that would write and finds other data.
func (a *app) notChanged(err error) error {
	if err == nil || a.wrote || isA[advised](err) {
		return err
	}
	refused := errors.Is(err, bloom.ErrNotFilter) && slices.Contains(writers, a.command)
	if refused || errors.Is(err, context.Canceled) {
		return followed(err, "nothing was changed")
	}
	return err
}

// writers are the commands that write to a filter.
var writers = []string{"add", "remove", "create", "load", "replace", "restore", "ttl", "rm"}

// unsure says what a command may have done if the outcome of its only write is
// unknown, and what shows it.
func (a *app) unsure(err error) error {
	says, ok := map[string]string{
		"create": "the filter was made, or it was not: upbloom info %s shows which, and it does no harm to run" +
			" the command again",
		"rm": "the filter is gone, or as it was: upbloom info %s shows which",
		"ttl": "the filter expires as before, or as was asked: upbloom ttl %s shows it, and it does no harm to" +
			" run the command again",
	}[a.command]
	if !ok || err == nil || exitStatus(err) != exitUnknown || isA[advised](err) {
		return err
	}
	if !isA[*upstash.Error](err) && !isA[*upstash.CallError](err) && !errors.Is(err, bloom.ErrUncertain) {
		return err // it says itself what was made
	}
	return followed(err, fmt.Sprintf(says, printable(a.key)))
}

// fillDemo makes the filters of the demo in the server, of all kinds, with item-0,
// item-1 and so on. Its client gives up no attempt: on a busy machine the scripts
// take long.
func (a *app) fillDemo(ctx context.Context) error {
	a.client = a.server.Client(upstash.WithTimeout(0))
	a.clients = append(a.clients, a.client)
	for _, d := range []struct {
		kind, key string
		spec      spec
		items     int
	}{
		{plainKind, "demo:webhooks", spec{Config: bloom.Config{
			Capacity: 10_000, FPRate: 0.001, TTL: 24 * time.Hour,
		}}, 4_200},
		{plainKind, "demo:usernames", spec{Config: bloom.Config{Capacity: 100_000, FPRate: 0.01}}, 73_000},
		{plainKind, "demo:crawled", spec{Config: bloom.Config{Capacity: 2_000, FPRate: 0.01}}, 3_500},
		{windowKind, "demo:deliveries", spec{
			Config: bloom.Config{Capacity: 5_000, FPRate: 0.001}, span: 24 * time.Hour, panes: 2,
		}, 1_200},
		{scalableKind, "demo:urls", spec{Config: bloom.Config{Capacity: 1_000, FPRate: 0.01}}, 1_200},
		{cuckooKind, "demo:seats", spec{Config: bloom.Config{Capacity: 2_000, FPRate: 0.001}}, 1_200},
		{shardedKind, "demo:pages", spec{
			Config: bloom.Config{Capacity: 10_000, FPRate: 0.01}, shards: 3,
		}, 1_200},
	} {
		items := make([]string, d.items)
		for i := range items {
			items[i] = "item-" + strconv.Itoa(i)
		}
		h, err := newHandle(a.client, d.kind, d.key, d.spec)
		if err == nil {
			_, err = h.Create(ctx)
		}
		if f, ok := h.(*bloom.Filter); err == nil && ok {
			_, err = f.Load(ctx, slices.Values(items))
		} else if err == nil {
			_, err = h.AddAll(ctx, items)
		}
		if err != nil {
			return err
		}
	}
	_, err := a.client.Do(ctx, upstash.Cmd("SET", "demo:not-a-filter", "just some text"))
	return err
}
