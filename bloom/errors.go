package bloom

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
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

// ErrNoTTL is returned when the items of a write are in, or a Create has made the
// filter, but the TTL may not be set: see [Config.TTL]. The answers beside it hold.
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

// A MismatchError is returned when the filter at a key is not the one the
// handle was made for. Rarely, other data looks like a header; [Open] and
// [Inspect] check more of it.
type MismatchError struct {
	// Want is the handle's geometry and Got the stored one. Got.Seed is
	// Want.Seed if the header agrees with that, else 0.
	Want, Got Geometry
	// WantKind and GotKind say what the two are.
	WantKind, GotKind Kind
	// OtherSeed is true if the seeds are known to differ, and GotSeeded if the
	// stored filter has one.
	OtherSeed, GotSeeded bool
	// Field names the field of the config that differs, such as "Span", if the
	// geometry is the same.
	Field string

	local bool // no key is involved
}

func (e *MismatchError) Error() string {
	if e.local {
		return e.localText()
	}
	got, want := typeOf(e.GotKind), typeOf(e.WantKind)
	if want != got {
		opener := got.opener()
		if e.GotKind == KindShard {
			opener += " with the key without its :number"
		}
		return fmt.Sprintf("bloom: %s is at this key, %v, and not %s: use %s, or another key",
			got.name, e.Got, want.name, opener)
	}
	advice := fmt.Sprintf("use the %s it was made with, read it with %s, or use another key",
		got.config(), got.opener())
	switch {
	case e.Field == "key":
		return "bloom: the shard at this key was made at another key: rename it back, or use another key"
	case e.Field != "":
		return fmt.Sprintf("bloom: %s with another %s is at this key: %s", got.name, e.Field, advice)
	case e.seedOnly():
		if !e.GotSeeded {
			return fmt.Sprintf("bloom: the filter at this key has the same geometry (%v) but no seed:"+
				" leave the seed out, or use another key", e.Got)
		}
		return fmt.Sprintf("bloom: the filter at this key has the same geometry (%v) but another"+
			" seed: use the %s.Seed it was made with, or another key", e.Got, got.config())
	case e.OtherSeed:
		advice = "the seeds differ too: " + advice
	}
	if !format.Scheme(e.Got.Scheme).OfWords() || e.Want.Scheme != e.Got.Scheme {
		return fmt.Sprintf("bloom: another filter, or other data, is at this key: %v; this handle wants %v: %s",
			e.Got, e.Want, advice)
	}
	// Other data hardly pass for whole words, or buckets, of 53 bits.
	return fmt.Sprintf("bloom: %s of another size is at this key: %v; this handle wants %v:"+
		" %s differs: %s", got.name, e.Got, e.Want, got.sizes, advice)
}

// localText is Error for filters in memory and in streams.
func (e *MismatchError) localText() string {
	got := typeOf(e.GotKind)
	switch {
	case got.typ != "":
		return fmt.Sprintf("bloom: the stream holds %s, %v, and a Local is a plain Filter: bring it back"+
			" with Backup.Restore", got.name, e.Got)
	case e.seedOnly() && !e.GotSeeded:
		return fmt.Sprintf("bloom: the other filter has the same geometry (%v) but no seed:"+
			" leave the seed out", e.Got)
	case e.seedOnly():
		return fmt.Sprintf("bloom: the other filter has the same geometry (%v) but another seed:"+
			" use the Config.Seed it was made with", e.Got)
	}
	return fmt.Sprintf("bloom: the other filter is %v; this one is %v: both must be of the same Config",
		e.Got, e.Want)
}

// A typeNames is how an error speaks of a type.
type typeNames struct {
	name  string // its article and name
	typ   string // "" for a Filter
	sizes string // the fields of its config that decide the size
}

func (t typeNames) config() string { return t.typ + "Config" }
func (t typeNames) opener() string { return "Open" + t.typ }

// typeOf returns the names of the type that wrote a string.
func typeOf(k Kind) typeNames {
	switch k {
	case KindShard:
		return typeNames{"a shard of a Sharded", "Sharded", "Capacity, FPRate or Shards"}
	case KindScalable:
		return typeNames{"a Scalable", "Scalable", "Capacity or FPRate"}
	case KindWindow:
		return typeNames{"a Window", "Window", "Capacity, FPRate or Panes"}
	case KindCuckoo:
		return typeNames{"a Cuckoo", "Cuckoo", "Capacity or FPRate"}
	}
	return typeNames{"a plain Filter", "", "Capacity or FPRate"}
}

// seedOnly reports whether the seed is the only difference.
func (e *MismatchError) seedOnly() bool {
	want := e.Want
	want.Seed = e.Got.Seed
	return e.OtherSeed && want == e.Got
}

func newMismatchError(kind Kind, want Geometry, got format.Header) *MismatchError {
	return &MismatchError{
		Want: want, Got: geometryOf(got, want.Seed),
		WantKind: kind, GotKind: Kind(got.Kind),
		OtherSeed: got.SeedTag != format.SeedTag(want.Seed), GotSeeded: got.SeedTag != 0,
	}
}

// localMismatch returns the error for two filters, if no key is involved.
func localMismatch(want, got Geometry) error {
	return &MismatchError{
		Want: want, Got: got, OtherSeed: want.Seed != got.Seed, GotSeeded: got.Seed != 0, local: true,
	}
}
