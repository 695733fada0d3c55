package bloom

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// A string of many megabytes travels in parts, each a key of its own that
// expires by itself. One script then proves that all of them are there, puts
// them together and brings them into the target, so that the target is
// untouched or complete whatever is lost on the way.

const (
	defaultPartBytes = 1 << 20
	minPartBytes     = 1 << 10
	maxPartBytes     = 8 << 20 // a request of the smaller plans ends at 10 MB

	// scratchTTL is how long a part that nobody came back for stays.
	scratchTTL = time.Hour

	// partRate is the slowest upload that a part has time for, in bytes a
	// second, and scriptRate how fast a server at least puts parts together:
	// 100 MiB took Redis 7.0 0.6 s on two shared cores.
	partRate   = 64 << 10
	scriptRate = 8 << 20
)

// A MoveOption sets how Load, Merge, Replace, Snapshot, Save and Restore move a
// filter's bytes.
type MoveOption func(*moveConfig)

type moveConfig struct {
	partBytes int
	parallel  int
	progress  func(done, total int64)
}

// MovePartBytes sets how many bytes one request carries, from 1 KiB to 8 MiB;
// the default is 1 MiB. Other values are brought into that range.
func MovePartBytes(n int) MoveOption {
	return func(c *moveConfig) { c.partBytes = min(max(n, minPartBytes), maxPartBytes) }
}

// MoveProgress has f called with the bytes moved so far and in all: once at the
// start, after each part, and with done equal to total at the end. Calls come
// one at a time, from several goroutines.
func MoveProgress(f func(done, total int64)) MoveOption {
	return func(c *moveConfig) { c.progress = f }
}

func (f *Filter) moveConfig(opts []MoveOption) moveConfig {
	c := moveConfig{partBytes: defaultPartBytes, parallel: f.batchParallel()}
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	return c
}

// eachPart calls do for each part of size bytes, several at once, and reports
// progress. It returns the first error, after which no more parts are begun.
func (c *moveConfig) eachPart(ctx context.Context, size int, do func(ctx context.Context, i, from, to int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	done := 0
	report := func(n int) {
		if c.progress == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done += n
		c.progress(int64(done), int64(size))
	}
	report(0)
	slots := make(chan struct{}, c.parallel)
	var parts sync.WaitGroup
	for i, from := 0, 0; from < size; i, from = i+1, from+c.partBytes {
		to := min(from+c.partBytes, size)
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		parts.Go(func() {
			defer func() { <-slots }()
			if err := do(ctx, i, from, to); err != nil {
				cancel(&partError{err})
				return
			}
			report(to - from)
		})
	}
	parts.Wait()
	if cause, ok := context.Cause(ctx).(*partError); ok {
		return cause.err
	}
	return ctx.Err()
}

// partError marks the cause that is a part's, not the caller's.
type partError struct{ err error }

func (e *partError) Error() string { return e.err.Error() }

// upload is the parts of one string under way to the server.
type upload struct {
	rec     *record
	data    []byte
	setBits uint64
	keys    []string // the scratch key that the parts are put together in, then the parts

	requests, commands atomic.Int64
	bytes              atomic.Int64
}

// scratchName draws a name that no other call in progress has. It need not be
// secret, and crypto/rand would add 160 KB to a WebAssembly module.
func scratchName() string { return strconv.FormatUint(rand.Uint64(), 36) }

// newUpload names the keys: KEY:load:RANDOM and KEY:load:RANDOM:i.
func (f *Filter) newUpload(l *Local, c moveConfig) *upload {
	u := &upload{rec: &f.rec, data: l.raw(), setBits: l.setBits()}
	if !f.rec.headed() {
		u.data = u.data[headerBytes:]
	}
	base := f.rec.key + ":load:" + scratchName()
	u.keys = append(u.keys, base)
	for i := range (len(u.data) + c.partBytes - 1) / c.partBytes {
		u.keys = append(u.keys, base+":"+strconv.Itoa(i))
	}
	return u
}

// send uploads the parts. A part that arrives twice or late does no harm:
// nobody knows its name, and it expires.
func (u *upload) send(ctx context.Context, c moveConfig) error {
	seconds := strconv.Itoa(int(scratchTTL / time.Second))
	return c.eachPart(ctx, len(u.data), func(ctx context.Context, i, from, to int) error {
		part := u.data[from:to]
		cmd := upstash.RawCmd("SETEX", part, u.keys[1+i], seconds).
			Timeout(time.Duration(len(part)/partRate) * time.Second)
		u.requests.Add(1)
		u.commands.Add(1)
		reply, err := u.rec.client.Do(ctx, cmd)
		if err == nil {
			err = reply.Err()
		}
		if err != nil {
			return fmt.Errorf("bloom: part %d of %d: %w", i+1, len(u.keys)-1, explain(err))
		}
		u.bytes.Add(int64(len(part)))
		return nil
	})
}

// run runs the script that takes the parts, and returns its answers: the first
// is the number of commands that it called.
func (u *upload) run(ctx context.Context, text string, args ...string) (answers []upstash.NullInt64, repeated bool, err error) {
	r := u.rec
	args = append([]string{
		strconv.FormatUint(u.setBits, 10), strconv.Itoa(len(u.data)),
		strconv.Itoa(int(scratchTTL / time.Second)), milliseconds(r.ttl),
	}, args...)
	u.requests.Add(1)
	reply, err := r.evalFor(ctx, time.Duration(4+len(u.data)/scriptRate)*time.Second, text, u.keys, args...)
	if err != nil {
		return nil, false, r.failed(err)
	}
	answers, err = reply.Ints(nil)
	if err != nil {
		return nil, false, r.failed(err)
	}
	if len(answers) < 3 {
		return nil, false, wrongCount(len(answers), 3)
	}
	u.commands.Add(1 + answers[0].Int64)
	return answers, reply.MaybeRepeated(), nil
}

// drop removes the parts, whose TTL would do so later.
func (u *upload) drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	u.requests.Add(1)
	u.commands.Add(1)
	_, _ = u.rec.client.Do(ctx, upstash.Cmd("UNLINK", u.keys...).Repeatable(true))
}

// assemble begins the scripts that take an upload. KEYS[1] is the target,
// KEYS[2] the scratch key and the others the parts; ARGV[1] the header, ARGV[2]
// the number of set cells, ARGV[3] the length, ARGV[4] the seconds that the
// scratch key may live, ARGV[5] the TTL of a new filter in milliseconds. It
// defines:
//
//	n                  the number of commands called
//	call(...)          redis.call, counted
//	complete()         puts the parts together at KEYS[2]; returns false if
//	                   one is gone or damaged
//	settle(new, ttl)   sets the TTL of KEYS[2], until then the scratch key's,
//	                   to that of what it replaces: ttl is a PTTL, new is true
//	                   if bit 127 is not settled
const assemble = `local n = 0
local function call(...) n = n + 1 return redis.call(...) end
local function complete()
  local size = 0
  for i = 3, #KEYS do
    local part = call('GET', KEYS[i])
    if not part then return false end
    size = size + #part
    if i == 3 then call('SET', KEYS[2], part, 'EX', ARGV[4]) else call('APPEND', KEYS[2], part) end
  end
  local from = '16'
  if ARGV[1] == '0' then from = '0' end
  if size == tonumber(ARGV[3]) and call('BITCOUNT', KEYS[2], from, '-1') == tonumber(ARGV[2]) then return true end
  call('DEL', KEYS[2])
  return false
end
local function settle(new, ttl)
  if new and ttl < 0 and ARGV[5] ~= '0' then ttl = tonumber(ARGV[5]) end
  if ttl > 0 then call('PEXPIRE', KEYS[1], string.format('%d', ttl)) else call('PERSIST', KEYS[1]) end
end
`
