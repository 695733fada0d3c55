package bloom

import (
	"fmt"

	"github.com/upbloom/upbloom/bloom/internal/format"
)

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
