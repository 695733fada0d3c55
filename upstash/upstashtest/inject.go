package upstashtest

import (
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// RequestInfo describes a request to the function of InjectFunc. It holds
// neither keys nor values nor the bearer token.
type RequestInfo struct {
	// Method is the HTTP method. Form is "command", "pipeline" or "multi-exec".
	Method, Form string
	// Commands holds the names of the commands, in upper case.
	Commands []string
	// SyncToken is the request's upstash-sync-token, or "".
	SyncToken string
}

func (q request) info(r *http.Request) RequestInfo {
	names := make([]string, len(q.Cmds))
	for i, c := range q.Cmds {
		names[i] = strings.ToUpper(c[0])
	}
	return RequestInfo{Method: r.Method, Form: string(q.Form), Commands: names, SyncToken: q.token}
}

// faultQueue chooses the fault of each request. The zero value is ready.
type faultQueue struct {
	mu       sync.Mutex
	queue    []Fault
	draw     func(n int64, r RequestInfo) Fault
	drawn    int64
	repeated map[string]Fault // for the next request with the same commands
	injected map[string]int64
}

// Inject queues faults for the next requests, one for each, in order. Fault{}
// lets a request pass. A request that the server refuses before it executes
// anything, such as one with a wrong token or a malformed body, takes no fault
// from the queue, unless the next one is an EarlyRefusal.
func (s *Server) Inject(faults ...Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.queue = append(s.faults.queue, faults...)
}

// InjectFunc calls f for the fault of each request for which none is queued. n
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

// next chooses the fault of a request, and counts it.
func (q *faultQueue) next(b wire.Batch, r RequestInfo) Fault {
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
	switch {
	case len(q.queue) > 0:
		f, q.queue = q.queue[0], q.queue[1:]
	case q.draw != nil:
		q.drawn++
		f = q.draw(q.drawn, r)
		if f.kind == kindEarly { // this body has been read
			q.queue = append(q.queue, f)
			f = Fault{}
		}
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

func (q *faultQueue) count(f Fault) {
	if q.injected == nil {
		q.injected = make(map[string]int64)
	}
	q.injected[f.String()]++
}
