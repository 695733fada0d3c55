package bloom

import (
	"context"
	"errors"
)

// Create makes the filter with its whole string, so that the memory is there
// from the start and no later Add can fail for want of it. It reports whether
// it made the filter; false means that one of the same geometry was there, and
// a *MismatchError that the key holds another, which is left untouched. (One
// that another client makes in the same moment may be lengthened, by zeros.)
//
// A filter that is there costs one request and one command; one to be made a
// second request, two commands where there is a TTL. Of several clients that
// create the same key at once exactly one is told true. A Bare filter has no
// header that could tell, so that Create is a *ConfigError there.
//
// ErrUncertain means that the filter is there, but that it may have been made
// by an earlier attempt of this very call.
func (f *Filter) Create(ctx context.Context) (created bool, err error) {
	if !f.headed() {
		return false, configErrorf("Layout", "is bare: only a filter with a header can be created; just Add")
	}
	if f.client.ReadOnly() {
		return false, f.mayWrite()
	}
	word, err := f.readHeader(ctx)
	if err != nil {
		return false, err
	}
	if err := f.verify(word); !errors.Is(err, ErrNotFound) {
		return false, err
	}
	s := getScratch()
	defer putScratch(s)
	f.beginWrite(&s.cmd)
	// Adding 0 to the last bit makes the string whole and changes no bit of a
	// filter that another client has made meanwhile.
	s.cmd.IncrBy("u1", headerBits+f.geo.Bits-1, 0)
	w, err := f.write(ctx, s)
	switch {
	case len(w.old) == 0:
		return false, err
	case w.maybeRepeated && !w.created:
		return false, ErrUncertain
	}
	return w.created, err
}
