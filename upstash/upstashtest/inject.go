package upstashtest

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// RequestInfo describes a request to the function of InjectFunc. It holds
// neither keys nor values nor the bearer token.
type RequestInfo struct {
	// Form is "command", "pipeline" or "multi-exec".
	Form string
	// Commands holds the names of the commands, in upper case.
	Commands []string
	// Writes reports whether a command may change the database. A BITFIELD that
	// only reads does not. A script does, unless EVAL_RO or its like runs it.
	Writes bool
}

func (s *Server) info(q request) RequestInfo {
	names := make([]string, len(q.Cmds))
	for i, c := range q.Cmds {
		names[i] = strings.ToUpper(c[0])
	}
	return RequestInfo{
		Form: string(q.Form), Commands: names,
		Writes: slices.ContainsFunc(q.Cmds, s.db.Table().MayChange),
	}
}

// faultQueue chooses the fault of each request. The zero value is ready.
type faultQueue struct {
	mu       sync.Mutex
	queue    []Fault
	writes   []Fault // for requests that write
	draw     func(n int64, r RequestInfo) Fault
	drawn    int64
	repeated map[string]Fault // for the next request with the same commands
	injected map[string]int64
}

// Inject queues faults for the next requests, one for each, in order. Fault{}
// lets a request pass. If the server refuses a request before it executes
// anything, for example because of a wrong token or a malformed body, the
// request takes no fault from the queue, unless the next one is an
// EarlyRefusal.
func (s *Server) Inject(faults ...Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.queue = append(s.faults.queue, faults...)
}

// InjectWrites is Inject for the next requests that write, as the Writes of a
// [RequestInfo] says. Others pass by, such as a look-up, or the TIME of a
// bloom.Window before its first Add. A write takes its fault from this queue,
// and from Inject's only if this one is empty. A retry is a request too. For an
// [EarlyRefusal] it is too late: that strikes the next request.
func (s *Server) InjectWrites(faults ...Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.writes = append(s.faults.writes, faults...)
}

// InjectFunc calls f for the fault of each request without a queued one. n
// counts the calls from 1. The calls do not overlap. InjectFunc(nil) ends it.
func (s *Server) InjectFunc(f func(n int64, r RequestInfo) Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.draw, s.faults.drawn = f, 0
}

// DenyFunc refuses each command for which f returns true with NOPERM, like a
// Redis whose token may not use the command or the key. f gets the command's
// name and arguments as the client sent them. It does not get the commands of
// scripts. Its calls do not overlap. DenyFunc(nil) ends it.
func (s *Server) DenyFunc(f func(command []string) bool) {
	s.alone("denying", func() error { s.deny = f; return nil })
}

// Injected returns how many requests met each fault so far, by its String.
func (s *Server) Injected() map[string]int64 {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return maps.Clone(s.faults.injected)
}

// early takes the next fault from the queue if it is an EarlyRefusal, and
// reports whether it was.
func (q *faultQueue) early() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 || q.queue[0].kind != kindEarly {
		return false
	}
	q.count(q.queue[0])
	q.queue = q.queue[1:]
	return true
}

// next chooses the fault of a request, and counts it. It calls info at most
// once, if the choice depends on it.
func (q *faultQueue) next(b wire.Batch, info func() RequestInfo) Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	var f Fault
	if len(q.repeated) > 0 {
		key := b.String()
		if again, ok := q.repeated[key]; ok {
			delete(q.repeated, key)
			return again
		}
	}
	var r RequestInfo
	if len(q.writes) > 0 || q.draw != nil {
		r = info()
	}
	switch {
	case len(q.writes) > 0 && r.Writes:
		f, q.writes = q.late(q.writes[0]), q.writes[1:]
	case len(q.queue) > 0:
		f, q.queue = q.queue[0], q.queue[1:]
	case q.draw != nil:
		q.drawn++
		f = q.late(q.draw(q.drawn, r))
	}
	if f.kind == kindLost {
		if q.repeated == nil {
			q.repeated = make(map[string]Fault)
		}
		q.repeated[b.String()] = CommandError(f.text)
	}
	if f != (Fault{}) {
		q.count(f)
	}
	return f
}

// late returns the fault of a request whose body has been read. It is too late
// for an EarlyRefusal, which therefore waits for the next request.
func (q *faultQueue) late(f Fault) Fault {
	if f.kind != kindEarly {
		return f
	}
	q.queue = slices.Insert(q.queue, 0, f)
	return Fault{}
}

func (q *faultQueue) count(f Fault) {
	if q.injected == nil {
		q.injected = make(map[string]int64)
	}
	q.injected[f.String()]++
}
