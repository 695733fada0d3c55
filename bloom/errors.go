package bloom

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// ErrNotFound is returned when there is no filter at the key: it was never
// created, has expired, or was deleted or evicted. It is not a "no". Call
// [Filter.Create], or set [Config.MissingIsEmpty]. If [upstash.SafeToRetry] is
// false, a lost attempt may have run on a filter deleted since, or may run
// later.
var ErrNotFound = engine.ErrNotFound

// ErrSaturated is returned by the Cardinality methods when all bits of the
// filter, or of one of its layers or shards, are set: it finds every item.
var ErrSaturated = errors.New("bloom: all bits of the filter are set, so that it finds every" +
	" item; make another with a larger Capacity")

// ErrUncertain is returned when an item is in, but may not have been new: a
// lost attempt, or in a [Window] one that came too late, may have added it. A
// [Filter.Load], [Filter.Merge], [Filter.Replace] or [Backup.Restore], or a
// write of a [Cuckoo], may have run or not.
var ErrUncertain = engine.ErrUncertain

// ErrFull is returned when a [Cuckoo] has no place for an item, or holds as
// many copies of it as it can: 2 to 10. Nothing of the request was added.
var ErrFull = errors.New("bloom: the cuckoo filter is full: remove items, or make one with a" +
	" larger Capacity")

// ErrRecreated is returned when the filter was lost, deleted or replaced during
// a call of several steps. What the earlier steps added may be lost. Call
// again.
var ErrRecreated = engine.ErrRecreated

// ErrNoTTL is returned when the items of a write are in, but the TTL may not be
// set: see [Config.TTL]. The answers beside it hold.
var ErrNoTTL = engine.ErrNoTTL

// ErrNoClock is returned by the writes of a [Window] if the token may not
// run TIME. Nothing was written.
var ErrNoClock = errors.New("bloom: a Window needs the server's clock, and the token may not run" +
	" TIME: use a token that may")

// ErrKeyExists is returned by [Filter.Rename] and [Backup.Restore] when the
// other key holds something.
var ErrKeyExists = engine.ErrKeyExists

// ErrNotFilter is returned when the key holds something else than a filter of
// this format. But a string that begins with 53 zero bits, as a sparse bitmap
// may, passes for an empty filter: the Add of a [Filter] or a [Window] writes a
// header there, and its set bits count. With [Config.MustExist] it finds no
// filter, and so do look-ups. All other writes refuse such a string unchanged.
var ErrNotFilter = format.ErrNotFilter

// nameOf returns the name of a value, or "Scheme(9)" for one without a name.
func nameOf[T ~uint8](typ string, v T, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", typ, uint8(v))
}

// unmarshalName sets *to to the value with this name.
func unmarshalName[T fmt.Stringer](to *T, name []byte, values ...T) error {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.String()
		if names[i] == string(name) {
			*to = v
			return nil
		}
	}
	_, typ, _ := strings.Cut(fmt.Sprintf("%T", *to), ".")
	return fault.Errorf("bloom: %w: no %s is called %q: use one of %s",
		upstash.ErrArgument, typ, name, strings.Join(names, ", "))
}

// emptyHint is the ErrNotFound of a look-up. It names the field of the Config
// that makes a missing filter an empty one.
type emptyHint struct {
	err   error
	field string // of the Config
}

func (e *emptyHint) Error() string {
	return e.err.Error() + ", or set " + e.field + " to have it answer no"
}
func (e *emptyHint) Unwrap() error { return e.err }

// A ConfigError is returned by the New and Open functions and the Geometry
// methods for a config that cannot be used. Nothing was sent.
type ConfigError struct {
	Field  string // the name of the field, such as "FPRate"; "" for the whole Config
	Reason string // what its value is, and what it must be

	of string // whose field it is
}

func (e *ConfigError) Error() string {
	of := cmp.Or(e.of, "Config")
	if e.Field != "" {
		of += "." + e.Field
	}
	return "bloom: " + of + " " + e.Reason
}
