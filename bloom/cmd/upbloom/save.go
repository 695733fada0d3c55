package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

func (a *app) saveCommand() *cli.Command {
	return &cli.Command{
		Name: "save", Usage: "download a filter into a file",
		ArgsUsage: "KEY FILE (or - for standard output)",
		Description: "KEY may be a filter of any kind, or one shard: save KEY:0, KEY:1 and so on of a sharded\n" +
			"filter. The file holds no TTL and no seed.\n\n" +
			"A window, a scalable and a cuckoo filter are saved as they are at one moment. If one is\n" +
			"larger than 1 MiB, the database copies it for that, to KEY:save:..., and needs room for it\n" +
			"and a full token. The copy is removed. If save was killed, it stays for an hour.\n\n" +
			"A file that is no saved filter is not overwritten, nor one with bits that the filter\n" +
			"lacks: a saved one of another filter, or of this one before it was lost. A window and a\n" +
			"cuckoo filter also lose bits in use: the file of one is overwritten only if the filter was\n" +
			"not made again since.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "force", Usage: "overwrite whatever FILE is"}},
		Action: a.onDatabase(2, 2, func(ctx context.Context, c *cli.Command, args []string) error {
			if err := a.maySave(args[1], c.Bool("force")); err != nil {
				return err
			}
			kind := ""
			take := func() (io.WriterTo, error) {
				b, err := bloom.TakeBackup(ctx, a.client, args[0], a.progress("save"))
				if err != nil {
					return nil, a.notSaved(ctx, err)
				}
				s := b.Stats()
				kind = s.Kind.String()
				return b, nil
			}
			if args[1] == "-" {
				b, err := take()
				if err == nil {
					_, err = b.WriteTo(a.out)
				}
				return err
			}
			n, err := saveTo(ctx, args[1], c.Bool("force"), take)
			if err != nil {
				return err
			}
			m := moved{Key: args[0], Bytes: n, Seconds: a.seconds()}
			return a.print(m, m.text("saved a "+kindNoun(kind)+","))
		}),
	}
}

// notSaved says what to do if a filter cannot be saved as one string.
func (a *app) notSaved(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, upstash.ErrNoPermission):
		return advised{err, "the filter is larger than 1 MiB, and the database has to copy it, which the token may" +
			" not do: use a full token"}
	case !errors.Is(err, bloom.ErrNotFound):
		return err
	}
	s, _, openErr := a.look(ctx, a.key)
	if openErr == nil && kindOf(s) == shardedKind {
		return advised{bloom.ErrNotFilter, fmt.Sprintf("the key holds a sharded filter: save each shard to a file of"+
			" its own, from %s:0 to %[1]s:%d", printable(a.key), len(s.Parts)-1)}
	}
	if errors.Is(openErr, errHeadless) {
		return openErr
	}
	return err
}

// maySave refuses to write to a terminal, or over a file other than a saved
// filter.
func (a *app) maySave(name string, force bool) error {
	if name == "-" {
		if f, ok := a.out.(output); ok && term.IsTerminal(int(f.Fd())) {
			return usagef("a saved filter is binary, and standard output is a terminal: name a file")
		}
		return nil
	}
	if force {
		return notADirectory(name)
	}
	return mayOverwrite(name, savedMagic, "saved filter", "name another file, or use --force")
}

func notADirectory(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return usagef("%s is a directory: name a file", printable(name))
	}
	return nil
}

// mayOverwrite refuses a directory, and a file that does not begin as those of
// the kind.
func mayOverwrite(name, magic, kind, advice string) error {
	if err := notADirectory(name); err != nil {
		return err
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil // writing to it will fail
	}
	defer f.Close()
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(f, start); err != nil || string(start) != magic {
		return usagef("%s is no %s, and was left as it is: %s", printable(name), kind, advice)
	}
	return nil
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
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return saveInto(ctx, name, take)
	}
	tmp, err := fileBeside(name)
	if err != nil {
		return 0, err
	}
	defer os.Remove(tmp.Name())
	b, err := take()
	if err == nil {
		n, err = b.WriteTo(tmp)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil && !force {
		err = keepsBackup(tmp.Name(), name)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok { // on Windows, if another program has it open
		err = usagef("%s cannot be replaced, and was left as it is: %w", printable(name), link.Err)
	}
	return n, err
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
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return n, err
}

func (a *app) restoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "bring a saved filter back", ArgsUsage: "KEY FILE (or - for standard input)",
		Description: "Makes the filter if nothing is at KEY. A plain filter that is there gets the items of the\n" +
			"file beside its own; restore refuses to fill it far over its size, as load does, and with a\n" +
			"seed it needs UPBLOOM_SEED. The other kinds are restored only if nothing is at KEY. A shard\n" +
			"goes to KEY:i, i its own number. A saved filter keeps its size: for a larger one, load the\n" +
			"items into a new filter.\n\n" +
			"A saved filter has no TTL: a new one gets that of --ttl, else that of the first program with\n" +
			"a TTL that adds to it. A window forgets by the time of day, as if it had never been away:\n" +
			"restore says how much of it still counts.",
		Flags: append(fillFlags(),
			lifetimeFlag("let a new filter expire after `TIME`, e.g. 24h or 7d", "ttl")),
		Action: a.onDatabase(2, 2, a.restore),
	}
}

func (a *app) restore(ctx context.Context, c *cli.Command, args []string) error {
	if c.IsSet("ttl") && lifetimeOf(c, "ttl") < time.Millisecond {
		return usagef("--ttl is %v: use at least 1ms, or leave it out", lifetimeOf(c, "ttl"))
	}
	b, err := a.readSaved(ctx, args[1])
	if err != nil {
		return err
	}
	saved := b.Stats()
	if kind := saved.Kind.String(); kind != plainKind {
		return a.restoreKind(ctx, c, b, kind)
	}
	before, err := a.inspect(ctx)
	if err != nil {
		return err
	}
	if before == nil {
		return a.restorePlain(ctx, c, b)
	}
	if c.IsSet("ttl") {
		return usagef("--ttl is for a new filter, and %s is there: upbloom ttl sets its TTL",
			printable(a.key))
	}
	l, err := b.Local(a.seed)
	if err != nil {
		return usagef("%s: %s", a.input, plain(err))
	}
	g := l.Geometry()
	if err := sameSize(before, g); err != nil {
		return advised{err, fmt.Sprintf("another filter is at this key, %v, and %s holds %v: restore it to"+
			" another key, or remove what is there with upbloom rm; only a list of the items fills a"+
			" larger filter: see upbloom replace --help", before.Geometry, a.input, g)}
	}
	f, err := bloom.New(a.client, args[0], bloom.Config{
		Bits: g.Bits, Hashes: g.Hashes, Scheme: g.Scheme, Seed: g.Seed,
	})
	if err != nil {
		return err
	}
	if err := a.mayTake(ctx, c, opened{f, a, a.key}, *before, saved.Items, nil); err != nil {
		return err
	}
	a.wrote = true
	r, err := f.Merge(ctx, l, a.progress("restore"))
	if err != nil {
		return a.moveFailed(c, err)
	}
	return a.printChange(ctx, a.merged(r), "restored", before)
}

// restorePlain restores a plain filter to a key that holds nothing. It is as full
// as it was when it was saved, which only --max-rate can refuse.
func (a *app) restorePlain(ctx context.Context, c *cli.Command, b *bloom.Backup) error {
	if c.IsSet("max-rate") {
		if err := a.mayTake(ctx, c, opened{}, b.Stats(), 0, nil); err != nil {
			return err
		}
	}
	a.wrote = true
	r, err := b.Restore(ctx, a.client, a.key, lifetimeOf(c, "ttl"), a.progress("restore"))
	if err != nil {
		return a.moveFailed(c, err)
	}
	return a.printChange(ctx, a.merged(r), "restored", nil)
}

// restoreKind restores a filter of another kind than a plain one, to a key that
// holds nothing.
func (a *app) restoreKind(ctx context.Context, c *cli.Command, b *bloom.Backup, kind string) error {
	if c.IsSet("ttl") && kind != scalableKind {
		return usagef("--ttl has no effect on a %s, which %s holds: leave it out", kindNoun(kind), a.input)
	}
	if c.IsSet("max-rate") {
		return usagef("--max-rate is for a plain filter, and %s holds a %s: leave it out", a.input, kindNoun(kind))
	}
	there, _, err := a.look(ctx, a.key)
	switch {
	case err == nil:
		return advised{bloom.ErrKeyExists, fmt.Sprintf("the key holds a %s, and a %s is restored only to a key that"+
			" holds nothing; nothing was changed: use another key, or remove what is there with upbloom rm",
			kindNoun(kindOf(there)), kindNoun(kind))}
	case !errors.Is(err, bloom.ErrNotFound) || errors.Is(err, errHeadless) && kind != "shard":
		return err
	}
	a.wrote = true
	r, err := b.Restore(ctx, a.client, a.key, lifetimeOf(c, "ttl"), a.progress("restore"))
	if err != nil {
		return a.moveFailed(c, err)
	}
	m := a.merged(r)
	text := m.text("restored")
	s, _, err := a.look(ctx, a.key)
	if err != nil { // it was restored all the same
		return a.print(m, text+"\nafter   a "+kindNoun(kind)+", not read: "+printable(plain(err)))
	}
	after := stateOf(a.key, s)
	m.After = &after
	if text += "\nafter   " + brief(s); kind == windowKind {
		m.Note = ofPanes(s)
		text += "\n" + m.Note
	}
	return a.print(m, text)
}

// ofPanes says how much of a restored window still counts.
func ofPanes(s bloom.Stats) string {
	all, items := s.MaxParts, s.Items
	const forgets = "a window forgets by the time of day: "
	switch n := len(s.Parts); {
	case n == 0 || items == 0:
		return forgets + "all that was saved is forgotten by now"
	case n < all:
		return forgets + fmt.Sprintf("what was saved of %d of its %d panes is forgotten by now, and the others hold"+
			" about %s", all-n, all, human.Counted(items, "item"))
	}
	return forgets + fmt.Sprintf("its panes hold about %s, and go on to age", human.Counted(items, "item"))
}

// readSaved reads a saved filter of any kind.
func (a *app) readSaved(ctx context.Context, name string) (*bloom.Backup, error) {
	if name == "-" && a.typed() {
		return nil, usagef("a saved filter is binary, and standard input is a terminal: name a file")
	}
	in, err := a.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	buffered := bufio.NewReader(a.reading(in))
	start, _ := buffered.Peek(len(savedMagic))
	switch {
	case ctx.Err() != nil: // ReadBackup returns it
	case len(start) == 0:
		return nil, usagef("%s is empty, and no saved filter: nothing was changed", a.input)
	case !strings.HasPrefix(savedMagic, string(start)):
		return nil, usagef("%s is no saved filter, and nothing was changed: upbloom load adds the lines of a text",
			a.input)
	}
	b, err := bloom.ReadBackup(buffered)
	if errors.Is(err, bloom.ErrBadStream) {
		return nil, usagef("%s: %s", a.input, plain(err))
	}
	if err != nil {
		return nil, usageError{error: err}
	}
	return b, nil
}

// A saved filter begins with savedMagic, its header and the length of the string.
// The string begins with its three words.
const (
	savedHead  = len(savedMagic) + 16
	savedBirth = savedHead + 8
	savedBody  = savedHead + headerBytes
)

// keepsBackup refuses to write the saved filter in a new file over one that holds
// more.
func keepsBackup(newer, older string) error {
	now, err := os.ReadFile(newer)
	if err != nil {
		return err
	}
	was, err := os.ReadFile(older)
	if err != nil || len(was) < savedBody || string(was[:len(savedMagic)]) != savedMagic {
		return nil // as a rule there is none
	}
	header := func(saved []byte) string { return string(saved[len(savedMagic) : savedHead-8]) }
	b, err := bloom.ReadBackup(bytes.NewReader(now))
	if err != nil {
		return err
	}
	s := b.Stats()
	losesBits := s.Kind == bloom.KindWindow || s.Kind == bloom.KindCuckoo
	again := losesBits && !bytes.Equal(now[savedBirth:savedBirth+8], was[savedBirth:savedBirth+8])
	switch {
	case header(now) == header(was) && again:
		return usagef("%s was saved before the %s was made again, by a restore perhaps, and was left as it is: name"+
			" another file, or use --force", printable(older), kindNoun(s.Kind.String()))
	case header(now) != header(was), !losesBits && lacksBits(now[savedBody:], was[savedBody:]):
		return usagef("%s holds another filter, or items that this one has lost, and was left as it is: name"+
			" another file, or use --force", printable(older))
	}
	return nil
}

// lacksBits reports whether the first string lacks bits of the other, leaving out
// their checksums. A filter only gains bits: the other is then another filter, or
// one that was lost and made again. One of layers may grow.
func lacksBits(now, was []byte) bool {
	for i := range min(len(now), len(was)) - 8 {
		if was[i]&^now[i] != 0 {
			return true
		}
	}
	return false
}
