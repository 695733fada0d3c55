package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/upbloom/upbloom/bloom"
)

// progress returns an option that draws a bar if standard error is a terminal,
// else nil.
func (a *app) progress(what string) bloom.MoveOption {
	f, ok := a.errOut.(*os.File)
	if a.quiet || a.json || !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	var bar *progressbar.ProgressBar
	return bloom.MoveProgress(func(done, total int64) {
		if bar == nil {
			bar = progressbar.NewOptions64(total, progressbar.OptionSetDescription(what),
				progressbar.OptionSetWriter(f), progressbar.OptionShowBytes(true),
				progressbar.OptionSetWidth(30), progressbar.OptionThrottle(50*time.Millisecond),
				progressbar.OptionOnCompletion(func() { fmt.Fprintln(f) }))
		}
		_ = bar.Set64(done)
	})
}

// open opens a file to read; "-" is standard input.
func (a *app) open(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(interruptible(ctx, a.in)), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usageError{err}
	}
	return f, nil
}

// fileArg returns the argument behind the key, standard input if there is none.
func fileArg(args []string) string {
	if len(args) < 2 {
		return "-"
	}
	return args[1]
}

func (a *app) loadCommand() *cli.Command {
	return &cli.Command{
		Name: "load", Usage: "add the lines of a file, millions at once", ArgsUsage: "KEY [FILE]",
		Description: "Builds the filter in memory and uploads it, in parts of 1 MiB. Without --items\n" +
			"the filter must be there. If it is interrupted at any point, the filter is as it\n" +
			"was or complete.",
		Flags: sizeFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.withItems(ctx, c, func(f *bloom.Filter, in io.Reader, key string) error {
				var readErr error
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				items := func(yield func(string) bool) {
					lines(in, &readErr)(yield)
					if readErr != nil {
						cancel() // half a file must not be taken for the whole
					}
				}
				r, err := f.Load(ctx, items, a.progress("load"))
				if readErr != nil {
					return readErr
				}
				if err != nil {
					return err
				}
				m := merged(key, r)
				m.Items = &r.Items
				return a.print(m, m.text("loaded"))
			})
		},
	}
}

func (a *app) replaceCommand() *cli.Command {
	return &cli.Command{
		Name: "replace", Usage: "make a filter's items those of a file, and no others",
		ArgsUsage: "KEY [FILE]",
		Description: "Readers see the old filter or the new one, and nothing between. Items that others\n" +
			"add meanwhile are lost, unless the file has them. With --items the filter gets\n" +
			"another size: stop its writers first, or load a filter at a second key and have\n" +
			"readers use that.",
		Flags: sizeFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.withItems(ctx, c, func(f *bloom.Filter, in io.Reader, key string) error {
				start := time.Now()
				l := bloom.NewLocal(f.Geometry())
				n := uint64(0)
				var readErr error
				for item := range lines(in, &readErr) {
					l.Add(item)
					n++
				}
				if readErr != nil {
					return readErr
				}
				if err := f.Replace(ctx, l, a.progress("replace")); err != nil {
					return err
				}
				m := moved{
					Key: key, Items: &n, Bytes: int64(f.Geometry().Bytes(bloom.LayoutHeaded)),
					Seconds: time.Since(start).Seconds(),
				}
				return a.print(m, m.text("replaced by"))
			})
		},
	}
}

// withItems opens the file and the filter.
func (a *app) withItems(ctx context.Context, c *cli.Command,
	run func(f *bloom.Filter, in io.Reader, key string) error,
) error {
	args, err := arguments(c, 1, 2)
	if err != nil {
		return err
	}
	in, err := a.open(ctx, fileArg(args))
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := a.filter(ctx, c, args[0], true)
	if err != nil {
		return err
	}
	return run(f, in, args[0])
}

func (a *app) saveCommand() *cli.Command {
	return &cli.Command{
		Name: "save", Usage: "download a filter into a file",
		ArgsUsage: "KEY FILE (or - for standard output)",
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := arguments(c, 2, 2)
			if err != nil {
				return err
			}
			f, err := a.filter(ctx, c, args[0], false)
			if err != nil {
				return err
			}
			start := time.Now()
			if args[1] == "-" {
				return f.Save(ctx, a.out, a.progress("save"))
			}
			n, err := saveTo(ctx, f, args[1], a.progress("save"))
			if err != nil {
				return err
			}
			m := moved{Key: args[0], Bytes: n, Seconds: time.Since(start).Seconds()}
			return a.print(m, m.text("saved"))
		},
	}
}

// saveTo writes a file beside the named one and then renames it, so that the
// named file is the old one or the whole new one. It follows a link, and writes
// into what is no plain file, such as a pipe. Only the owner may read a new
// file.
func saveTo(ctx context.Context, f *bloom.Filter, name string, opt bloom.MoveOption) (n int64, err error) {
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		out, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		err = f.Save(ctx, out, opt)
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
		return int64(f.Geometry().Bytes(bloom.LayoutHeaded)), err
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".upbloom-*")
	if err != nil {
		return 0, usageError{err}
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
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	return n, err
}

func (a *app) restoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "bring a saved filter back", ArgsUsage: "KEY FILE (or - for standard input)",
		Description: "Makes the filter if it is missing. Items that are in it stay.",
		Flags:       sizeFlags()[2:], // the TTL
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := arguments(c, 2, 2)
			if err != nil {
				return err
			}
			in, err := a.open(ctx, args[1])
			if err != nil {
				return err
			}
			defer in.Close()
			s, err := seed()
			if err != nil {
				return err
			}
			l, err := bloom.ReadLocal(in, s)
			if err != nil {
				return usageError{err}
			}
			client, err := a.connect(ctx)
			if err != nil {
				return err
			}
			g := l.Geometry()
			f, err := bloom.New(client, args[0], bloom.Config{
				Bits: g.Bits, Hashes: g.Hashes, Scheme: g.Scheme, Seed: g.Seed, TTL: c.Duration("ttl"),
			})
			if err != nil {
				return err
			}
			r, err := f.Merge(ctx, l, a.progress("restore"))
			if err != nil {
				return err
			}
			m := merged(args[0], r)
			return a.print(m, m.text("restored"))
		},
	}
}
