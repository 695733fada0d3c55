package proof

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A Session is the handles of a client, made when they are first used. It is
// safe for concurrent use.
type Session struct {
	of      maker
	clients []*upstash.Client // one for each database
	keys    [2]string
	beside  *Session // of the other filter of a Mixed

	mu      sync.Mutex
	handles map[which]handle
	opened  map[handle]bool
	copied  *bloom.Mirror // of the first key; nil before its first use
	now     func() time.Time

	began, first time.Time // by time.Now, and by now
}

// LiveBy has a Mirror of the session see another time than time.Now.
func (s *Session) LiveBy(now func() time.Time) { s.now, s.began, s.first = now, time.Now(), now() }

// clockErrors returns Result.Ahead and Result.Stood.
func (s *Session) clockErrors() (ahead, stood time.Duration) {
	if s.now == nil {
		return 0, 0
	}
	now, right := s.now(), time.Now()
	return now.Round(0).Sub(right.Round(0)), right.Sub(s.began) - now.Sub(s.first)
}

// A maker makes the handles of a type.
type maker interface {
	Base() *Common
	Pane() time.Duration
	make(clients []*upstash.Client, key string, v variant) (handle, error)
	open(ctx context.Context, clients []*upstash.Client, key string, v variant) (handle, error)
	// items returns the items of a call, with those that it only counts.
	items(c Call) []string
}

// which names a handle of a session.
type which struct {
	key int // 0 or 1
	variant
}

// variant is a Config.
type variant uint8

const (
	plain    variant = iota
	inParts          // each item of a batch is a request
	strict           // with MustExist
	reshaped         // of another shape
	turned           // the clients have another order
)

// whichOf returns the handle of a call.
func whichOf(c Call) which {
	w := which{key: c.Key}
	switch {
	case verbOfOther[c.Verb] != "":
		w.variant = reshaped
	case c.Turned:
		w.variant = turned
	case c.Parts:
		w.variant = inParts
	}
	return w
}

// sessionOf returns the handles of a client, whose observer must be Observe.
func sessionOf(of maker, clients []*upstash.Client, key string) *Session {
	return &Session{
		of: of, clients: clients, keys: [2]string{key, secondKey(key)}, handles: make(map[which]handle),
		opened: make(map[handle]bool),
	}
}

// secondKey is the other key, for renames.
func secondKey(key string) string { return key + ":2" }

// handle returns a handle.
func (s *Session) handle(w which) handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.handles[w]; h != nil {
		return h
	}
	h, err := s.of.make(s.clients, s.keys[w.key], w.variant)
	if err != nil {
		panic(err) // the Configs are constants
	}
	s.handles[w] = s.batched(h, w.variant)
	return h
}

// batched limits the requests of a handle's batches.
func (s *Session) batched(h handle, v variant) handle {
	bytes := 0
	if v == inParts {
		bytes = 1
	}
	door.SetBatch(h, bytes, s.of.Base().Parallel)
	return h
}

// into returns the handle that Call.Into names.
func (s *Session) into(n int) bloom.AnyFilter {
	w := which{key: n}
	switch n {
	case intoStrict:
		w = which{variant: strict}
	case intoOther, intoOtherAgain:
		s, w = s.beside, which{variant: variant(n - intoOther)}
	}
	return s.handle(w).(bloom.AnyFilter)
}

// Call.Into names the filters of the two keys by 0 and 1. The strict handle is of
// the first key, and has MustExist: its writes are scripts, which a server may
// refuse for their form. The last two are of the other filter of a Mixed.
const (
	intoStrict = iota + 2
	intoOther
	intoOtherAgain
)

// adopt makes an opened handle the client's own. A Mirror of it is a new one.
func (s *Session) adopt(w which, opened handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handles[w], s.opened[opened] = s.batched(opened, w.variant), true
	if w == (which{}) {
		s.copied = nil
	}
}

// wasOpened reports whether a handle knows only what the string says.
func (s *Session) wasOpened(h handle) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened[h]
}

// mirror returns the Mirror of the first key.
func (s *Session) mirror() *bloom.Mirror {
	f := s.handle(which{}).(bloom.Mirrorable)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.copied == nil {
		s.copied = newMirror(f, s.mirrorConfig())
		if s.now != nil {
			door.MirrorClock(s.copied, s.now)
		}
	}
	return s.copied
}

func (s *Session) mirrorConfig() bloom.MirrorConfig {
	return s.of.(interface{ mirrorConfig() bloom.MirrorConfig }).mirrorConfig()
}

func newMirror(f bloom.Mirrorable, cfg bloom.MirrorConfig) *bloom.Mirror {
	m, err := bloom.NewMirror(f, cfg)
	if err != nil {
		panic(err) // the Configs are constants
	}
	return m
}

// Run makes one call: it picks the handle, the table of verbs says how the handle
// makes the call, and attempts.run takes note of what came of it.
func (s *Session) Run(ctx context.Context, c Call) Result {
	if c.Shard == 1 && s.beside != nil {
		s = s.beside
	}
	h := s.handle(whichOf(c))
	_, before := door.KnownServerTime(s.clients[0])
	ahead, stood := s.clockErrors()
	_, _, learned := door.ServerTimeBounds(s.clients[0])
	a := newAttempts(c)
	r := a.run(ctx, c, func(ctx context.Context) (Result, error) {
		c.Items = s.of.items(c)
		return ask{ctx, h, c, s}.run()
	})
	_, after := door.KnownServerTime(s.clients[0])
	r.Timed, r.NoTime, r.LostTime = before && after, a.noTime.Load(), a.lostTime.Load()
	r.Unlearned = s.of.Pane() > 0 && !learned
	r.Ahead, r.Stood = s.clockErrors()
	r.Leapt = r.Ahead != ahead || r.Stood != stood
	return r
}

// tell notes in a result what the error of its call says.
func (r *Result) tell(err error) {
	if err == nil {
		return
	}
	r.Err, r.Safe = err.Error(), upstash.SafeToRetry(err)
	r.NoTTL = errors.Is(err, bloom.ErrNoTTL)
	r.Shards = shardsIn(r.Err)
	var batch *bloom.BatchError
	if errors.As(err, &batch) {
		r.End, r.States = Partly, batch.Items
		r.ErrSafe, r.ErrUnsure = upstash.SafeToRetry(batch.Err), errors.Is(batch.Err, bloom.ErrUncertain)
		switch endOf(batch.Err, nil) {
		case Missing, Recreated, Mismatch:
			r.ErrGone = true
		}
		r.ErrAnew = errors.Is(batch.Err, bloom.ErrRecreated)
		err = batch.Err // of the request that failed
	}
	r.Full = errors.Is(err, bloom.ErrFull)
	if both, ok := err.(interface{ Unwrap() []error }); ok && r.NoTTL {
		err = errors.Unwrap(both.Unwrap()[0]) // what it says beside the TTL
	}
	r.Early = bloom.InFilter(err) && err != bloom.ErrUncertain && !errors.Is(err, bloom.ErrNoTTL)
}

var shardNames = regexp.MustCompile(`shard ([0-9]+(?:, [0-9]+)*) of [0-9]+`)

// shardsIn returns the shards named in an error's text.
func shardsIn(text string) (shards []int) {
	m := shardNames.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	for name := range strings.SplitSeq(m[1], ", ") {
		n, err := strconv.Atoi(name)
		if err != nil {
			panic(err) // the expression lets digits pass
		}
		shards = append(shards, n)
	}
	return shards
}

// Finish adds the last calls of a type to its history, after all faults. The
// handles are a new client's.
func Finish(ctx context.Context, of Type, h *History, dbs []*upstashtest.Server, key string, s *Session) error {
	for _, db := range dbs {
		db.Inject() // a lost-then-error may wait for a retry that never came
	}
	for _, c := range of.last(h.Len()) {
		if c.FromOutside() {
			h.Do("outside", "outside", c, func(c Call) Result { return of.Outside(dbs, key, 0, c) })
			continue
		}
		r := h.Do(atLast, atLast, c, func(c Call) Result { return s.Run(ctx, c) })
		if c.Sure && !of.Base().isWell(c, r) {
			return fmt.Errorf("%v met no fault: %v", c, r)
		}
	}
	return nil
}

// isWell reports whether a call ended as one does that meets no fault.
func (b *Common) isWell(c Call, r Result) bool {
	switch r.End {
	case Answered, Mismatch, Missing, Full:
		return true
	case Partly: // of a key that holds nothing, or other data
		return len(c.Items) > 1
	case Recreated: // on a real clock it may expire between two parts, and a region may not have it
		return 0 < b.TTL && b.TTL < time.Minute || b.Lag && !b.Tokens
	}
	return false
}
