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
)

func (a *app) saveCommand() *cli.Command {
	return &cli.Command{
		Name: "save", Usage: "download a plain filter into a file",
		ArgsUsage: "KEY FILE (or - for standard output)",
		Description: "A file that is no saved filter is not overwritten, nor one with bits that the filter\n" +
			"lacks: a saved one of another filter, or of this one before it was lost. The file holds\n" +
			"no TTL and no seed: a filter with a seed needs UPBLOOM_SEED, and restore needs the same.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "force", Usage: "overwrite whatever FILE is"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := a.arguments(c, 2, 2)
			if err != nil {
				return err
			}
			if err := a.maySave(args[1], c.Bool("force")); err != nil {
				return err
			}
			f, err := a.filter(ctx, c, args[0], false)
			if err != nil {
				return err
			}
			if args[1] == "-" {
				return f.Save(ctx, a.out, a.progress("save"))
			}
			n, err := saveTo(ctx, f, args[1], c.Bool("force"), a.progress("save"))
			if err != nil {
				return err
			}
			m := moved{Key: args[0], Bytes: n, Seconds: a.seconds()}
			return a.print(m, m.text("saved"))
		},
	}
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
	if file := (*fs.PathError)(nil); errors.As(err, &file) { // names the temporary file
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
func saveTo(
	ctx context.Context, f *bloom.Filter, name string, force bool, opt bloom.MoveOption,
) (n int64, err error) {
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		out, err := openUntil(ctx, func() (*os.File, error) { return os.OpenFile(name, os.O_WRONLY, 0) })
		if err != nil {
			return 0, err
		}
		defer context.AfterFunc(ctx, func() { _ = out.Close() })() // a write may wait for ever
		to := &counting{Writer: output{out}}
		err = f.Save(ctx, to, opt)
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return to.n, err
	}
	tmp, err := fileBeside(name)
	if err != nil {
		return 0, err
	}
	defer os.Remove(tmp.Name())
	err = f.Save(ctx, tmp, opt)
	if err == nil {
		err = tmp.Sync()
	}
	if info, statErr := tmp.Stat(); statErr == nil {
		n = info.Size()
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
	if link := (*os.LinkError)(nil); errors.As(err, &link) { // on Windows, if another program has it open
		err = usagef("%s cannot be replaced, and was left as it is: %w", printable(name), link.Err)
	}
	return n, err
}

// counting counts the bytes of a saved filter.
type counting struct {
	io.Writer
	n int64
}

func (c *counting) Write(p []byte) (n int, err error) {
	n, err = c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

func (a *app) restoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "bring a saved filter back", ArgsUsage: "KEY FILE (or - for standard input)",
		Description: "Makes the filter if it is missing, and otherwise adds to what it holds. A saved\n" +
			"filter has no TTL: a new one stays for good, unless --ttl says when it expires.\n" +
			"restore refuses to fill a filter far over its size, as load does.",
		Flags: append(fillFlags(),
			lifetimeFlag("let a new filter expire after `TIME`, e.g. 24h or 7d", "ttl")),
		Action: a.restore,
	}
}

func (a *app) restore(ctx context.Context, c *cli.Command) error {
	args, err := a.arguments(c, 2, 2)
	if err != nil {
		return err
	}
	if c.IsSet("ttl") && lifetimeOf(c, "ttl") < time.Millisecond {
		return usagef("--ttl is %v: use at least 1ms, or leave it out", lifetimeOf(c, "ttl"))
	}
	l, err := a.readSaved(ctx, args[1])
	if err != nil {
		return err
	}
	before, err := a.inspect(ctx)
	if err != nil {
		return err
	}
	if before != nil && c.IsSet("ttl") {
		return usagef("--ttl is for a new filter, and %s is there: upbloom ttl sets its TTL",
			printable(a.key))
	}
	g := l.Geometry()
	if err := sameSize(before, g); err != nil {
		return advised{err, fmt.Sprintf("another filter is at this key, %v, and %s holds %v: restore it to"+
			" another key, or remove what is there with upbloom rm", before.Geometry, a.input, g)}
	}
	f, err := bloom.New(a.client, args[0], bloom.Config{
		Bits: g.Bits, Hashes: g.Hashes, Scheme: g.Scheme, Seed: g.Seed, TTL: lifetimeOf(c, "ttl"),
	})
	if err != nil {
		return err
	}
	if before != nil || c.IsSet("max-rate") { // else a copy is as full as it was when saved
		if err := a.mayFill(ctx, c, f, l, before); err != nil {
			return err
		}
	}
	a.wrote = true
	r, err := f.Merge(ctx, l, a.progress("restore"))
	if err != nil {
		return a.moveFailed(c, err)
	}
	return a.printChange(ctx, a.merged(r), "restored", before)
}

// readSaved reads a saved filter.
func (a *app) readSaved(ctx context.Context, name string) (*bloom.Local, error) {
	if name == "-" && a.typed() {
		return nil, usagef("a saved filter is binary, and standard input is a terminal: name a file")
	}
	in, err := a.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s, err := seed()
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReader(a.reading(in))
	start, _ := buffered.Peek(len(savedMagic))
	switch {
	case ctx.Err() != nil: // ReadLocal returns it
	case len(start) == 0:
		return nil, usagef("%s is empty, and no saved filter: nothing was changed", a.input)
	case !strings.HasPrefix(savedMagic, string(start)):
		return nil, usagef("%s is no saved filter, and nothing was changed: upbloom load adds the lines of a text",
			a.input)
	}
	l, err := bloom.ReadLocal(buffered, s)
	var mismatch *bloom.MismatchError
	if errors.Is(err, bloom.ErrBadStream) || errors.As(err, &mismatch) && mismatch.OtherSeed {
		return nil, usagef("%s: %s", a.input, plain(err))
	}
	if err != nil {
		return nil, usageError{error: err}
	}
	return l, nil
}

// A saved filter is its header's geometry, the string and a checksum.
const (
	savedHead = len(savedMagic) + 16
	savedSum  = 8
)

// keepsBackup refuses to write the saved filter in a new file over one that holds
// more.
func keepsBackup(newer, older string) error {
	lacks, err := lacksBits(newer, older)
	if err == nil && lacks {
		err = usagef("%s holds another filter, or items that this one has lost, and was left as it is: name"+
			" another file, or use --force", printable(older))
	}
	return err
}

// lacksBits reports whether the saved filter in one file has bits that the one
// in the other lacks. A filter only gains bits: the other is then another
// filter, or one that was lost and made again. A file that is no whole saved
// filter has none.
func lacksBits(newer, older string) (bool, error) {
	now, err := os.Open(newer)
	if err != nil {
		return false, err
	}
	defer now.Close()
	was, err := os.Open(older)
	if err != nil {
		return false, nil // as a rule there is none
	}
	defer was.Close()
	a, b := bufio.NewReaderSize(was, 1<<16), bufio.NewReaderSize(now, 1<<16)
	head, other := make([]byte, savedHead), make([]byte, savedHead)
	if _, err := io.ReadFull(b, other); err != nil {
		return false, err
	}
	if _, err := io.ReadFull(a, head); err != nil || string(head[:len(savedMagic)]) != savedMagic {
		return false, nil
	}
	if !bytes.Equal(head, other) {
		return true, nil
	}
	info, err := now.Stat()
	if err != nil {
		return false, err
	}
	for left := info.Size() - int64(savedHead+savedSum); left > 0; left-- {
		x, err := a.ReadByte()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		y, newErr := b.ReadByte()
		if err = errors.Join(err, newErr); err != nil {
			return false, err
		}
		if x&^y != 0 {
			return true, nil
		}
	}
	return false, nil
}
