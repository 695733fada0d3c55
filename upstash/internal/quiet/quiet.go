// Package quiet makes errors that show nothing of a request or an answer, however
// they are taken apart.
package quiet

import (
	"errors"
	"reflect"
	"slices"
)

// Error returns an error with a text in place of err's own. [errors.Is] finds in
// it what it finds in err. [errors.As] and Unwrap find only errors that hold
// addresses, names and certificates, and nothing that was sent: see Known.
func Error(text string, err error) error {
	return &quiet{text, func(target error) bool { return errors.Is(err, target) }, known(nil, err)}
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
