package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
)

// maxLine is the longest item in a file, in bytes. Its end and a byte order mark
// are not counted.
const maxLine = 1 << 20

// An input is a file or standard input. Errors name it.
type input struct {
	io.Reader
	a     *app
	name  string // printable
	bytes int64  // -1 if it is no file
	file  *os.File
}

func (in *input) Close() error {
	if in.file == nil {
		return nil
	}
	return in.file.Close()
}

// open opens a file to read; "-" is standard input.
func (a *app) open(ctx context.Context, name string) (*input, error) {
	if name == "-" {
		const stdin = "standard input"
		windows, late := runtime.GOOS == "windows", time.Duration(0)
		if a.typed() && !a.quiet && !a.json {
			ends := "Ctrl-D on an empty line ends them"
			if windows {
				ends = "Ctrl-Z and Enter on an empty line end them"
			}
			note := "upbloom: reading items from the terminal, one a line; " + ends
			if a.command != "check" { // which has answered what was typed
				note += ", Ctrl-C drops them"
			}
			fmt.Fprintln(a.errOut, note)
		}
		if windows && a.typed() { // Ctrl-C first ends the read
			late = 100 * time.Millisecond
		}
		return &input{interruptible(ctx, a.in, stdin, late), a, stdin, -1, nil}, nil
	}
	f, err := openUntil(ctx, func() (*os.File, error) { return os.Open(name) })
	if errors.Is(err, fs.ErrNotExist) && isFile(a.key) {
		err = usagef("%s, and %s is a file: is the key behind the file? It is upbloom %s KEY FILE", plain(err),
			printable(a.key), a.command)
	}
	if err != nil {
		return nil, err
	}
	in := &input{f, a, printable(name), -1, f}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		_ = f.Close()
		return nil, aDirectory(name, a.command)
	case !info.Mode().IsRegular():
		in.Reader = interruptible(ctx, f, in.name, 0)
	default:
		in.bytes = info.Size()
	}
	return in, nil
}

// aDirectory is the error of a directory in place of a file.
func aDirectory(name, command string) error {
	many := map[string]string{
		"save":    ", or save many filters into it with --match PATTERN",
		"restore": ", or restore the files in it with --match PATTERN",
	}[command]
	return usagef("%s is a directory: name a file%s", printable(name), many)
}

// openUntil opens a file. A pipe with a name is opened once both its ends are:
// openUntil waits for that until the context ends.
func openUntil(ctx context.Context, open func() (*os.File, error)) (f *os.File, err error) {
	opened := make(chan struct{})
	var file *os.File
	var fileErr error
	go func() {
		defer close(opened)
		file, fileErr = open()
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-opened:
	}
	if fileErr != nil {
		return nil, usageError{error: fileErr}
	}
	return file, nil
}

// halfRead is the error of an interrupted input: the command would have begun
// at its end.
func halfRead(ctx context.Context, name string) error {
	return advised{ctx.Err(), name + " was not read to its end, and nothing was changed"}
}

// interruptible returns a reader of r that fails when the context ends. A read
// of a terminal or a pipe could otherwise wait for ever. The context may end so late
// after the end of r.
func interruptible(ctx context.Context, r io.Reader, name string, late time.Duration) io.Reader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() {
		_ = in.CloseWithError(halfRead(ctx, name))
	})
	go func() {
		_, err := io.Copy(in, r)
		if err == nil && late > 0 {
			select {
			case <-ctx.Done(): // which closes in
				return
			case <-time.After(late):
			}
		}
		_ = in.CloseWithError(err)
	}()
	return out
}

// ask prints a question on the terminal, and returns what is typed behind it.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.errOut, question)
	answer, err := bufio.NewReader(interruptible(ctx, a.in, "", 0)).ReadString('\n')
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil { // at Ctrl-D there is no line
		answer = ""
		fmt.Fprintln(a.errOut)
	}
	return strings.TrimSpace(answer), nil
}

// lines returns the items, one on each line. It removes line ends
// and a byte order mark, and skips empty lines. At a line that is no item, or
// if reading fails, it stops and sets err.
func (in *input) lines(err *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		r := bufio.NewReaderSize(in, 64<<10)
		_, _ = r.Peek(1) // waits for the first line alone
		start, _ := r.Peek(min(r.Buffered(), len(format.FrameMagic)))
		if what := notText(start); what != "" {
			*err = usagef("%s %s", in.name, what)
			return
		}
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 64<<10), maxLine+len("\ufeff\r\n")+1)
		padded, firstPadded := uint64(0), 0
		n := 1
		for ; s.Scan(); n++ {
			item := s.Text()
			if n == 1 {
				item = strings.TrimPrefix(item, "\ufeff")
			}
			if what := notItem(item); what != "" {
				*err = usagef("%s: line %d %s", in.name, n, what)
				return
			}
			if strings.TrimFunc(item, unseen) != item {
				if padded == 0 {
					firstPadded = n
				}
				padded++
			}
			if item != "" && !yield(item) {
				return
			}
		}
		if padded > 0 && !in.a.json {
			fmt.Fprintf(in.a.errOut, "upbloom: %s: %s with white space or what nobody sees at an end, which"+
				" belongs to the item, line %d first\n", in.name, human.Counted(padded, "line"), firstPadded)
		}
		if *err = s.Err(); errors.Is(*err, bufio.ErrTooLong) {
			*err = usagef("%s: line %d %s", in.name, n, tooLong)
		}
	}
}

// unseen reports whether nobody sees a character at an end of an item: white
// space, and what only controls how text is drawn, such as U+200B and U+200E. The
// signs that stand before numbers are drawn, and tags end the pictures of flags.
func unseen(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) && r < 0xe0000 &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

const tooLong = "is longer than 1 MiB, and nothing was changed: an item is a line"

// notItem says why a line is no item, or returns "".
func notItem(line string) string {
	switch {
	case len(line) > maxLine:
		return tooLong
	case strings.HasPrefix(line, "\ufeff"):
		return `begins with a byte order mark, which nobody sees and would be part of the item: were files joined?` +
			` Remove it, e.g. with sed 's/^\xef\xbb\xbf//'`
	case !utf8.ValidString(line) && strings.ContainsFunc(line, func(r rune) bool { return r < '\t' }):
		return "is binary data: a file of items is text"
	case strings.Contains(line, "\r"):
		return `holds a carriage return: if all lines end so, convert the file first, e.g. with tr '\r' '\n'`
	case !utf8.ValidString(line):
		return "is not valid UTF-8: convert the file first, e.g. with iconv -f LATIN1 -t UTF-8"
	case strings.Contains(line, "\x00"):
		return "holds a zero byte, which text does not: if the file is text in UTF-16, convert it with" +
			" iconv -f UTF-16LE -t UTF-8"
	}
	return ""
}

// inUTF16 has advice for Windows too, whose PowerShell 5.1 writes such files.
const inUTF16 = "is text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE | upbloom ... reads it, and in PowerShell" +
	" Get-Content FILE | Set-Content -Encoding utf8 NEW converts it"

// notText says what kind of file begins like this, or returns "" for text.
func notText(start []byte) string {
	for _, kind := range []struct{ magic, what string }{
		{format.FrameMagic, "is a saved filter, and not a file of items: use upbloom restore"},
		{"\x1f\x8b", "is compressed with gzip: gunzip -c FILE | upbloom ... reads it"},
		{"\x28\xb5\x2f\xfd", "is compressed with zstd: zstd -dc FILE | upbloom ... reads it"},
		{"\xfd7zXZ\x00", "is compressed with xz: xz -dc FILE | upbloom ... reads it"},
		{"BZh", "is compressed with bzip2: bunzip2 -c FILE | upbloom ... reads it"},
		{"PK\x03\x04", "is a zip archive: unzip -p FILE | upbloom ... reads it"},
		{"\xff\xfe", inUTF16},
		{"\xfe\xff", inUTF16},
	} {
		if bytes.HasPrefix(start, []byte(kind.magic)) {
			return kind.what
		}
	}
	return ""
}

// shown has a progress bar on a terminal show how much of the input was read: of a
// file the share, of a pipe the bytes so far. A bar would hide what is typed.
func (in *input) shown() *input {
	if f := in.a.terminal(); f != nil && (in.file != nil || !in.a.typed()) {
		total := in.bytes
		if total == 0 {
			total = -1
		}
		in.Reader = &watched{r: in.Reader, bar: in.a.newBar(f, "read", total)}
	}
	return in
}

// watched shows the progress of a read on a bar.
type watched struct {
	r    io.Reader
	bar  *bar
	done int64
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.done += int64(n)
	w.bar.at(w.done)
	if err != nil {
		_ = w.bar.Exit() // ends the bar and its line
	}
	return n, err
}

// itemsOf returns the arguments, or the lines of standard input if the only
// argument is "-".
func (a *app) itemsOf(ctx context.Context, args []string) ([]string, error) {
	if len(args) == 1 && args[0] == "-" {
		in, err := a.open(ctx, "-")
		if err != nil {
			return nil, err
		}
		items := slices.Collect(in.shown().lines(&err))
		if err == nil && len(items) == 0 {
			err = in.noItems()
		}
		return items, err
	}
	if slices.Contains(args, "-") {
		return nil, usagef("- stands for the lines of standard input, and there are other items beside it")
	}
	for i, item := range args {
		if !utf8.ValidString(item) {
			return nil, usagef("item %d is not valid UTF-8: is the terminal set to another encoding?", i+1)
		}
	}
	return args, nil
}

func (in *input) noItems() error {
	return usagef("%s has no items, and nothing was asked or changed", in.name)
}
