package bloom

import (
	"context"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// OpenOption sets what a filter's header does not say.
type OpenOption func(*Config)

// OpenSeed gives the secret seed of a filter that was made with one. Another
// seed than the filter's is a *MismatchError, 254 times in 255.
func OpenSeed(seed uint64) OpenOption { return func(c *Config) { c.Seed = seed } }

// OpenTTL is Config.TTL: it counts where the filter has no TTL yet, or is
// later made anew by an Add.
func OpenTTL(ttl time.Duration) OpenOption { return func(c *Config) { c.TTL = ttl } }

// OpenMissingIsEmpty is Config.MissingIsEmpty, for a filter that goes missing
// later. Open itself needs one to read.
func OpenMissingIsEmpty() OpenOption { return func(c *Config) { c.MissingIsEmpty = true } }

// OpenBatch is Config.BatchBytes and Config.BatchParallel.
func OpenBatch(bytes, parallel int) OpenOption {
	return func(c *Config) { c.BatchBytes, c.BatchParallel = bytes, parallel }
}

// Open makes a handle for an existing filter and reads its geometry from its
// header, in one request and one command, so that a reader needs to know no
// more than the key. It is ErrNotFound where there is none. A Bare filter has
// no header: use New.
func Open(ctx context.Context, c *upstash.Client, key string, opts ...OpenOption) (*Filter, error) {
	var cfg Config
	for _, o := range opts {
		o(&cfg)
	}
	// Any geometry will do to ask for the header; it is checked with the rest.
	cfg.Bits, cfg.Hashes = 1, 1
	probe, err := New(c, key, cfg)
	if err != nil {
		return nil, err
	}
	word, err := probe.readHeader(ctx)
	if err != nil {
		return nil, err
	}
	if word == 0 {
		return nil, ErrNotFound
	}
	got, err := parseHeader(uint64(word))
	if err != nil {
		return nil, err
	}
	cfg.Bits, cfg.Hashes, cfg.Scheme = got.bits, got.hashes, got.scheme
	if got.kind != KindFilter || got.scheme.cellBits() != 1 || got.seedTag != seedTag(cfg.Seed) {
		want := Geometry{Bits: got.bits, Hashes: got.hashes, Scheme: got.scheme, Seed: cfg.Seed}
		if want.Scheme.cellBits() != 1 {
			return nil, fmt.Errorf("%w of one-bit cells, but a counting filter (%v):"+
				" use the type that wrote it", ErrNotFilter, want)
		}
		return nil, newMismatchError(KindFilter, want, got)
	}
	geo, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	f := newFilter(c, key, cfg, geo, KindFilter)
	f.verified.Store(true)
	return f, nil
}

// readHeader gives the word at bit 0, 0 where there is no filter.
func (f *Filter) readHeader(ctx context.Context) (int64, error) {
	s := getScratch()
	defer putScratch(s)
	s.cmd.Reset(f.key).Get(headerType, 0)
	if f.client.ReadOnly() {
		s.cmd.ReadOnly()
	}
	answers, err := f.ask(ctx, s)
	if err != nil {
		return 0, err
	}
	return headerWord(answers[0])
}
