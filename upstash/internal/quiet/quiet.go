// Package quiet makes errors that show nothing of a request or an answer, however
// they are taken apart.
package quiet

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error returns an error with a text in place of err's own, escaped. [errors.Is]
// finds in it what it finds in err. [errors.As] and Unwrap find only known errors
// (see Known) that say no more than the text: a net.OpError may wrap anything.
func Error(text string, err error) error {
	text = Escape(text)
	said := slices.DeleteFunc(known(nil, err), func(e error) bool {
		return !strings.Contains(text, Escape(e.Error()))
	})
	return &quiet{text, func(target error) bool { return errors.Is(err, target) }, said}
}

// Known reports whether err has an error in it that [Error] keeps: of a context,
// the system, the network, TLS or a proxy.
func Known(err error) bool { return len(known(nil, err)) > 0 }

// quiet keeps no error but the known ones: fmt would print another in a field.
type quiet struct {
	text  string
	is    func(target error) bool
	known []error
}

func (e *quiet) Error() string        { return e.text }
func (e *quiet) GoString() string     { return e.text }
func (e *quiet) Is(target error) bool { return e.is(target) }
func (e *quiet) Unwrap() []error      { return e.known }

// packages have the types of known errors.
var packages = []string{
	"context", "crypto/tls", "crypto/x509", "internal/poll", "io/fs", "net", "os", "syscall",
	"github.com/upbloom/upbloom/upstash/internal/conn",
}

// known appends the outermost known errors in err.
func known(found []error, err error) []error {
	t := reflect.TypeOf(err)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return found
	}
	if slices.Contains(packages, t.PkgPath()) {
		return append(found, err)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return known(found, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			found = known(found, each)
		}
	}
	return found
}

// Escape writes what cannot be printed as a Go string would have it: line
// breaks, sequences for a terminal, and marks that turn the direction of text.
// Raw, they could forge lines of a log.
func Escape(s string) string {
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			out = append(out, s[:n]...)
		} else {
			quoted := strconv.Quote(s[:n])
			out = append(out, quoted[1:len(quoted)-1]...)
		}
		s = s[n:]
	}
	return string(out)
}
