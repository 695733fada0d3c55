package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
	"github.com/zeebo/xxh3"
	"golang.org/x/term"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

func (a *app) saveCommand() *cli.Command {
	return &cli.Command{
		Name: "save", Usage: "download a filter into a file",
		ArgsUsage: "KEY FILE (or - for standard output), or --match PATTERN DIRECTORY",
		Flags: []cli.Flag{
			matchFlag("save all filters whose keys match `PATTERN`, each into a file in DIRECTORY"),
			yesFlag("with --match: do not ask"),
			&cli.BoolFlag{Name: "force", Usage: "overwrite whatever FILE is"},
		},
		Action: a.oneOrAll(2, func(ctx context.Context, c *cli.Command, args []string) error {
			if c.IsSet("yes") {
				return usagef("--yes has no effect without --match")
			}
			return a.saveOne(ctx, args[0], args[1], c.Bool("force"))
		}, 1, a.saveAll),
	}
}

// saveOne saves the filter at a key, or one shard.
func (a *app) saveOne(ctx context.Context, key, file string, force bool) error {
	if err := a.maySave(file, force); err != nil {
		return err
	}
	var s bloom.Stats
	take := func() (io.WriterTo, error) {
		saved, err := a.take(ctx, key)
		if err == nil {
			s = saved.Stats()
		}
		return saved, err
	}
	if file == "-" {
		b, err := take()
		if err == nil {
			_, err = b.WriteTo(a.out)
		}
		return err
	}
	n, err := saveTo(ctx, file, force, take)
	if err != nil {
		return err
	}
	m := moved{Key: key, Bytes: n, Seconds: a.seconds()}
	if s.Damaged {
		m.Note = "it " + isDamaged + ": members may be denied, also of what is restored from the file"
	}
	return a.print(m, m.text("saved a "+kindNoun(s.Kind.String())+","))
}

// take downloads the filter at a key, and notes which one it is.
func (a *app) take(ctx context.Context, key string) (noted, error) {
	before, err := a.identities(ctx, []string{key})
	if err != nil {
		return noted{}, err
	}
	b, err := bloom.TakeBackup(ctx, a.client, key, a.progress("save"))
	if err != nil {
		return noted{}, a.notSaved(ctx, err)
	}
	after, err := a.identities(ctx, []string{key})
	if err != nil {
		return noted{}, err
	}
	now := time.Now().UTC()
	if before[0].header != after[0].header || before[0].birth != after[0].birth {
		return noted{}, advised{bloom.ErrRecreated, "the filter was replaced while it was saved: save it again"}
	}
	n := note{Key: key, Host: a.host(), Saved: now.Truncate(time.Second), Birth: after[0].birth}
	if after[0].left > 0 {
		expires := now.Add(after[0].left).Truncate(time.Millisecond)
		n.Expires = &expires
	}
	return noted{Backup: b, note: n}, nil
}

// notSaved says what to do if a filter cannot be saved as one string.
func (a *app) notSaved(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*upstash.Error](err); ok && errors.Is(err, upstash.ErrNoPermission) {
		command := refused.Command
		if strings.Contains(refused.Message, " script") { // what it calls was refused
			command = ""
		}
		switch command {
		case "EVAL": // of a start, another command follows its refusal
			return advised{err, "the filter is larger than 1 MiB, and the database has to copy it, which the token may" +
				" not do: use a full token"}
		case "EVAL_RO":
			return advised{err, "the token may not run EVAL_RO, which a save needs of a filter that is larger than 1 MiB," +
				" and of any if the token may not run EVAL: use a full token"}
		}
	}
	if !errors.Is(err, bloom.ErrNotFound) && !errors.Is(err, bloom.ErrNotFilter) {
		return err
	}
	s, openErr := a.look(ctx)
	if openErr == nil && s.Damaged {
		return advised{err, "the cuckoo filter " + isDamaged + ", and it counts more items than it has room for: it cannot be" +
			" saved, and upbloom info says how to make it again"}
	}
	if openErr == nil && kindOf(s) == shardedKind {
		return advised{bloom.ErrNotFilter, fmt.Sprintf("the key holds a sharded filter: save each shard to a file of"+
			" its own, from %s:0 to %[1]s:%d, as save --match PATTERN DIRECTORY does", printable(a.key), len(s.Parts)-1)}
	}
	if errors.Is(openErr, errHeadless) {
		return openErr
	}
	return err
}

const isDamaged = "is damaged, because something else wrote to its table"

// maySave refuses to write to a terminal, or over a file other than a saved
// filter.
func (a *app) maySave(name string, force bool) error {
	if name == "-" {
		if f, ok := a.out.(output); ok && term.IsTerminal(int(f.Fd())) {
			return usagef("a saved filter is binary, and standard output is a terminal: name a file")
		}
		return nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return aDirectory(name, a.command)
	}
	if force {
		return nil
	}
	return mayOverwrite(name, format.FrameMagic, "saved filter", orForce)
}

const orForce = "name another file, or use --force"

// mayOverwrite refuses a directory, and a file that does not begin as those of
// the kind.
func mayOverwrite(name, magic, kind, advice string) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return aDirectory(name, "")
	case err != nil, !info.Mode().IsRegular(), info.Size() == 0:
		return nil
	}
	f, err := os.Open(name)
	if err != nil { // a rename needs no permission for the file that it replaces
		return unreadable(name, err, advice)
	}
	defer f.Close()
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(f, start); err != nil || string(start) != magic {
		return usagef("%s is no %s, and was left as it is: %s", printable(name), kind, advice)
	}
	return nil
}

// unreadable refuses to write over a file that cannot be read.
func unreadable(name string, err error, advice string) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		err = file.Err
	}
	return usagef("%s cannot be read, and was left as it is: %w: %s", printable(name), err, advice)
}

// fileBeside makes a temporary file in the folder of the named one. It makes no
// folder.
func fileBeside(name string) (*os.File, error) {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".upbloom-*")
	if file, ok := errors.AsType[*fs.PathError](err); ok { // names the temporary file
		return nil, usagef("no file can be made in %s: %w", printable(filepath.Dir(name)), file.Err)
	}
	if err != nil {
		return nil, usageError{error: err}
	}
	return tmp, nil
}

// saveTo writes a file beside the named one and then renames it. At any time
// the named file is the old one or the whole new one. It follows a link, and
// writes directly into anything but a plain file, such as a pipe. On
// Unix only the owner may read a new file.
func saveTo(ctx context.Context, name string, force bool, take func() (io.WriterTo, error)) (n int64, err error) {
	before, err := os.Stat(name)
	if err == nil && !before.Mode().IsRegular() {
		return saveInto(ctx, name, take)
	}
	if _, linkErr := os.Readlink(name); err != nil && linkErr == nil { // a rename would take the link's place
		return 0, usagef("%s is a link to a file that is not there: is a disk not mounted? Make the file, which may be"+
			" empty, or remove the link", printable(name))
	}
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}
	tmp, err := fileBeside(name)
	if err != nil {
		return 0, err
	}
	defer os.Remove(tmp.Name())
	if before != nil { // whoever may read the old file may read the new one
		_ = tmp.Chmod(before.Mode().Perm())
	}
	n, err = writeTemp(tmp, take)
	if err == nil && !force {
		err = keepsBackup(tmp.Name(), name)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok { // it names the temporary file
		err = usagef("%s was not written, and is as it was: %w", printable(name), file.Err)
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok { // on Windows, if another program has it open
		err = usagef("%s cannot be replaced, and was left as it is: %w", printable(name), link.Err)
	}
	return n, err
}

// writeTemp writes and closes the temporary file.
func writeTemp(tmp *os.File, take func() (io.WriterTo, error)) (n int64, err error) {
	defer func() {
		if closeErr := tmp.Close(); err == nil {
			err = closeErr
		}
	}()
	b, err := take()
	if err != nil {
		return 0, err
	}
	if n, err = b.WriteTo(tmp); err != nil {
		return n, err
	}
	return n, tmp.Sync()
}

// saveInto writes into a pipe, or what else is no plain file. A write to it may
// wait for ever.
func saveInto(ctx context.Context, name string, take func() (io.WriterTo, error)) (n int64, err error) {
	b, err := take()
	if err != nil {
		return 0, err
	}
	out, err := openUntil(ctx, func() (*os.File, error) { return os.OpenFile(name, os.O_WRONLY, 0) })
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() { _ = out.Close() })()
	n, err = b.WriteTo(output{out})
	closeErr := out.Close()
	if err == nil {
		err = closeErr
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return n, err
}

func (a *app) restoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "bring a saved filter back",
		ArgsUsage: "KEY FILE (or - for standard input), or --match PATTERN DIRECTORY",
		Flags: slices.Concat([]cli.Flag{
			matchFlag("restore the files in DIRECTORY whose keys match `PATTERN`, '*' for all"),
			&cli.BoolFlag{Name: "replace", Usage: "put the saved state in place of the plain filter that is there"},
			&cli.BoolFlag{Name: "merge", Usage: "add the saved items to the plain filter that is there"},
			yesFlag("replace one of another key or size, or far more items; with --match: do not ask"),
			lifetimeFlag("let a new filter expire after `TIME`, e.g. 24h or 7d", "ttl"),
		}, fillFlags()),
		Action: a.oneOrAll(2, a.restore, 1, a.restoreAll),
	}
}

// restoreFlags refuses flags without effect.
func restoreFlags(c *cli.Command) error {
	merge, replace := c.Bool("merge"), c.Bool("replace")
	switch {
	case merge && replace:
		return usagef("--merge and --replace: choose one of them")
	case !merge && (c.IsSet("max-rate") || c.IsSet("force")):
		return usagef("--max-rate and --force have no effect without --merge")
	case !replace && c.IsSet("yes") && !c.IsSet("match"):
		return usagef("--yes has no effect without --replace")
	case c.IsSet("ttl") && (merge || replace):
		return usagef("--ttl is for a new filter: upbloom ttl sets that of one that is there")
	}
	return tooShort(c, "ttl", ", or leave it out")
}

func (a *app) restore(ctx context.Context, c *cli.Command, args []string) error {
	if err := restoreFlags(c); err != nil {
		return err
	}
	b, err := a.readSaved(ctx, args[1])
	if err != nil {
		return err
	}
	kind := b.Stats().Kind.String()
	if c.IsSet("ttl") && kind != plainKind && kind != scalableKind {
		return usagef("--ttl has no effect on a %s, which %s holds: leave it out", kindNoun(kind), b.file)
	}
	there, err := a.look(ctx)
	switch {
	case err == nil && kind == plainKind && kindOf(there) == plainKind && (c.Bool("merge") || c.Bool("replace")):
		return a.restoreOver(ctx, c, b, there)
	case err == nil:
		return a.mayNotRestore(c, b, there)
	case !errors.Is(err, bloom.ErrNotFound) || errors.Is(err, errHeadless) && kind != "shard":
		return err
	}
	left := lifetimeOf(c, "ttl")
	if expires := b.note.Expires; expires != nil && !c.IsSet("ttl") && (kind == plainKind || kind == scalableKind) {
		if left = time.Until(*expires); left < time.Millisecond {
			return usagef("%s: the filter in it expired on %s, and nothing was changed: --ttl 24h restores it for a day",
				b.file, expires.UTC().Format("2006-01-02 15:04 MST"))
		}
	}
	a.wrote = true
	r, err := b.Restore(ctx, a.client, a.key, left, a.progress("restore"))
	if err != nil {
		return a.moveFailed(c, err)
	}
	m := a.merged(r)
	m.from(b.note)
	return a.printChange(ctx, m, true, kind, nil)
}

// mayNotRestore is the error of a restore to a key with a filter.
func (a *app) mayNotRestore(c *cli.Command, b noted, there bloom.Stats) error {
	kind, at, holds := b.Stats().Kind.String(), kindOf(there), "a filter, "+brief(there)+","
	if c.IsSet("match") { // equal words for all
		holds = "a filter,"
	}
	if kind != plainKind {
		return advised{bloom.ErrKeyExists, fmt.Sprintf("the key holds a %s, and a %s is restored only to a key that"+
			" holds nothing; nothing was changed: use another key, or remove what is there with upbloom rm",
			kindNoun(at), kindNoun(kind))}
	}
	if at != plainKind {
		return a.refuse(at, b.file+" holds a plain filter: use another key")
	}
	return advised{bloom.ErrKeyExists, fmt.Sprintf("the key holds %s and nothing was changed: --replace puts %s in its"+
		" place, --merge adds that to it", holds, b.file)}
}

// restoreOver merges a plain filter into the one that is there, or replaces that.
func (a *app) restoreOver(ctx context.Context, c *cli.Command, b noted, there bloom.Stats) error {
	l, err := b.Local(a.seed)
	if err != nil {
		return usagef("%s: %s", b.file, plain(err))
	}
	g := l.Geometry()
	f, err := bloom.New(a.client, a.key, bloom.Config{
		Bits: g.Bits, Hashes: g.Hashes, Scheme: g.Scheme, Seed: g.Seed,
	})
	if err != nil {
		return err
	}
	m := moved{}
	if c.Bool("replace") {
		m, err = a.restoreInPlace(ctx, c, b, there, f, l)
	} else {
		m, err = a.restoreInto(ctx, c, b, there, f, l)
	}
	if err != nil {
		return err
	}
	m.from(b.note)
	return a.printChange(ctx, m, true, plainKind, &there)
}

// restoreInPlace puts the saved state in place of the filter that is there.
func (a *app) restoreInPlace(
	ctx context.Context, c *cli.Command, b noted, there bloom.Stats, f *bloom.Filter, l *bloom.Local,
) (m moved, _ error) {
	saved, resized := b.Stats(), isResized(&there, f.Geometry())
	yes := c.Bool("yes") && !c.IsSet("match") // where it is about their number
	is, err := a.identities(ctx, []string{a.key})
	if err != nil {
		return m, err
	}
	sameBirth := b.note.Birth != 0 && b.note.Birth == is[0].birth
	if b.note.Key != "" && b.note.Key != a.key && !sameBirth && !yes {
		return m, usagef("%s holds another filter: %s\nNothing was changed: --yes puts it in place of %s all the same.",
			b.file, b.note.origin(), printable(a.key))
	}
	if (resized || saved.Items < there.Items/2) && !yes {
		return m, usagef("%s at %s has %v and %s, and %s has %v and %s\nNothing was changed: --yes replaces it all the"+
			" same. Programs that use another size get errors from then on.", printable(a.key), a.host(),
			there.Geometry, brief(there), b.file, saved.Geometry, brief(saved))
	}
	a.wrote = true
	if err := f.Replace(ctx, l, a.progress("restore")); err != nil {
		return m, a.moveFailed(c, err)
	}
	m = moved{Key: a.key, Bytes: int64(saved.Bytes), Seconds: a.seconds()}
	switch {
	case sameBirth:
		m.Note = "the file has an earlier state of this very filter"
	case b.note.Key == a.key:
		m.Note = "the key's filter was replaced or made anew since it was saved"
	}
	if resized {
		m.Note = strings.TrimPrefix(m.Note+"\n"+oldSizeFails, "\n")
	}
	return m, nil
}

// restoreInto adds the saved items to the filter that is there.
func (a *app) restoreInto(
	ctx context.Context, c *cli.Command, b noted, there bloom.Stats, f *bloom.Filter, l *bloom.Local,
) (moved, error) {
	if err := errOtherSize(&there, f.Geometry()); err != nil {
		return moved{}, advised{err, fmt.Sprintf("another filter is at this key, %v, and %s holds %v: restore it to"+
			" another key; only a list of the items fills a filter of another size: see upbloom replace --help",
			there.Geometry, b.file, f.Geometry())}
	}
	// How many items are in both, only a download would tell.
	if err := a.mayTake(ctx, c, opened{f, a.client, plainKind}, there, b.Stats().Items, nil); err != nil {
		return moved{}, err
	}
	a.wrote = true
	r, err := f.Merge(ctx, l, a.progress("restore"))
	if err != nil {
		return moved{}, a.moveFailed(c, err)
	}
	return a.merged(r), nil
}

// saveAll saves the filters that match --match, each into a file of a folder.
func (a *app) saveAll(ctx context.Context, c *cli.Command, args []string) error {
	if err := aFolder(args[0]); err != nil {
		return err
	}
	list, err := a.matching(ctx, c.String("match"))
	if err != nil {
		return err
	}
	t := a.newTally("save", "to "+printable(args[0]), list)
	if err := t.confirm(ctx, c); err != nil {
		return err
	}
	if err := os.Mkdir(args[0], 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return usageError{error: err}
	}
	for i := range list {
		if list[i].kind == shardedKind {
			list[i].err = nil // the shards that are here are saved, and then it is said
		}
		list[i].files = make(map[string]string)
		for _, key := range list[i].parts {
			list[i].files[key] = filepath.Join(args[0], fileNameOf(key))
		}
	}
	return t.forEach(ctx, func(ctx context.Context, one *app, m member) error {
		var missing error
		if m.kind == shardedKind {
			missing = m.missing()
		}
		for _, key := range m.parts {
			if err := one.saveOne(ctx, key, m.files[key], c.Bool("force")); err != nil {
				return err
			}
		}
		return missing
	})
}

// aFolder refuses a file in place of the DIRECTORY of --match.
func aFolder(name string) error {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		return usagef("%s is no directory, which --match wants: nothing was done", printable(name))
	}
	return nil
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
	if err := aFolder(args[0]); err != nil {
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
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			list = append(list, member{key: e.Name(), kind: "not read", err: err, files: map[string]string{e.Name(): path}})
		case matches(m.key):
			list = append(list, m)
		}
	}
	list = join(list)
	if len(list) == 0 {
		return usagef("no file in %s is of a key like %s", printable(args[0]), printable(c.String("match")))
	}
	t := a.newTally("restore", "to "+a.host(), list)
	if err := t.confirm(ctx, c); err != nil {
		return err
	}
	return t.forEach(ctx, func(ctx context.Context, one *app, m member) error {
		for _, key := range m.parts {
			one.key = key
			if err := one.restore(ctx, c, []string{key, m.files[key]}); err != nil {
				return err
			}
		}
		return nil
	})
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
		m.key, m.kind = baseOf(key), shardedKind
		m.ids = []identity{{word: int64(b.word(format.KindOffset) >> (64 - format.WordBits))}}
	}
	return m, nil
}

// ofPanes says how much of a restored window still counts.
func ofPanes(s bloom.Stats) string {
	all, items := s.MaxParts, s.Items
	const forgets = "a window forgets by the time of day: "
	n := len(s.Parts)
	if n == 0 || items == 0 {
		return forgets + "all that was saved is forgotten by now"
	}
	if n < all {
		return forgets + fmt.Sprintf("what was saved of %d of its %d panes is forgotten by now, and the others hold"+
			" about %s", all-n, all, human.Counted(items, "item"))
	}
	return forgets + fmt.Sprintf("its panes hold about %s, and go on to age", human.Counted(items, "item"))
}

// readSaved reads a saved filter of any kind.
func (a *app) readSaved(ctx context.Context, name string) (noted, error) {
	if name == "-" && a.typed() {
		return noted{}, usagef("a saved filter is binary, and standard input is a terminal: name a file")
	}
	in, err := a.open(ctx, name)
	if err != nil {
		return noted{}, err
	}
	defer in.Close()
	buffered := bufio.NewReader(in.shown())
	start, _ := buffered.Peek(len(format.FrameMagic))
	switch {
	case ctx.Err() != nil: // ReadBackup returns it
	case len(start) == 0:
		return noted{}, usagef("%s is empty, and no saved filter: nothing was changed", in.name)
	case !strings.HasPrefix(format.FrameMagic, string(start)):
		return noted{}, usagef("%s is no saved filter, and nothing was changed: upbloom load adds the lines of a text",
			in.name)
	}
	b, err := readNoted(buffered)
	if errors.Is(err, bloom.ErrBadStream) {
		return noted{}, usagef("%s: %s", in.name, plain(err))
	}
	if err != nil {
		return noted{}, usageError{error: err}
	}
	b.file = in.name
	return b, nil
}

// keepsBackup refuses to write the saved filter in a new file over one of another
// key or filter, or over one with more than twice as many set bits: that was of the
// filter before it was lost. A window loses bits as it ages, so that only one that
// was made anew is refused.
func keepsBackup(newer, older string) error {
	old, err := readFile(older)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, bloom.ErrBadStream): // it is damaged
		return nil
	case err != nil:
		return unreadable(older, err, orForce)
	}
	saved, err := readFile(newer)
	if err != nil {
		return err
	}
	if saved.word(0) != old.word(0) {
		return usagef("%s holds another filter, and was left as it is: name another file, or use --force",
			printable(older))
	}
	if old.note.Key != "" && old.note.Key != saved.note.Key {
		return usagef("%s holds another filter, %s, and was left as it is: name another file, or use --force",
			printable(older), old.note.origin())
	}
	has, had := saved.Stats(), old.Stats()
	isSame := saved.word(format.BirthOffset) == old.word(format.BirthOffset)
	if has.SetBits >= had.SetBits-had.SetBits/2 || isSame && has.Kind == bloom.KindWindow {
		return nil
	}
	return usagef("%s has %s set bits, and the filter has %s, fewer than half: was it lost and made anew? The file was"+
		" left as it is: name another file, or use --force", printable(older), human.Count(had.SetBits),
		human.Count(has.SetBits))
}
