package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The results of a check.
const (
	found    = "ok"      // as upbloom needs it
	notice   = "note"    // upbloom works without it, or it is only information
	broken   = "FAIL"    // a promise would not hold
	notAsked = "skipped" // it could not be asked
)

// finding is the result of one check, and its JSON.
type finding struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"`
	Says    string `json:"says"`

	err error // of the check, or nil
}

// check asks the database one thing. Its error is a FAIL if upbloom needs the
// thing, otherwise a note.
type check struct {
	name   string
	needed bool
	ask    func(context.Context, *patient) (says string, err error)
}

// patient is the database under examination.
type patient struct {
	client *upstash.Client
	prefix string // of all keys of doctor
	brief  bool   // a recording must stay small
	large  bool   // check limits, which takes much memory

	lost        *int32 // atomic: 1 if a request may still be on its way
	url, token  string
	read, write time.Duration // round trips
}

// scratchTTL is the time to live of doctor's keys, in case doctor is
// interrupted.
const scratchTTL = 10 * time.Minute

// emptyTTL is that of keys that clear has emptied: longer than a request is on
// its way.
const emptyTTL = time.Minute

// key returns a scratch key.
func (p *patient) key(name string) string { return p.prefix + name }

// set makes a scratch key, which expires.
func (p *patient) set(ctx context.Context, name, value string) error {
	_, err := p.client.Do(ctx, upstash.Cmd("SET", p.key(name), value, "EX", seconds(scratchTTL)))
	return err
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// errWrong is the error of a check if upbloom does not rely on such an answer.
var errWrong = errors.New("another answer than Redis gives")

func wrongf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errWrong}, args...)...)
}

// skipped is the error of a check that could not be made.
type skipped struct{ error }

// errSick is doctor's error if a check failed.
var errSick = errors.New("a promise of upbloom would not hold on this database: see the lines with FAIL")

func (a *app) doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "ask a database whether upbloom's promises hold on it", ArgsUsage: " ",
		Description: "Costs about 200 commands, sends 10 MB and reads 2.5 MB. All keys that it writes\n" +
			"begin with upbloom:doctor: and have a TTL. It removes them at the end, and empties\n" +
			"them after an interrupt or a lost answer: they are gone in a minute. What a request\n" +
			"writes that was on its way then may stay for an hour: at most 1 MiB.\n\n" +
			"A FAIL breaks a promise of upbloom; a note does not. The exit status is 4 if there is\n" +
			"a FAIL. --record overwrites no file but a recording. It keeps the file small: bodies\n" +
			"of 1 KiB stand for those of 1 MiB, and the limit of a request is not asked for, not\n" +
			"even with --large. For a fault with large bodies run doctor without it, too.",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "record", Usage: "write requests and answers to `FILE`, without token and host, for a report of a fault",
			},
			&cli.BoolFlag{
				Name: "large", Usage: "ask for the limits with a request of 16 MiB and a record of 100 MB",
			},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if _, err := a.arguments(c, 0, 0); err != nil {
				return err
			}
			if _, err := a.connect(ctx); err != nil { // it checks the URL and the token
				return err
			}
			p := &patient{large: c.Bool("large")}
			p.url, p.token = a.endpoint()
			p.lost = &a.lost
			if !c.IsSet("record") {
				p.client = a.client
				return a.examine(ctx, p)
			}
			p.brief = true
			return a.recorded(c.String("record"), p, func() error { return a.examine(ctx, p) })
		},
	}
}

// endpoint returns the URL and the token of connect's database.
func (a *app) endpoint() (url, token string) {
	if a.server != nil {
		return a.server.URL, a.server.Token
	}
	url, token = os.Getenv("UPSTASH_REDIS_REST_URL"), os.Getenv("UPSTASH_REDIS_REST_TOKEN")
	if url == "" && token == "" {
		url, token = os.Getenv("KV_REST_API_URL"), os.Getenv("KV_REST_API_TOKEN")
	}
	return url, token
}

// recordingMagic is how a file of upstashtest.Record begins.
const recordingMagic = "{\n  \"version\": "

// mayRecord refuses to write over a file other than a recording, and into a
// folder in which no file can be made. The recorder would make the folder: the
// mistake in its name would show nowhere.
func mayRecord(file string) error {
	if err := mayOverwrite(file, recordingMagic, "recording", "name another file"); err != nil {
		return err
	}
	if path, err := filepath.EvalSymlinks(file); err == nil {
		file = path
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	tmp, err := fileBeside(file)
	if err != nil {
		return err
	}
	_ = tmp.Close()
	return os.Remove(tmp.Name())
}

// recorded runs f with a client for p, and writes its requests and answers to a
// file. The recorder reports to a test, which is a faketest here.
func (a *app) recorded(file string, p *patient, f func() error) error {
	if file == "" {
		return usagef("--record names no file")
	}
	err := mayRecord(file)
	if err != nil { // before all is asked
		return err
	}
	over := faketest.Run(func(tb testing.TB) {
		p.client = upstashtest.Record(tb, file, p.url, p.token, upstash.WithObserver(a.attempted))
		err = f()
	})
	gone := slices.ContainsFunc(over.Causes, isReaderGone)
	switch {
	case gone && !errors.Is(err, context.Canceled): // an interrupt ends the reader too
		return errNoReader
	case gone:
		return err
	case len(over.Failures) > 0:
		return usagef("nothing was recorded: %s", oneLine(strings.Join(over.Failures, "; ")))
	}
	if !a.quiet && !a.json {
		fmt.Fprintf(a.errOut, "recorded in %s, without token and host\n", printable(file))
	}
	return err
}

// examine runs all checks and prints a line for each. For people it adds a
// summary.
func (a *app) examine(ctx context.Context, p *patient) (err error) {
	p.prefix = newPrefix()
	nothingMade := false
	defer func() {
		if nothingMade || p.clear(ctx) == nil {
			return
		}
		if !a.json {
			fmt.Fprintf(a.errOut, "upbloom: keys %s* may be left: they expire in %v\n", p.prefix, ttl(scratchTTL))
		}
		if err == nil && ctx.Err() != nil {
			err = advised{ctx.Err(), "all checks were made"}
		}
	}()
	count := make(map[string]int)
	list := checks()
	for i, c := range list {
		f := askLast(ctx, p, list[:i+1])
		if ctx.Err() != nil {
			return advised{ctx.Err(), "not all checks were made"}
		}
		count[f.Verdict]++
		if err := a.print(f, fmt.Sprintf("%-7s  %-33s  %s", f.Verdict, f.Check, oneLine(f.Says))); err != nil {
			return err
		}
		if c.name == checkConnection && f.Verdict == broken {
			nothingMade = upstash.SafeToRetry(f.err)
			said := "does not answer"
			if answer := (*upstash.Error)(nil); errors.As(f.err, &answer) {
				said = "answers with an error"
			}
			return fmt.Errorf("the database %s: %s", said, f.Says)
		}
	}
	if count[broken] > 0 {
		return errSick
	}
	if a.json {
		return nil
	}
	_, err = fmt.Fprintf(a.out, "upbloom's promises hold here: %d ok, %d to note, %d not asked\n",
		count[found], count[notice], count[notAsked])
	return err
}

// newPrefix returns the beginning of the keys of one examination.
func newPrefix() string { return "upbloom:doctor:" + strconv.FormatUint(rand.Uint64(), 36) + ":" }

// askLast makes the last check of a list. If an answer is lost on the way, that
// says nothing about the database, and the check has left its keys half made. So
// it makes all of them once more, with new keys, and again if need be.
func askLast(ctx context.Context, p *patient, list []check) finding {
	f := ask(ctx, p, list[len(list)-1])
	for tries := 0; tries < 2 && f.Verdict == broken && isLost(f.err) && ctx.Err() == nil; tries++ {
		if p.clear(ctx) != nil {
			return f // clear is called with these keys once more
		}
		p.prefix = newPrefix()
		for _, c := range list {
			if f = ask(ctx, p, c); f.Verdict == broken && isLost(f.err) {
				break
			}
		}
	}
	return f
}

// errLost is the error of a request without an answer, if package upstash did
// not send it.
var errLost = errors.New("no answer")

// isLost reports whether a command may have run, and its answer was lost.
func isLost(err error) bool {
	var call *upstash.CallError
	return errors.Is(err, errLost) || errors.Is(err, upstash.ErrUncertain) || errors.Is(err, bloom.ErrUncertain) ||
		!upstash.SafeToRetry(err) && errors.As(err, &call) && call.StatusCode == 0
}

func ask(ctx context.Context, p *patient, c check) finding {
	says, err := c.ask(ctx, p)
	f := finding{Check: c.name, Verdict: found, Says: says, err: err}
	var skip skipped
	switch {
	case errors.As(err, &skip):
		f.Verdict, f.Says = notAsked, skip.Error()
	case err != nil && c.needed:
		f.Verdict, f.Says = broken, plain(err)
	case err != nil:
		f.Verdict, f.Says = notice, plain(err)
	}
	f.Says = cmp.Or(f.Says, "as expected")
	return f
}

// clear removes the scratch keys. After an interrupt or a lost answer it empties
// them and lets them expire: a request that is still on its way may write to one
// later, and would make it again without a TTL.
func (p *patient) clear(ctx context.Context) error {
	onItsWay := ctx.Err() != nil || atomic.LoadInt32(p.lost) == 1
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	keys := make([]string, 0, len(scratchNames))
	var empty []upstash.Command
	for _, name := range scratchNames {
		keys = append(keys, p.key(name))
		empty = append(empty, upstash.Cmd("SET", p.key(name), "", "EX", seconds(emptyTTL)).Repeatable(true))
	}
	if onItsWay {
		replies, err := p.client.Pipeline(ctx, empty...)
		for _, r := range replies {
			err = cmp.Or(err, r.Err())
		}
		return err
	}
	_, err := p.client.Do(ctx, upstash.Cmd("UNLINK", keys...).Repeatable(true))
	return err
}
