package bloom

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/upbloom/upbloom/upstash"
)

// A Filter is a handle to one Bloom filter in Redis. Make it with New or Open.
// It holds no data of the filter, so that any number of handles, in any number
// of processes, work on the same one. It is safe for concurrent use and must
// not be copied.
type Filter struct {
	client *upstash.Client
	key    string
	cfg    Config
	geo    Geometry
	kind   Kind
	header int64 // the word at bit 0; unused in the Bare layout

	verified atomic.Bool           // the header was seen and is ours
	expiring atomic.Bool           // the filter is known to have its TTL
	refused  atomic.Pointer[error] // why nothing more is written
}

// New makes a handle for the filter at key. It checks the Config, whose
// mistakes are a *ConfigError, and sends nothing; the filter itself is made by
// Create or by the first Add. It costs about as much as hashing an item, so
// that a handler may call it for each request.
func New(c *upstash.Client, key string, cfg Config) (*Filter, error) {
	geo, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errors.New("bloom: the client is nil: make one with upstash.New or upstash.FromEnv")
	}
	switch {
	case key == "":
		return nil, errEmptyKey
	case !utf8.ValidString(key):
		return nil, errors.New("bloom: the key is not valid UTF-8, which the REST API cannot carry")
	}
	return newFilter(c, key, cfg, geo, KindFilter), nil
}

func newFilter(c *upstash.Client, key string, cfg Config, geo Geometry, kind Kind) *Filter {
	f := &Filter{client: c, key: key, cfg: cfg, geo: geo, kind: kind}
	if f.headed() {
		f.header = int64(encodeHeader(kind, geo))
	}
	f.forget()
	return f
}

// forget makes the handle as good as new: nothing is known of its key.
func (f *Filter) forget() {
	f.verified.Store(false)
	f.refused.Store(nil)
	f.expiring.Store(f.cfg.TTL == 0) // nothing to set
}

var errEmptyKey = errors.New(`bloom: the key is empty: name the filter, e.g. "seen:webhooks"`)

// Geometry is what the filter's positions are computed from.
func (f *Filter) Geometry() Geometry { return f.geo }

// String describes the handle without its key and seed.
func (f *Filter) String() string { return "bloom.Filter(" + f.geo.String() + ")" }

// Format is String for every verb, so that %+v and %#v show neither the key
// nor the seed.
func (f *Filter) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, f.String()) }

func (f *Filter) headed() bool { return f.cfg.Layout == LayoutHeaded }

// scratch is what one request is built and read in.
type scratch struct {
	cmd     upstash.BitField
	pos     []uint64 // of the last item
	first   []uint64 // of the first item, Bare only
	answers []upstash.NullInt64
}

// A part of a batch needs about a megabyte, a single Add a few hundred bytes;
// the pool keeps either.
var scratchPool = sync.Pool{New: func() any { return new(scratch) }}

func getScratch() *scratch  { return scratchPool.Get().(*scratch) }
func putScratch(s *scratch) { scratchPool.Put(s) }
