package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"
	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
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
	files map[string]string // of the parts, of restore
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

// baseOf returns the key of a sharded filter of which this is a shard's.
func baseOf(key string) string {
	i := strings.LastIndexByte(key, ':')
	if _, err := strconv.ParseUint(key[i+1:], 10, 16); i < 0 || err != nil {
		return key
	}
	return key[:i]
}

// join returns the members that these strings make, by key. A sharded filter
// whose shards are not all here has an error.
func join(list []member) []member {
	by := make(map[string]*member)
	for _, m := range list {
		whole := by[m.key]
		if whole == nil {
			by[m.key] = &m
			continue
		}
		if m.kind != whole.kind || m.kind != shardedKind {
			m.err = fmt.Errorf("two filters say that they are of this key")
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
	found, err := a.scan(ctx, pattern)
	if err == nil && !strings.HasSuffix(pattern, "*") { // the shards of a sharded filter whose key matches
		var shards []bloom.Inspection
		shards, err = a.scan(ctx, pattern+":*")
		found = append(found, shards...)
	}
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
			m := member{key: f.Key, kind: f.Stats.Kind.String(), bytes: f.Stats.Bytes, parts: keys[i : i+1 : i+1],
				ids: ids[i : i+1 : i+1], err: f.Err}
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

// A sum is that of the filters of a kind, or of all, and its JSON.
type sum struct {
	Kind    string `json:"kind"`
	Filters int    `json:"filters"`
	Strings int    `json:"strings"` // keys
	Bytes   uint64 `json:"bytes"`
	Over    int    `json:"overCapacity"` // strings
	Expire  int    `json:"expire"`       // strings
}

func (s *sum) add(f bloom.Inspection) {
	s.Strings++
	s.Bytes += f.Stats.Bytes
	if f.Stats.Saturated || f.Stats.OverCapacity() {
		s.Over++
	}
	if f.Stats.TTL > 0 {
		s.Expire++
	}
}

// total prints how many filters match, and their sizes together.
func (a *app) total(ctx context.Context, pattern string) error {
	found, err := a.scan(ctx, pattern)
	if err != nil {
		return err
	}
	all := sum{Kind: "all"}
	kinds, bases := make(map[string]*sum), make(map[string]bool)
	var failure error
	unread := 0
	for _, f := range found {
		if f.Err != nil {
			unread, failure = unread+1, f.Err
			continue
		}
		kind, key := kindOf(f.Stats), f.Key
		if f.Stats.Kind == bloom.KindShard {
			kind, key = shardedKind, baseOf(key)
		}
		of := kinds[kind]
		if of == nil {
			of = &sum{Kind: kind}
			kinds[kind] = of
		}
		if !bases[key] {
			bases[key] = true
			of.Filters, all.Filters = of.Filters+1, all.Filters+1
		}
		of.add(f)
		all.add(f)
	}
	sums := []sum{}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		sums = append(sums, *kinds[kind])
	}
	sums = append(sums, all)
	if len(found) == 0 && pattern != "*" {
		return noMatch(pattern)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tFILTERS\tSTRINGS\tSIZE\tOVER CAPACITY\tEXPIRE")
	count := func(n int) string { return human.Count(uint64(n)) }
	for _, s := range sums {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Kind, count(s.Filters), count(s.Strings), human.Bytes(s.Bytes),
			count(s.Over), count(s.Expire))
	}
	_ = w.Flush()
	if err := a.print(sums, strings.TrimRight(b.String(), "\n")); err != nil {
		return err
	}
	if unread > 0 {
		return fmt.Errorf("%s could not be read, and is not in the sums: %w", human.Counted(uint64(unread), "filter"), failure)
	}
	return nil
}

// confirm shows the filters, and returns an error unless their number is typed, or
// --yes is set.
func (a *app) confirm(ctx context.Context, c *cli.Command, list []member, what string) error {
	if c.Bool("yes") {
		return nil
	}
	if !a.json {
		w := tabwriter.NewWriter(a.errOut, 0, 0, 2, ' ', 0)
		for _, m := range list {
			note := ""
			if m.err != nil {
				note = printable(plain(m.err))
			}
			kind := m.kind
			if kind == shardedKind {
				kind += " of " + human.Count(uint64(len(m.parts)))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", printable(m.key), kind, human.Bytes(m.bytes), note)
		}
		_ = w.Flush()
	}
	n := human.Counted(uint64(len(list)), "filter")
	if !a.typed() {
		return usagef("%s to %s\nNothing was done: --yes does it.", n, what)
	}
	fmt.Fprintf(a.errOut, "%s to %s. Type their number: ", n, what)
	answer, err := bufio.NewReader(a.interruptible(ctx, a.in)).ReadString('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || strings.ReplaceAll(strings.TrimSpace(answer), ",", "") != strconv.Itoa(len(list)) {
		return usagef("that is not their number: nothing was done")
	}
	return nil
}

// A tally is what became of many filters.
type tally struct {
	a         *app
	what      string // "removed"
	all, done int
	bytes     uint64
	failed    []string
	worst     error
	shown     time.Time
}

// failure of one of many, as JSON.
type failedOne struct {
	Key   string `json:"key"`
	Error string `json:"error"`
	Exit  int    `json:"exit"`
}

// add counts one filter. line is its JSON, if it went well.
func (t *tally) add(m member, line any, err error) error {
	t.done++
	if err == nil {
		t.bytes += m.bytes
		if lines, ok := line.(jsonLines); ok && t.a.json {
			_, err := t.a.out.Write(lines)
			return err
		}
		if t.a.json {
			return writeJSON(t.a.out, line)
		}
	} else {
		if t.worst == nil || exitStatus(err) > exitStatus(t.worst) {
			t.worst = err
		}
		text := oneLine(plain(err))
		t.failed = append(t.failed, printable(m.key)+": "+text)
		if t.a.json {
			return writeJSON(t.a.out, failedOne{m.key, text, exitStatus(err)})
		}
	}
	if f := t.a.terminal(); f != nil && (time.Since(t.shown) > 100*time.Millisecond || t.done == t.all) {
		t.shown = time.Now()
		atomic.StoreInt32(&t.a.inLine, 1)
		fmt.Fprintf(f, "\r%s %s of %s", t.what, human.Count(uint64(t.done)), human.Count(uint64(t.all)))
		if t.done == t.all {
			fmt.Fprintln(f)
			atomic.StoreInt32(&t.a.inLine, 0)
		}
	}
	return nil
}

// end prints the sum, and returns the worst error.
func (t *tally) end(ctx context.Context, where string) error {
	well := t.done - len(t.failed)
	text := fmt.Sprintf("%s %s of %s, %s, in %v, %s", t.what, human.Count(uint64(well)),
		human.Counted(uint64(t.all), "filter"), human.Bytes(t.bytes), time.Since(t.a.began).Round(time.Millisecond), where)
	slices.Sort(t.failed)
	if !t.a.json {
		for _, line := range t.failed {
			fmt.Fprintln(t.a.errOut, line)
		}
		if _, err := fmt.Fprintln(t.a.out, text); err != nil {
			return err
		}
	}
	switch left := t.all - t.done; {
	case ctx.Err() != nil:
		return advised{cmpWorse(t.worst, ctx.Err()), fmt.Sprintf("interrupted: %s were not tried: run it again for them",
			human.Counted(uint64(left), "filter"))}
	case t.worst != nil:
		return advised{t.worst, fmt.Sprintf("%s of %s were not %s: the lines above say why",
			human.Count(uint64(len(t.failed))), human.Counted(uint64(t.all), "filter"), t.what)}
	}
	return nil
}

// cmpWorse returns the first error if a write may have been made, else the other.
func cmpWorse(worst, other error) error {
	if worst != nil && exitStatus(worst) == exitUnknown {
		return worst
	}
	return other
}

// forEach does the work on the members, some at a time, each by a copy of the app with
// its key. What the copy prints is the line of JSON.
func (a *app) forEach(ctx context.Context, list []member, t *tally, work func(ctx context.Context, one *app, m member) error) error {
	const workers = 8
	like := *a
	like.json, like.quiet = true, true
	var mu sync.Mutex
	var failed error
	var wait sync.WaitGroup
	next := make(chan member)
	for range workers {
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
				if printErr := t.add(m, jsonLines(out.Bytes()), err); failed == nil {
					failed = printErr
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range list {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	wait.Wait()
	return failed
}

// jsonLines are what a command printed as JSON.
type jsonLines []byte

// removeScript removes the strings at KEYS if each still is the filter of ARGV: its
// header and its birth number, and the bits that are 0 in every filter.
const removeScript = `for i = 1, #KEYS do
  local r = redis.call('BITFIELD_RO', KEYS[i], 'GET', 'u53', '0', 'GET', 'u53', '64', 'GET', 'u10', '117')
  if r[1] ~= tonumber(ARGV[2 * i - 1]) or r[2] ~= tonumber(ARGV[2 * i]) or r[3] ~= 0 then return 0 end
end
return redis.call('DEL', unpack(KEYS))`

// removeAll removes the filters that match --match.
func (a *app) removeAll(ctx context.Context, c *cli.Command, _ []string) error {
	if c.IsSet("rest") {
		return usagef("--rest is for one sharded filter: leave --match out")
	}
	list, err := a.matching(ctx, c.String("match"))
	if err != nil {
		return err
	}
	for i, m := range list {
		if m.err == nil && !slices.ContainsFunc(m.ids, func(id identity) bool { return !id.sure() }) {
			continue
		}
		list[i].err = cmpErr(m.err, advised{bloom.ErrNotFilter, "it was left alone: it begins as a filter does, and has no" +
			" birth number, so that it may be other data: upbloom rm removes it by its own key"})
	}
	if err := a.confirm(ctx, c, list, "remove from "+a.host()); err != nil {
		return err
	}
	t := &tally{a: a, what: "removed", all: len(list)}
	for part := range slices.Chunk(list, 50) {
		if ctx.Err() != nil {
			break
		}
		if err := a.removePart(ctx, part, t); err != nil {
			return err
		}
	}
	return t.end(ctx, "from "+a.host())
}

func (a *app) removePart(ctx context.Context, part []member, t *tally) error {
	var cmds []upstash.Command
	for _, m := range part {
		if m.err != nil {
			continue
		}
		args := append([]string{removeScript, strconv.Itoa(len(m.parts))}, m.parts...)
		for _, id := range m.ids {
			args = append(args, strconv.FormatInt(id.header, 10), strconv.FormatInt(id.birth, 10))
		}
		cmds = append(cmds, upstash.Cmd("EVAL", args...))
	}
	a.wrote = a.wrote || len(cmds) > 0
	replies, failed := a.client.Pipeline(ctx, cmds...)
	at := 0
	for _, m := range part {
		err := m.err
		if err == nil {
			if err = failed; err == nil {
				err = removedBy(replies[at])
			}
			at++
		}
		if err := t.add(m, removed{m.key, true, a.host()}, err); err != nil {
			return err
		}
	}
	return nil
}

// removedBy reads the answer of removeScript.
func removedBy(r upstash.Reply) error {
	n, err := r.Int64()
	if err == nil && n == 0 {
		err = advised{bloom.ErrRecreated, "it was left alone: it has changed since it was listed, or is gone"}
	}
	return err
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// saveAll saves the filters that match --match, each into a file of a folder.
func (a *app) saveAll(ctx context.Context, c *cli.Command, args []string) error {
	list, err := a.matching(ctx, c.String("match"))
	if err != nil {
		return err
	}
	if err := a.confirm(ctx, c, list, "save to "+printable(args[0])); err != nil {
		return err
	}
	if err := os.Mkdir(args[0], 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return usageError{error: err}
	}
	for i := range list {
		if list[i].kind == shardedKind {
			list[i].err = nil // the shards that are here are saved, and then it is said
		}
	}
	t := &tally{a: a, what: "saved", all: len(list)}
	err = a.forEach(ctx, list, t, func(ctx context.Context, one *app, m member) error {
		var missing error
		if m.kind == shardedKind {
			missing = m.missing()
		}
		for _, key := range m.parts {
			if err := one.saveOne(ctx, key, filepath.Join(args[0], fileNameOf(key)), c.Bool("force")); err != nil {
				return err
			}
		}
		return missing
	})
	if err != nil {
		return err
	}
	return t.end(ctx, "in "+printable(args[0]))
}

// fileNameOf returns the name of a key's file: the same on every system, though some
// take capitals for small letters, and none takes every character.
func fileNameOf(key string) string {
	var b strings.Builder
	for i := range len(key) {
		ch := key[i]
		if 'a' <= ch && ch <= 'z' || '0' <= ch && ch <= '9' || ch == '-' || ch == '_' || ch == '.' && i > 0 {
			b.WriteByte(ch)
		} else {
			fmt.Fprintf(&b, "%%%02X", ch)
		}
	}
	name := b.String()
	if len(name) > 200 { // the key is in the file
		name = fmt.Sprintf("%s~%016x", name[:180], xxh3.HashString(key))
	}
	return name + ".upbloom"
}

// restoreAll restores the files of a folder whose keys match --match.
func (a *app) restoreAll(ctx context.Context, c *cli.Command, args []string) error {
	if err := restoreFlags(c); err != nil {
		return err
	}
	entries, err := os.ReadDir(args[0])
	if err != nil {
		return usageError{error: err}
	}
	matches := like(c.String("match"))
	var list []member
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(args[0], e.Name())
		m, err := a.memberIn(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			m = member{key: e.Name(), kind: "not read", err: err}
		}
		if err != nil || matches(m.key) {
			list = append(list, m)
		}
	}
	list = join(list)
	if len(list) == 0 {
		return usagef("no file in %s is of a key like %s", printable(args[0]), printable(c.String("match")))
	}
	if err := a.confirm(ctx, c, list, "restore to "+a.host()); err != nil {
		return err
	}
	t := &tally{a: a, what: "restored", all: len(list)}
	err = a.forEach(ctx, list, t, func(ctx context.Context, one *app, m member) error {
		for _, key := range m.parts {
			one.key = key
			if err := one.restore(ctx, c, []string{key, m.files[key]}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.end(ctx, "to "+a.host())
}

// memberIn reads a saved file, and which filter it is of.
func (a *app) memberIn(ctx context.Context, path string) (member, error) {
	one := *a
	one.quiet = true
	b, err := one.readSaved(ctx, path)
	if err != nil {
		return member{}, err
	}
	key := b.note.Key
	if key == "" {
		return member{}, usagef("%s: %s: restore it by itself", printable(path), b.note.origin())
	}
	s := b.Stats()
	m := member{key: key, kind: s.Kind.String(), bytes: s.Bytes, parts: []string{key}, files: map[string]string{key: path}}
	if s.Kind == bloom.KindShard {
		var word [format.FrameHeadBytes + format.HeaderBytes]byte
		f, err := os.Open(path)
		if err != nil {
			return member{}, usageError{error: err}
		}
		defer f.Close()
		if _, err := f.ReadAt(word[:], 0); err != nil {
			return member{}, usageError{error: err}
		}
		m.key, m.kind = baseOf(key), shardedKind
		third := binary.BigEndian.Uint64(word[format.FrameHeadBytes+format.KindOffset/8:])
		m.ids = []identity{{word: int64(third >> (64 - format.WordBits))}}
	}
	return m, nil
}
