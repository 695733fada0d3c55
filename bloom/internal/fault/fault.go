// Package fault builds and searches the errors of package bloom and of its parts.
package fault

import (
	"errors"
	"fmt"
	"strings"

	"github.com/upbloom/upbloom/upstash"
)

// Errorf is fmt.Errorf for an error with a text of this package's own. Wrapped
// errors leave out the name of their package, because the text begins with one.
func Errorf(format string, args ...any) error {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = &inner{err}
		}
	}
	return fmt.Errorf(format, args...)
}

// inner is an error within the text of another.
type inner struct{ err error }

func (e *inner) Error() string { return TextOf(e.err) }
func (e *inner) Unwrap() error { return e.err }

// TextOf returns an error's text without the name of a package before it.
func TextOf(err error) string {
	text := err.Error()
	for _, name := range []string{"bloom: ", "upstash: "} {
		if rest, ok := strings.CutPrefix(text, name); ok {
			return rest
		}
	}
	return text
}

// Is is errors.Is, but does not look into a *upstash.CallError or an [Unsent]. Its
// error may be that of another call: the cause of a context, for example. A
// conclusion of this package must come from an error of the call at hand.
func Is(err, target error) bool {
	_, ok := search(err, func(e error) (struct{}, bool) {
		if e == target {
			return struct{}{}, true
		}
		x, ok := e.(interface{ Is(error) bool })
		return struct{}{}, ok && x.Is(target)
	})
	return ok
}

// As is errors.As with the limit of Is. It returns the error it finds.
func As[T error](err error) (T, bool) {
	return search(err, func(e error) (T, bool) {
		found, ok := e.(T)
		return found, ok
	})
}

// search returns the first thing look finds in err and what it wraps.
func search[T any](err error, look func(error) (T, bool)) (found T, ok bool) {
	if err == nil {
		return found, false
	}
	if found, ok = look(err); ok {
		return found, true
	}
	switch e := err.(type) {
	case *upstash.CallError, *unsentError:
	case interface{ Unwrap() error }:
		return search(e.Unwrap(), look)
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			if found, ok = search(each, look); ok {
				return found, true
			}
		}
	}
	return found, false
}

// IsDenied reports whether the token may not run the command.
func IsDenied(err error) bool {
	server, ok := As[*upstash.Error](err)
	return ok && server.Code() == "NOPERM"
}

// NoAnswer reports whether a call ended without an answer. Its retries are
// spent: there is no point in asking again at once.
func NoAnswer(err error) bool {
	call, ok := As[*upstash.CallError](err)
	return ok && !errors.Is(call.Err, upstash.ErrBadResponse)
}

// IsRefusal reports whether a server has refused a command, and will say the same
// again.
func IsRefusal(err error) bool {
	server, ok := As[*upstash.Error](err)
	return ok && server.StatusCode < 500 && server.StatusCode != 408 && server.StatusCode != 429
}

// An unsentError is the error of a command that was not sent because an earlier
// request of its call failed, which says nothing of this command.
type unsentError struct{ err error }

func (e *unsentError) Error() string {
	return "bloom: nothing was sent, because an earlier request of the call failed: " + TextOf(e.err)
}
func (e *unsentError) Unwrap() error     { return e.err }
func (e *unsentError) SafeToRetry() bool { return true }

// Unsent makes the error of what was to follow a request that failed.
func Unsent(err error) error { return &unsentError{err} }

// OnlyReads is Untouched for a call that only reads.
func OnlyReads(err *error) {
	if *err != nil {
		*err = Untouched(*err)
	}
}

// Untouched marks the error of a call that certainly changed nothing, such as an
// upload that ended before its script was sent.
func Untouched(err error) error { return &markedError{err, true} }

// MayHaveRun marks the error of a call that may have changed something: an earlier
// attempt may have run, or the command for another filter.
func MayHaveRun(err error) error { return &markedError{err, false} }

// A markedError is safe to retry or not, whatever the error in it says.
type markedError struct {
	err  error
	safe bool
}

func (e *markedError) Error() string     { return e.err.Error() }
func (e *markedError) Unwrap() error     { return e.err }
func (e *markedError) SafeToRetry() bool { return e.safe }
