package bloom

import "github.com/upbloom/upbloom/bloom/internal/engine"

// A record is one Redis string and what its bits mean. Every type of this
// package in Redis is made of records.
type record struct {
	engine.Record
	geo    Geometry
	layout Layout
	kind   Kind
}

// is says what the record is: items write and read it, and s is nil for a plain
// filter.
func (r *record) storedBy(i engine.Items, s engine.Shape) {
	r.Items, r.Shape, r.Meaning = i, s, r
	if r.layout == LayoutHeaded {
		r.Header = int64(encodeHeader(r.kind, r.geo))
	}
}

func (r *record) setReads(reads Reads) {
	r.Nearest, r.NearestFirst = reads != ReadsPrimary, reads == ReadsNearestFirst
}

// A sizedShape shape says how long its string is, and what makes it shorter. A word
// that differs from the handle's in a fixed bit is explained by another value of
// the field of the Config that differs names.
type sizedShape interface {
	length() uint64
	howToShorten() string
	differingField(word int64) (field string)
}

// otherHeader says what a header word means that is not the record's.
func (r *record) OtherHeader(word int64) error {
	got, err := parseHeader(uint64(word))
	if err != nil {
		return err
	}
	return engine.AsOtherFilter(newMismatchError(r.kind, r.geo, got))
}

// otherWord says what a kind's own word means that is not the record's.
func (r *record) OtherWord(word int64) error {
	if word>>(wordBits-1) != 1 {
		return engine.ErrHeaderBits
	}
	e := newMismatchError(r.kind, r.geo, r.geo.info())
	e.GotKind = r.kind
	e.Field = r.Shape.(sizedShape).differingField(word)
	return engine.AsOtherFilter(e)
}

// readsField names the field that lets a region answer. A Window has none.
func (r *record) ReadsField() string {
	if r.kind == KindWindow {
		return ""
	}
	return typeOf(r.kind, r.geo.Scheme).config + ".Reads"
}
