package bloom

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A handle is a record and how calls use it. The types of this package share
// it.
type handle struct {
	rec            record
	bytes          int // Config.BatchBytes
	parallel       int // Config.BatchParallel
	missingIsEmpty bool
	// wrote is told of each write that ran, if it is not nil.
	onWrite func(ctx context.Context, w engine.Written)
}

const (
	defaultBatchBytes    = 1 << 20
	defaultBatchParallel = 4
)

// checkTarget checks the client and the key, for every constructor.
func checkTarget(c *upstash.Client, key string) error {
	switch {
	case c == nil:
		return errors.New("bloom: the client is nil: make one with upstash.New or upstash.FromEnv")
	case key == "":
		return engine.ErrEmptyKey
	case !utf8.ValidString(key):
		return errors.New("bloom: the key is not valid UTF-8, which the REST API cannot carry")
	}
	return nil
}

func (h *handle) batchBytes() int {
	if h.bytes > 0 {
		return h.bytes
	}
	return defaultBatchBytes
}

func (h *handle) batchParallel() int {
	if h.parallel > 0 {
		return h.parallel
	}
	return defaultBatchParallel
}

// allowMissing turns the ErrNotFound of a look-up into an empty filter if the
// Config says so. Otherwise it names the field for this, if there is one, and
// not to a handle for which a missing filter is a lost one.
func (h *handle) allowMissing(err error) error {
	if !fault.Is(err, ErrNotFound) {
		return err
	}
	switch {
	case h.missingIsEmpty:
		return nil
	case h.rec.MustExist:
		return err
	case h.rec.kind == KindWindow:
		return &emptyHint{err, "WindowConfig.ExpireIdle"}
	case h.rec.kind == KindLayers:
		return &emptyHint{err, "ScalableConfig.MissingIsEmpty"}
	case h.rec.geo.Scheme == SchemeCuckoo:
		return &emptyHint{err, "CuckooConfig.MissingIsEmpty"}
	case h.rec.kind == KindFilter:
		return &emptyHint{err, "Config.MissingIsEmpty"}
	}
	return err
}

// notify passes a write on to the function that watches the handle's writes.
func (h *handle) notify(ctx context.Context, w engine.Written) {
	if h.onWrite != nil && w.Applied {
		h.onWrite(ctx, w)
	}
}
