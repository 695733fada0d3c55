package upstashtest

import (
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
	injected map[string]int64
}

// Inject queues faults for the next requests, one each, in order. Fault{}
// lets a request through. Requests that the server refuses before executing
// anything (a wrong token, a malformed body) meet no fault and use none up.
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

// Injected returns how many faults were met so far, by their String.
func (s *Server) Injected() map[string]int64 {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return maps.Clone(s.faults.injected)
}

// next gives the fault of a request, and counts it.
func (q *faultQueue) next(r RequestInfo) Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	var f Fault
	switch {
	case len(q.queue) > 0:
		f, q.queue = q.queue[0], q.queue[1:]
	case q.draw != nil:
		q.drawn++
		f = q.draw(q.drawn, r)
	}
	if f != (Fault{}) {
		if q.injected == nil {
			q.injected = make(map[string]int64)
		}
		q.injected[f.String()]++
	}
	return f
}
