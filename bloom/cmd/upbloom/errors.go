package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// The exit statuses. The doc of the program says what each means.
const (
	exitNo       = 1
	exitUsage    = 2
	exitFilter   = 3
	exitDatabase = 4
	exitUnknown  = 5

	exitInterrupted = 130 // what a shell reports after an interrupt
	exitNoReader    = 141 // and after a write that nobody reads
)

// plain returns the text of an error, without the key.
func plain(err error) string {
	text := err.Error()
	mismatch, isOther := errors.AsType[*bloom.MismatchError](err)
	sameKind := isOther && mismatch.WantKind == mismatch.GotKind
	var file *fs.PathError
	var advice advised
	switch {
	case errors.As(err, &advice):
		return advice.text
	case isOther && mismatch.OtherSeed && !mismatch.GotSeeded:
		return "the filter has no seed: unset UPBLOOM_SEED"
	case isOther && mismatch.OtherSeed:
		return "the filter has another seed: set UPBLOOM_SEED to the seed that it was made with"
	case sameKind && mismatch.Field != "":
		return fmt.Sprintf("the %s at this key was made with another %s: use another key",
			kindNoun(mismatch.GotKind.String()), cmp.Or(flagOf[mismatch.Field], mismatch.Field))
	case sameKind:
		return fmt.Sprintf("another filter is at this key, %v, and not %v: use another key, or leave"+
			" --items out to use the filter as it is", mismatch.Got, mismatch.Want)
	case isA[*bloom.ConfigError](err):
		return plain(flagError(err))
	case errors.Is(err, bloom.ErrNotFound):
		text = "no filter at this key: check the key and the database's URL, and list the filters with" +
			" upbloom ls"
		if errors.Is(err, errMakeable) {
			text += ", or make one with --items N"
		}
		return text
	case errors.As(err, &file):
		text = strings.ReplaceAll(text, file.Path, printable(file.Path))
	}
	text = inWords.Replace(text)
	for _, prefix := range []string{"bloom: ", "upstash: ", "upstashtest: ", "bad argument: "} {
		text = strings.ReplaceAll(strings.TrimPrefix(text, prefix), ": "+prefix, ": ")
	}
	return itemsDone.ReplaceAllStringFunc(text, grouped)
}

// itemsDone is how the text of a BatchError begins.
var itemsDone = regexp.MustCompile(`^\d+ of \d+ items done(, \d+ [a-z ]+)*`)

var digits = regexp.MustCompile(`\d+`)

// grouped groups the digits of the counts in a text, as all counts are printed.
func grouped(text string) string {
	return digits.ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.ParseUint(s, 10, 64)
		return human.Count(n)
	})
}

// A marked error is also its mark, which its text leaves out.
type marked struct {
	error
	mark error
}

func (m marked) Unwrap() []error { return []error{m.error, m.mark} }

// The marks.
var (
	// errMakeable marks an ErrNotFound of a command that can make the filter.
	errMakeable = errors.New("can be made")
	// errHeadless marks the ErrNotFound of a key at which a sharded filter lacks
	// shard 0: no other filter may be made there.
	errHeadless = errors.New("shard 0 is missing")
	// errWritten marks the error of what follows a write that was made, such as
	// reading its result or printing it.
	errWritten = errors.New("written")
	// errPartly marks the error of a write that has changed some of its items,
	// whatever became of the others.
	errPartly = errors.New("partly written")
)

// advised is an error with a text that suits the command better than its own.
type advised struct {
	error
	text string
}

func (e advised) Unwrap() error { return e.error }

// followed returns err with a text behind its own. An interrupt has no text of its
// own: message names it.
func followed(err error, text string) error {
	if !errors.Is(err, context.Canceled) {
		text = plain(err) + "; " + text
	}
	return advised{err, text}
}

// flagOf names the flags that set the fields of a bloom.Config and its like.
var flagOf = map[string]string{
	"Capacity": "--items", "FPRate": "--rate", "TTL": "--ttl", "Scheme": "--scheme",
	"Span": "--window", "Panes": "--panes", "Shards": "--shards", "ExpireIdle": "--expire-idle",
}

// inWords replaces advice in the API's names by what an operator can do.
var inWords = strings.NewReplacer(" (WithTimeout): context deadline exceeded", "",
	"a larger Capacity", "a larger --items",
	"lower the Capacity", "lower --items", "raise the FPRate", "raise --rate",
	"a shorter Span", "a shorter --window", "fewer Panes", "fewer --panes", "more Shards", "more --shards",
	" Shards none", " shards none",
	"with NewSharded", "with create --shards N, and fill them with upbloom load",
	"WithInsecureHTTP on a network you trust", "a tunnel such as ssh -L",
	"a full token; a client with WithReadOnly looks up with a read-only one", "a full token",
	"free memory, or look up with Config.ReadsNearest or upstash.WithReadOnly", "free memory, e.g. with upbloom rm, and ask again",
	"make one without WithReadOnly and with a full token", "use a full token",
	"use a key that holds nothing else", "use another key (upbloom knows no filters without a header)")

// inFlags replaces the API's names in the Reason of a ConfigError by those of
// flags.
var inFlags = strings.NewReplacer("FPRate", "--rate", "SchemeBlocked", "--scheme blocked",
	"SchemeXXH3", "--scheme xxh3", "a Sharded does", "--shards does", "Shards", "--shards", "Panes", "--panes",
	"ExpireIdle", "--expire-idle", ", or 0 for 1", "")

// errNo is the error of check or remove if an item was not found. It is not
// printed: the answers show it.
var errNo = errors.New("not all items were found")

// errNoReader is the error of a write to standard output or to a pipe if whoever
// read it, as head does, has stopped. It is not printed.
var errNoReader = errors.New("nobody reads the output")

// errInterrupted is why the program's context ended.
var errInterrupted interruption

type interruption struct{}

func (interruption) Error() string        { return "interrupted" }
func (interruption) Is(target error) bool { return target == context.Canceled }

// usageError is a mistake on the command line, in the environment or in a file.
// Nothing was changed.
type usageError struct {
	error
	own bool // the text is the program's, and may have several lines
}

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...), true} }

// usageErrorOf names the wrong flag, and lists all of the command's.
func usageErrorOf(_ context.Context, c *cli.Command, err error, _ bool) error {
	text, _, _ := strings.Cut(err.Error(), ": strconv.") // the words of Go's own parser
	for _, f := range c.Flags {
		text = strings.Replace(text, "flag -"+f.Names()[0]+":", "flag --"+f.Names()[0]+":", 1)
	}
	var names []string
	for _, flags := range [][]cli.Flag{c.Flags, c.Root().Flags} {
		for _, f := range flags {
			name := "--" + f.Names()[0]
			if slices.Contains(names, name) || name == "--version" && c != c.Root() {
				continue
			}
			names = append(names, name)
		}
	}
	return usagef("%s\nThe flags of %s are %s; %[2]s --help explains them.\n"+
		"An argument that begins with - goes behind --.", oneLine(text), c.FullName(),
		strings.Join(names, ", "))
}

// unknownCommand lists the commands.
func unknownCommand(root *cli.Command, name string) error {
	var names []string
	for _, sub := range root.Commands {
		names = append(names, sub.Name)
	}
	meant := ""
	if known, ok := otherWords[name]; ok {
		meant = "; " + known + " does that"
	}
	if name == "rebuild" {
		meant = "; replace --help says how to do that"
	}
	return usagef("there is no command %q%s\nThe commands are %s; upbloom --help explains them.",
		name, meant, strings.Join(names, ", "))
}

// otherWords are what other tools call the commands.
var otherWords = map[string]string{
	"delete": "rm", "del": "rm", "list": "ls", "new": "create", "make": "create",
	"exists": "check", "stats": "info", "show": "info", "expire": "ttl", "import": "load",
	"export": "save", "backup": "save", "download": "save", "cost": "calc", "price": "calc", "server": "serve",
	"version": "--version",
}

// isA reports whether err is a T, or wraps one.
func isA[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// noAnswer reports whether an attempt or a call ended without an answer of the
// database itself: nothing came, or not all of it, or another server on the way
// answered. Its errors have no code, but 401 and 413 are what they are.
func noAnswer(err error) bool {
	server, ok := errors.AsType[*upstash.Error](err)
	if !ok {
		return isA[*upstash.CallError](err)
	}
	switch server.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusUnauthorized, http.StatusRequestEntityTooLarge:
		return false
	}
	return server.StatusCode >= 500 || server.Code() == "" || errors.Is(err, upstash.ErrQuota)
}

func exitStatus(err error) int {
	var knows interface{ SafeToRetry() bool }
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errNo):
		return exitNo
	case errors.Is(err, errNoReader):
		return exitNoReader
	case errors.Is(err, errWritten), errors.Is(err, errPartly): // 2 is for what has changed nothing
		return exitUnknown
	case errors.Is(err, context.Canceled):
		// The error of a context alone does not know what was written.
		if (isA[*upstash.CallError](err) || errors.As(err, &knows)) && !upstash.SafeToRetry(err) {
			return exitUnknown
		}
		return exitInterrupted
	case isA[usageError](err), isA[*bloom.ConfigError](err), errors.Is(err, upstash.ErrArgument),
		isA[*fs.PathError](err), errors.Is(err, bloom.ErrBadStream):
		return exitUsage
	case errors.Is(err, bloom.ErrUncertain):
		return exitUnknown
	case isA[*bloom.MismatchError](err), errors.Is(err, bloom.ErrNotFound), errors.Is(err, bloom.ErrNotFilter),
		errors.Is(err, bloom.ErrKeyExists):
		return exitFilter
	case isA[*upstash.CallError](err), isA[*upstash.Error](err):
		if upstash.SafeToRetry(err) {
			return exitDatabase
		}
		return exitUnknown
	case errors.As(err, &knows) && !knows.SafeToRetry(): // a write that was made in part
		return exitUnknown
	}
	return exitDatabase
}

// flagError turns an error about a Config into one about the flag.
func flagError(err error) error {
	config, ok := errors.AsType[*bloom.ConfigError](err)
	if !ok {
		return err
	}
	return usagef("%s %s", cmp.Or(flagOf[config.Field], config.Field),
		durations.ReplaceAllStringFunc(inFlags.Replace(config.Reason), inDays))
}

// durations finds those of package time: 2330h10m3s.
var durations = regexp.MustCompile(`\b([0-9]+h)?([0-9]+m)?[0-9.]+s\b`)

// inDays writes a duration as whoever types a flag writes it: 97d2h10m3s.
func inDays(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return text
	}
	return human.Exact(d)
}

func partOnly(err error, text string) error {
	return advised{err, text + "; nothing was removed: upbloom rm --rest removes the shards that are here"}
}
