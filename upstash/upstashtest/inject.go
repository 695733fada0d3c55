package upstashtest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// RequestInfo describes a request to the function of InjectFunc. Keys, values
// and tokens are not in it.
type RequestInfo struct {
	// Method and Form: Form is "command", "pipeline" or "multi-exec".
	Method, Form string
	// Commands holds the names of the commands, in upper case.
	Commands []string
	// SyncToken is the token that the client sent along, or "".
	SyncToken string
}

func (q request) info(r *http.Request) RequestInfo {
	names := make([]string, len(q.cmds))
	for i, c := range q.cmds {
		names[i] = strings.ToUpper(c[0])
	}
	return RequestInfo{Method: r.Method, Form: string(q.form), Commands: names, SyncToken: q.token}
}

// faultQueue decides which request meets which fault. The zero value is ready.
type faultQueue struct {
	mu       sync.Mutex
	queue    []Fault
	draw     func(n int64, r RequestInfo) Fault
	drawn    int64
	repeated map[string]Fault // by the commands that the next such request has
	injected map[string]int64
}

// Inject queues faults for the next requests, one each, in order. Fault{}
// lets a request through. Requests that the server refuses before executing
// anything (a wrong token, a malformed body) meet no fault and use none up, but
// for EarlyRefusal.
func (s *Server) Inject(faults ...Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.queue = append(s.faults.queue, faults...)
}

// InjectFunc asks f for the fault of each request for which none is queued. n
// counts its calls from 1; calls don't overlap. nil, the default, ends it.
func (s *Server) InjectFunc(f func(n int64, r RequestInfo) Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.draw, s.faults.drawn = f, 0
}

// DenyFunc refuses each command for which f returns true with NOPERM, as a
// token that may not use all commands or keys is refused. f gets the command's
// name and arguments as they were sent; its calls don't overlap. nil, the
// default, denies nothing.
func (s *Server) DenyFunc(f func(command []string) bool) {
	s.alone("denying", func() error { s.deny = f; return nil })
}

// Injected returns how many faults were met so far, by their String.
func (s *Server) Injected() map[string]int64 {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return maps.Clone(s.faults.injected)
}

// early takes the next fault from the queue if it strikes before the body is
// read.
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

// next returns the fault of a request, and counts it.
func (q *faultQueue) next(b batch, r RequestInfo) Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	var f Fault
	key := fmt.Sprintf("%s %q", b.form, b.cmds)
	if again, ok := q.repeated[key]; ok {
		delete(q.repeated, key)
		return again
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
		q.repeated[key] = CommandError(f.text)
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
