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

	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The errors of doctor.
var (
	errSick    = errors.New("a promise of upbloom would not hold on this database: see the lines with FAIL")
	errUnasked = errors.New("not all checks got an answer: see the lines with \"no answer\", and run doctor again")
)

func (a *app) doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "ask a database whether upbloom's promises hold on it", ArgsUsage: " ",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name:  "record",
				Usage: "write requests and answers to `FILE`, without token and host, to report a fault",
			},
			&cli.BoolFlag{
				Name: "large", Usage: "ask for the limits with a request of 16 MiB and a record of 100 MB",
			},
		},
		Action: a.onDatabase(0, 0, func(ctx context.Context, c *cli.Command, _ []string) error {
			p := &patient{a: a, large: c.Bool("large")}
			p.url, p.token, p.reads = a.endpoint()
			if !c.IsSet("record") {
				p.client = a.client
				return a.examine(ctx, p)
			}
			p.brief = true
			return a.recorded(c.String("record"), p, func() error { return a.examine(ctx, p) })
		}),
	}
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
// file. With --quiet, too, it says which: that is no progress. The recorder reports
// to a test, which is a faketest here.
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
		err = usagef("nothing was recorded: %s", oneLine(strings.Join(over.Failures, "; ")))
		if a.wrote {
			err = marked{err, errWritten}
		}
		return err
	}
	if !a.json {
		fmt.Fprintf(a.errOut, "recorded in %s, without token and host\n", printable(file))
	}
	return err
}

// examine runs all checks and prints a line for each. For people it adds a
// summary.
func (a *app) examine(ctx context.Context, p *patient) (err error) {
	p.base = "upbloom:doctor:" + strconv.FormatUint(rand.Uint64(), 36) + ":"
	p.prefix = p.base
	defer func() {
		if !a.wrote || p.clear(ctx, append(p.uncleared, p.prefix)...) == nil {
			return
		}
		if !a.json {
			fmt.Fprintf(a.errOut, "upbloom: keys %s* may be left: they expire in %v\n", p.base, ttl(scratchTTL))
		}
		if err == nil && ctx.Err() != nil {
			err = advised{ctx.Err(), "all checks were made"}
		}
	}()
	count := make(map[string]int)
	unasked := false
	for _, c := range checks() {
		f := p.judge(ctx, c)
		if ctx.Err() != nil {
			return advised{ctx.Err(), "not all checks were made"}
		}
		ends := p.ends(ctx, c, &f)
		count[f.Verdict]++
		unasked = unasked || errors.Is(f.err, errLost)
		text := fmt.Sprintf("%-7s  %-33s  %s", f.Verdict, f.Check, oneLine(f.Says))
		if f.Needs != "" && ends == nil {
			text += fmt.Sprintf("\n%-44swithout it fails: %s", "", f.Needs)
		}
		if err := cmp.Or(a.print(f, text), ends); err != nil {
			return err
		}
	}
	switch {
	case count[broken] > 0:
		return errSick
	case unasked:
		return errUnasked
	case a.json:
		return nil
	}
	_, err = fmt.Fprintf(a.out, "upbloom's promises hold here: %d ok, %d to note, %d skipped\n",
		count[found], count[notice], count[notAsked])
	return a.unprinted(err)
}

// ends returns why no check follows this one: the database does not answer, or
// another program holds a connection to it. What such a connection answers is no
// fault of what was asked for, so that f does not say so.
func (p *patient) ends(ctx context.Context, c check, f *finding) error {
	first := c.name == checkConnection
	switch {
	case errors.Is(f.err, errLost) && (first || p.isSilent(ctx)):
		return fmt.Errorf("the database does not answer: %s", strings.TrimPrefix(f.Says, errLost.Error()+": "))
	case f.Verdict == broken && first && isA[*upstash.Error](f.err):
		return fmt.Errorf("the database answers with an error: %s", f.Says)
	case f.Verdict == broken && (c.name == checkHeld || p.isHeld(ctx)):
		if c.name != checkHeld {
			*f = finding{Check: c.name, Verdict: notAsked, Says: "not judged: " + errHeld.Error()}
		}
		return errHeld
	case f.Verdict == broken && first:
		return fmt.Errorf("the database does not answer as Redis does: %s", f.Says)
	}
	return nil
}

// judge makes a check. If an answer is lost on the way, that says nothing about
// the database, and the check may have left its keys half made. So it is made once
// more, with new keys, and again if need be. If the same request of it gets the
// same answer each time, that is what the server says, whatever it means.
func (p *patient) judge(ctx context.Context, c check) finding {
	const most, patience = 5, 30 * time.Second
	var before refusal
	same := true
	for n, began := 1, time.Now(); ; n++ {
		unanswered, attempts := atomic.LoadInt32(&p.a.unanswered), atomic.LoadInt32(&p.a.attempts)
		f := ask(ctx, p, c)
		if f.err == nil || atomic.LoadInt32(&p.a.unanswered) == unanswered || ctx.Err() != nil {
			return f
		}
		this := refusal{f.Says, atomic.LoadInt32(&p.a.attempts) - attempts}
		same = same && (n <= 2 || this == before) && isOfServer(f.err)
		before = this // the first time, requests may come that are not repeated, such as TIME
		if n < most && time.Since(began) < patience {
			p.beginAnew(ctx, n)
			continue
		}
		if same && n == most {
			return f
		}
		f.Verdict, f.Needs = notAsked, ""
		if f.Says = errLost.Error() + " to some of its requests"; noAnswer(f.err) {
			f.Says = errLost.Error() + ": " + plain(f.err)
		}
		f.err = fmt.Errorf("%w: %w", errLost, f.err)
		return f
	}
}

// A refusal is an answer that was not the database's: what it said, and to which of
// the check's requests.
type refusal struct {
	says     string
	attempts int32
}

func ask(ctx context.Context, p *patient, c check) finding {
	p.err, p.needs = nil, ""
	says := c.ask(ctx, p)
	f := finding{Check: c.name, Verdict: found, Says: cmp.Or(says, "as expected"), err: p.err}
	if p.err == nil {
		return f
	}
	f.Says = plain(p.err)
	switch {
	case isA[skipped](p.err):
		f.Verdict = notAsked
	case c.needs != "":
		f.Verdict, f.Needs = broken, cmp.Or(p.needs, c.needs)
	default:
		f.Verdict = notice
	}
	return f
}

// The checks after which there may be no other.
const (
	checkConnection = "connection and token"
	checkHeld       = "connections that others left"
)

// checks returns the checks of doctor in order.
func checks() []check {
	const (
		all    = "all types and commands"
		counts = "create of all but a cuckoo filter, load, info, ls, replace, restore, ttl, ttl with a TIME, rm --match;" +
			" Stats, Cardinality"
		scripts = "create, load, replace, restore, rm, remove, ttl with a TIME, add to a scalable filter, add to a cuckoo filter," +
			" add to a sharded filter, add to a window in its next epoch; Create, Load, Merge, Replace, Delete, Rename, Expire," +
			" Persist, MustExist, Mirror, and what a Scalable, Cuckoo, Sharded writes"
		parts   = "save above 1 MiB, create and info of a cuckoo filter; Snapshot and TakeBackup above 1 MiB, Cuckoo.Stats"
		uploads = "load, replace, restore; Load, Merge, Replace, Backup.Restore"
		copies  = "save, replace; Snapshot, Save, TakeBackup, Mirror"
	)
	return []check{
		{checkConnection, all, askConnection},
		{checkHeld, all, askHeld},
		{"region", "", askRegion},
		{"set if zero, 53 bits exact", all, askSetIfZero},
		{"BITFIELD of 10,000 operations", "add - and check -; AddAll, ExistsAll", askManyOperations},
		{"BITFIELD_RO at offset 2^32-1", "check, info, ls; Exists, ExistsAll, Open of all types", askLastBit},
		{"BITCOUNT by bits", counts, askBitCount},
		{"pipeline, errors apart", "ls, save; large AddAlls and ExistsAlls, Snapshot, Sharded", askPipeline},
		{"transaction", "info, ls, load; Stats, Inspect, Load", askTransaction},
		{"script", scripts, askScript},
		{"script that only reads", parts, askReadScript},
		{"COPY in a script", "save of a window, a scalable or a cuckoo filter above 1 MiB; TakeBackup", askCopy},
		{"script locks its keys alone", "", askShebang},
		{"EVALSHA", "", askEvalSHA},
		{"refusals of a script", "", askScriptRefusals},
		{"expiry, only if there is none", "create --ttl; a TTL in a Config", askExpiry},
		{"raw body, any bytes", uploads, askRawBody},
		{"RESP2, any bytes", copies, askRESP2},
		{"base64, any bytes", copies, askBase64},
		{"base64 of a nested OK", copies, askNestedOK},
		{"base64 wherever it is asked for", copies + "; Reply.Bytes", askEncoding},
		{"limit of a request", "", askRequestLimit},
		{"limit of a record", "", askRecordLimit},
		{"refused commands", "all that writes: whether a retry is safe", askRefused},
		{"wrong token", "the token, which guards all data", askWrongToken},
		{"sync token", "", askSyncToken},
		{"reads see the last write", "check; Exists after an Add, of all types", askReadYourWrites},
		{"filter", "all commands with a plain filter; Filter", askFilter},
		{windowKind, "all commands with a window; Window", askLife(windowKind)},
		{scalableKind, "all commands with a scalable filter; Scalable", askLife(scalableKind)},
		{cuckooKind, "all commands with a cuckoo filter; Cuckoo", askLife(cuckooKind)},
		{shardedKind, "all commands with a sharded filter; Sharded", askLife(shardedKind)},
		{"eviction", "all types: a no may be wrong", askEviction},
		{"clock", "", askClock},
		{"read-only token", "", askReadOnly},
	}
}
