package bloom

import (
	"errors"
	"fmt"
	"strings"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// Errors to test for with errors.Is. Those from the database wrap the error of
// package upstash as well. None of them holds a key, an item or a seed.
var (
	// ErrNotFound is returned when there is no filter at the key: it was never
	// created, has expired, or was deleted or evicted. It is not a "no": the
	// items may have been added to the filter that went away. Call Create, or
	// set [Config.MissingIsEmpty] if a missing filter means that nothing was
	// added yet. Nothing was changed, neither by a look-up nor by a write that
	// finds no filter, as with [Config.MustExist]: [upstash.SafeToRetry] is true.
	// It is false if an earlier attempt of a write got no answer: that one may
	// have found a filter that has gone since, or may still come to the next one.
	ErrNotFound = engine.ErrNotFound

	// ErrSaturated is returned when a number of items is asked of a filter with
	// all bits set. Such a filter finds every item and no longer knows how many
	// it holds.
	ErrSaturated = errors.New("bloom: all bits of the filter are set, so that it finds every" +
		" item; make another with a larger Capacity")

	// ErrUncertain is returned when an item was added after a retry and is in
	// the filter, but it is not known whether it was new: a lost attempt may
	// have set its bits, or in a [Window] a command whose answer came too late.
	// After Load, Merge, Restore and Replace it is not known whether the upload
	// was taken, and after a write of a [Cuckoo] whether it has run. It is not
	// upstash.ErrUncertain, which is about a client's own calls.
	ErrUncertain = engine.ErrUncertain

	// ErrFull is returned when a [Cuckoo] has no place for an item, or for one
	// of the items of a request. Nothing of this request was added. Make a
	// filter with a larger Capacity, or remove items. It is also returned for
	// an item that is in as often as it can be: 4 to 10 times, twice as often
	// as a bucket has slots, or half as often if its two buckets are one.
	ErrFull = errors.New("bloom: the cuckoo filter is full: remove items, or make one with a" +
		" larger Capacity")

	// ErrRecreated is returned when the filter was replaced during a call of
	// several steps, or was lost and created again. Items of the earlier steps
	// are not in the new filter, and what these steps read is not of it. Call
	// again.
	ErrRecreated = engine.ErrRecreated

	// ErrNoTTL is returned when the items of a write are in the filter, but the
	// server refused to set its TTL. The next Add tries again; Expire sets it
	// at once.
	ErrNoTTL = engine.ErrNoTTL

	// ErrNoClock is returned by the writes of a [Window] if the token may not
	// run TIME: without the server's clock no writer knows the epoch. Nothing
	// was written.
	ErrNoClock = errors.New("bloom: a Window needs the server's clock, and the token may not run" +
		" TIME: use a token that may")

	// ErrKeyExists is returned by Rename when the other key holds something.
	// Choose another, or delete it first.
	ErrKeyExists = engine.ErrKeyExists

	// ErrNotFilter is returned when the key holds something else than a filter
	// of this format, or a filter of a newer version. Use a key that holds
	// nothing else. If the first 53 bits of a string are 0, as those of a sparse
	// bitmap may be, an Add that creates missing filters takes it for an empty
	// one: it writes a header there, and every set bit counts as an item's.
	// Create, Load and the writes of a [Cuckoo] refuse such a string unchanged.
	// Exists, Stats, Rename, Expire, Persist and Delete find no filter there.
	ErrNotFilter = engine.ErrNotFilter
)

// unmarshalName sets *to to the value with this name.
func unmarshalName[T fmt.Stringer](to *T, name []byte, values ...T) error {
	names := make([]string, len(values))
	for i, v := range values {
		if names[i] = v.String(); names[i] == string(name) {
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

// A ConfigError says which field of a [Config] cannot be used, and why. It is
// returned before anything is sent.
type ConfigError struct {
	Field  string // the name of the field, such as "FPRate"; "" for the whole Config
	Reason string // what its value is, and what it must be

	of string // whose field it is, if not of Config
}

// Error names the field, and says what it is and must be.
func (e *ConfigError) Error() string {
	of := e.of
	if of == "" {
		of = "Config"
	}
	if e.Field != "" {
		of += "." + e.Field
	}
	return "bloom: " + of + " " + e.Reason
}

// A MismatchError is returned when the filter at a key is not the one the
// handle was made for. Its answers would be wrong, so the call returns none.
// Rarely, the key holds other data that happens to look like a header; [Open]
// and [Inspect] check more of it. Test for it with errors.As.
type MismatchError struct {
	// Want is the handle's geometry and Got the stored one. The header holds
	// seven bits of the seed's hash. If they are those of Want.Seed, Got.Seed is
	// the same, else it is 0.
	Want, Got Geometry
	// WantKind and GotKind tell a filter from a shard, layers or a window.
	WantKind, GotKind Kind
	// OtherSeed is true if the seeds are known to differ, and GotSeeded if the
	// stored filter was made with a seed.
	OtherSeed, GotSeeded bool
	// If the geometry is the same, Field names the field of the [Config] that
	// differs, such as "Span"; else it is empty.
	Field string

	local bool // no key is involved
}

// Error says what is at the key, what the handle wants, and what to do.
func (e *MismatchError) Error() string {
	if e.local {
		return e.localText()
	}
	got, want := typeOf(e.GotKind, e.Got.Scheme), typeOf(e.WantKind, e.Want.Scheme)
	if want != got {
		opener := got.opener
		if e.GotKind == KindShard {
			opener += " with the key without its :number"
		}
		return fmt.Sprintf("bloom: %s is at this key, %v, and not %s: use %s, or another key",
			got.name, e.Got, want.name, opener)
	}
	advice := fmt.Sprintf("use the %s it was made with, read it with %s, or use another key",
		got.config, got.opener)
	switch {
	case e.Field == "key":
		return "bloom: the shard at this key was made at another key: rename it back, or use another key"
	case e.Field != "":
		return fmt.Sprintf("bloom: the %v at this key was made with another %s: %s", e.GotKind, e.Field, advice)
	case e.seedOnly():
		if !e.GotSeeded {
			return fmt.Sprintf("bloom: the filter at this key has the same geometry (%v) but no seed:"+
				" leave the seed out, or use another key", e.Got)
		}
		return fmt.Sprintf("bloom: the filter at this key has the same geometry (%v) but another"+
			" seed: use the %s.Seed it was made with, or another key", e.Got, got.config)
	case e.OtherSeed:
		advice = "the seeds differ too: " + advice
	}
	if e.Got.Scheme != SchemeBlocked && e.Got.Scheme != SchemeCuckoo || e.Want.Scheme != e.Got.Scheme {
		return fmt.Sprintf("bloom: another filter, or other data, is at this key: %v; this handle wants %v: %s",
			e.Got, e.Want, advice)
	}
	// Other data hardly pass for whole words, or buckets, of 53 bits.
	return fmt.Sprintf("bloom: %s of another size is at this key: %v; this handle wants %v:"+
		" %s differs: %s", got.name, e.Got, e.Want, got.sizes, advice)
}

// localText is Error for filters in memory and in streams.
func (e *MismatchError) localText() string {
	switch {
	case e.seedOnly() && !e.GotSeeded:
		return fmt.Sprintf("bloom: the other filter has the same geometry (%v) but no seed:"+
			" leave the seed out", e.Got)
	case e.seedOnly():
		return fmt.Sprintf("bloom: the other filter has the same geometry (%v) but another seed:"+
			" use the Config.Seed it was made with", e.Got)
	}
	got, want := typeOf(e.GotKind, e.Got.Scheme), typeOf(e.WantKind, e.Want.Scheme)
	return fmt.Sprintf("bloom: the other filter is %s, %v; this one is %s, %v:"+
		" both must be of the same Config", got.name, e.Got, want.name, e.Want)
}

// A typeNames is how an error speaks of a type.
type typeNames struct {
	name   string // its article and name
	config string
	sizes  string // the fields of its config that decide the size
	opener string // the function to open it
}

// typeOf returns the names of the type that wrote a string.
func typeOf(k Kind, s Scheme) typeNames {
	switch {
	case k == KindShard:
		return typeNames{"a shard of a Sharded", "ShardedConfig", "Capacity, FPRate or Shards", "OpenSharded"}
	case k == KindLayers:
		return typeNames{"a Scalable", "ScalableConfig", "Capacity or FPRate", "OpenScalable"}
	case k == KindWindow:
		return typeNames{"a Window", "WindowConfig", "Capacity, FPRate or Panes", "OpenWindow"}
	case s == SchemeCuckoo:
		return typeNames{"a Cuckoo", "CuckooConfig", "Capacity or FPRate", "OpenCuckoo"}
	}
	return typeNames{"a plain Filter", "Config", "Capacity or FPRate", "Open"}
}

// seedOnly reports whether the seed is the only difference.
func (e *MismatchError) seedOnly() bool {
	want := e.Want
	want.Seed = e.Got.Seed
	return e.OtherSeed && want == e.Got
}
