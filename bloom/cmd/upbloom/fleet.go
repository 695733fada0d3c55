package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
)

// With --match a command does its work on many filters: it shows which, asks for
// their number, goes on after a failure and ends with the worst exit status.

func matchFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "match", Usage: usage}
}

// oneOrAll returns the action of a command that has --match.
func (a *app) oneOrAll(args int, one action, allArgs int, all action) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		if !c.IsSet("match") {
			return a.onDatabase(args, args, one)(ctx, c)
		}
		return a.onDatabase(0, -1, func(ctx context.Context, c *cli.Command, args []string) error {
			if len(args) != allArgs || c.String("match") == "" {
				return usagef("usage: upbloom %s --match PATTERN [options]%s, without a KEY; upbloom %[1]s --help explains them",
					c.Name, strings.Repeat(" DIRECTORY", allArgs))
			}
			return all(ctx, c, args)
		})(ctx, c)
	}
}

// A member is one of many filters: of a sharded one its shards, by their base key.
type member struct {
	key   string
	kind  string
	bytes uint64
	parts []string          // keys: of the shards, or the filter's own
	files map[string]string // of the parts, of save and restore
	ids   []identity        // of the parts
	err   error             // why nothing is done with it
}

// like returns what reports whether a key matches a pattern of SCAN.
func like(pattern string) func(key string) bool {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(pattern); i++ {
		switch ch := pattern[i]; {
		case ch == '*':
			b.WriteString(`.*`)
		case ch == '?':
			b.WriteString(`.`)
		case ch == '[':
			end := len(pattern)
			if n := strings.IndexByte(pattern[i+1:], ']'); n >= 0 {
				end = i + 1 + n
			}
			set, not := strings.CutPrefix(pattern[i+1:end], "^")
			b.WriteByte('[')
			if not {
				b.WriteByte('^')
			}
			for j, r := range set {
				if r == '-' && j > 0 && j < len(set)-1 {
					b.WriteByte('-')
				} else {
					b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(string(r)), "-", `\-`))
				}
			}
			b.WriteByte(']')
			i = end
		default:
			if ch == '\\' && i+1 < len(pattern) {
				i++
			}
			end := i + 1
			for end < len(pattern) && pattern[end]&0xc0 == 0x80 { // the rest of a character
				end++
			}
			b.WriteString(regexp.QuoteMeta(pattern[i:end]))
			i = end - 1
		}
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return func(string) bool { return false }
	}
	return re.MatchString
}

// join returns the members that these strings make, by key. A sharded filter
// whose shards are not all here, or one of them twice, has an error.
func join(list []member) []member {
	by := make(map[string]*member)
	for _, m := range list {
		whole := by[m.key]
		if whole == nil {
			by[m.key] = &m
			continue
		}
		if m.kind != whole.kind || slices.Contains(whole.parts, m.parts[0]) {
			m.err = usagef("two filters say that they are of this key")
		}
		whole.bytes += m.bytes
		whole.parts, whole.ids = append(whole.parts, m.parts...), append(whole.ids, m.ids...)
		whole.err = errors.Join(whole.err, m.err)
		maps.Copy(whole.files, m.files)
	}
	var out []member
	for _, key := range slices.Sorted(maps.Keys(by)) {
		m := *by[key]
		if m.kind == shardedKind && m.err == nil {
			m.err = m.missing()
		}
		out = append(out, m)
	}
	return out
}

// missing is the error of a sharded filter of which shards are missing.
func (m member) missing() error {
	here := make(map[int]bool)
	count := 0
	for _, id := range m.ids {
		w := format.ParseShard(id.word)
		here[w.Index], count = true, max(count, w.Count)
	}
	if len(here) < count {
		return advised{bloom.ErrNotFound, fmt.Sprintf("%d of its %d shards are missing: lost, or in another database",
			count-len(here), count)}
	}
	return nil
}

// matching returns the filters at keys that match.
func (a *app) matching(ctx context.Context, pattern string) ([]member, error) {
	patterns := []string{pattern}
	ends := strings.ReplaceAll(pattern, `\\`, "")
	if !strings.HasSuffix(ends, "*") || strings.HasSuffix(ends, `\*`) {
		patterns = append(patterns, pattern+":*") // the shards of a sharded filter whose key matches
	}
	found, err := a.scan(ctx, patterns...)
	if err != nil {
		return nil, err
	}
	matches := like(pattern)
	var list []member
	for part := range slices.Chunk(found, 500) {
		keys := make([]string, len(part))
		for i, f := range part {
			keys[i] = f.Key
		}
		ids, err := a.identities(ctx, keys)
		if err != nil {
			return nil, err
		}
		for i, f := range part {
			m := member{
				key: f.Key, kind: f.Stats.Kind.String(), bytes: f.Stats.Bytes, parts: keys[i : i+1 : i+1],
				ids: ids[i : i+1 : i+1], err: f.Err,
			}
			if f.Err == nil && f.Stats.Kind == bloom.KindShard {
				m.key, m.kind = baseOf(f.Key), shardedKind
			}
			if f.Err != nil {
				m.kind = "not read"
			}
			if matches(m.key) {
				list = append(list, m)
			}
		}
	}
	list = join(list)
	if len(list) == 0 {
		return nil, noMatch(pattern)
	}
	return list, nil
}

// confirm shows the filters, and returns an error unless their number is typed, or
// --yes is set.
func (t *tally) confirm(ctx context.Context, c *cli.Command) error {
	a := t.a
	if c.Bool("yes") {
		return nil
	}
	if !a.json {
		var rows []string
		for _, m := range t.list {
			row := printable(m.key) + "\t" + m.kind
			if m.kind == shardedKind {
				row += " of " + human.Count(uint64(len(m.parts)))
			}
			row += "\t" + human.Bytes(m.bytes)
			if m.err != nil {
				row += "\t" + printable(plain(m.err))
			}
			rows = append(rows, row)
		}
		fmt.Fprintln(a.errOut, table(rows...))
	}
	what := human.Counted(uint64(len(t.list)), "filter") + " to " + t.verb + " " + t.where
	if !a.typed() {
		return usagef("%s\nNothing was done: --yes does it.", what)
	}
	answer, err := a.ask(ctx, what+". Type their number: ")
	if err == nil && strings.ReplaceAll(answer, ",", "") != strconv.Itoa(len(t.list)) {
		err = usagef("that is not their number: nothing was done")
	}
	return err
}

// A tally is what becomes of many filters.
type tally struct {
	a           *app
	verb, where string // "save", "to DIRECTORY"
	list        []member
	done        int
	bytes       uint64
	failed      map[string][]string // the keys for each reason
	worst       error
	unknown     bool // whether a write may have been made
	shown       time.Time
	printErr    error // the first
}

func (a *app) newTally(verb, where string, list []member) *tally {
	return &tally{a: a, verb: verb, where: where, list: list, failed: make(map[string][]string)}
}

// failure of one of many, as JSON.
type failedOne struct {
	Key   string `json:"key"`
	Error string `json:"error"`
	Exit  int    `json:"exit"`
}

// add counts one filter. line is its JSON, if it went well. If it cannot be printed,
// end says so: the work on the rest goes on.
func (t *tally) add(m member, line any, err error) {
	t.done++
	if err == nil {
		t.bytes += m.bytes
	} else {
		if t.worst == nil || exitStatus(err) > exitStatus(t.worst) {
			t.worst = err
		}
		t.unknown = t.unknown || exitStatus(err) == exitUnknown
		text := oneLine(plain(err))
		reason := text
		for _, file := range m.files {
			reason = strings.ReplaceAll(reason, printable(file), "the file")
		}
		t.failed[reason] = append(t.failed[reason], printable(m.key))
		line = failedOne{m.key, text, exitStatus(err)}
	}
	if t.a.json {
		var err error
		if lines, ok := line.(jsonLines); ok {
			_, err = t.a.out.Write(lines)
		} else {
			err = writeJSON(t.a.out, line)
		}
		t.printErr = cmp.Or(t.printErr, err)
	}
	if f := t.a.terminal(); f != nil && (time.Since(t.shown) > 100*time.Millisecond || t.done == len(t.list)) {
		t.shown = time.Now()
		atomic.StoreInt32(&t.a.inLine, 1)
		fmt.Fprintf(f, "\r%sd %s of %s", t.verb, human.Count(uint64(t.done)), human.Count(uint64(len(t.list))))
		if t.done == len(t.list) {
			fmt.Fprintln(f)
			atomic.StoreInt32(&t.a.inLine, 0)
		}
	}
}

// reasons returns a line for each reason, with the first of its keys.
func (t *tally) reasons() (lines []string) {
	const most = 3
	for text, keys := range t.failed {
		slices.Sort(keys)
		line := strings.Join(keys[:min(most, len(keys))], ", ")
		if more := len(keys) - most; more > 0 {
			line += fmt.Sprintf(" and %s more", human.Count(uint64(more)))
		}
		lines = append(lines, line+": "+text)
	}
	slices.Sort(lines)
	return lines
}

// end prints the sum, and returns the worst error.
func (t *tally) end(ctx context.Context) error {
	bad := 0
	for _, keys := range t.failed {
		bad += len(keys)
	}
	text := fmt.Sprintf("%sd %s of %s, %s, in %v, %s", t.verb, human.Count(uint64(t.done-bad)),
		human.Counted(uint64(len(t.list)), "filter"), human.Bytes(t.bytes), time.Since(t.a.began).Round(time.Millisecond), t.where)
	if !t.a.json {
		for _, line := range t.reasons() {
			fmt.Fprintln(t.a.errOut, line)
		}
		_, t.printErr = fmt.Fprintln(t.a.out, text)
	}
	switch left := bad + len(t.list) - t.done; {
	case ctx.Err() != nil && left > 0:
		worst := ctx.Err()
		if t.a.wrote && t.done > bad || t.unknown {
			worst = marked{worst, errPartly}
		}
		return advised{worst, fmt.Sprintf("%s of %s %s not %sd: run it again for the rest",
			human.Count(uint64(left)), human.Counted(uint64(len(t.list)), "filter"), were(left), t.verb)}
	case t.printErr != nil:
		return t.a.unprinted(t.printErr)
	case t.worst != nil:
		return advised{t.worst, fmt.Sprintf("%s of %s %s not %sd: the lines above say why",
			human.Count(uint64(bad)), human.Counted(uint64(len(t.list)), "filter"), were(bad), t.verb)}
	}
	return nil
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// fleetWorkers is how many filters are worked on at once.
const fleetWorkers = 8

// forEach does the work on the members, some at a time, each by a copy of the app with
// its key, and prints the sum. What the copy prints is the line of JSON.
func (t *tally) forEach(ctx context.Context, work func(ctx context.Context, one *app, m member) error) error {
	a := t.a
	like := *a
	like.json, like.quiet = true, true
	var mu sync.Mutex
	var wait sync.WaitGroup
	next := make(chan member)
	for range fleetWorkers {
		wait.Go(func() {
			for m := range next {
				var out bytes.Buffer
				one := like
				one.key, one.out = m.key, &out
				err := m.err
				if err == nil {
					err = one.notChanged(work(ctx, &one, m))
				}
				mu.Lock()
				a.wrote = a.wrote || one.wrote
				t.add(m, jsonLines(out.Bytes()), err)
				mu.Unlock()
			}
		})
	}
	for _, m := range t.list {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	wait.Wait()
	return t.end(ctx)
}

// jsonLines are what a command printed as JSON.
type jsonLines []byte
