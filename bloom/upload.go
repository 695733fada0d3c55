package bloom

import (
	"github.com/upbloom/upbloom/bloom/internal/engine"
)

const (
	defaultPartBytes = 1 << 20
	minPartBytes     = 1 << 10
	maxPartBytes     = 8 << 20 // a request of the smaller plans ends at 10 MB
)

// A MoveOption sets how Load, Merge, Replace, Snapshot, Save and Restore move a
// filter's bytes, and with [MoveProgress] what an AddSeq reports.
type MoveOption func(*moveConfig)

type moveConfig struct{ engine.Moves }

// MovePartBytes sets how many bytes of the string one request carries, from 1
// KiB to 8 MiB; the default is 1 MiB. A value outside that range counts as the
// nearest one in it. An upload has at most 1,000 parts, or fewer if the key is
// long: the parts of a longer string are larger. It has no effect on an AddSeq,
// whose requests are those of [Config.BatchBytes].
func MovePartBytes(n int) MoveOption {
	return func(c *moveConfig) { c.PartBytes = min(max(n, minPartBytes), maxPartBytes) }
}

// MoveProgress sets a function to call with the bytes moved so far and the
// bytes in all: once at the start, and after each part. After the last part
// done equals total. The calls come one at a time, from several goroutines.
//
// An AddSeq moves no parts: it calls the function after each round, with the
// number of items added so far, and -1 for the total.
func MoveProgress(f func(done, total int64)) MoveOption {
	return func(c *moveConfig) { c.Progress = f }
}

func (f *Filter) moveConfig(opts []MoveOption) moveConfig {
	c := moveConfig{engine.Moves{PartBytes: defaultPartBytes, Parallel: f.batchParallel()}}
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	return c
}
