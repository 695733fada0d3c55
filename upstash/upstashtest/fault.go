package upstashtest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// When says whether a request with a fault executes its commands: [BeforeExec] or
// [AfterExec]. A client cannot tell the two apart.
type When bool

// BeforeExec is a fault on the way to the database: nothing is executed.
const BeforeExec When = false

// AfterExec is a fault on the way back: everything is executed.
const AfterExec When = true

// Fault is something that goes wrong with one request. The zero value is no
// fault. It is a plain value and may be copied.
type Fault struct {
	kind faultKind
	when When
	n    int64         // bytes of CutBody and HugeBody, answers of interim
	wait time.Duration // of faults with a duration
	text string        // of faults with a string
}

type faultKind string

const (
	kindNone      faultKind = "none"
	kindDrop      faultKind = "drop"
	kindStall     faultKind = "stall"
	kindCut       faultKind = "cut-body"
	kindRate      faultKind = "rate-limit"
	kindRateAfter faultKind = "rate-limit-retry-after"
	kindInternal  faultKind = "internal-error"
	kindGateway   faultKind = "bad-gateway"
	kindError     faultKind = "error-object"
	kindNotJSON   faultKind = "not-json"
	kindType      faultKind = "wrong-type"
	kindShort     faultKind = "short-result"
	kindLong      faultKind = "long-result"
	kindFewer     faultKind = "short-batch"
	kindMore      faultKind = "long-batch"
	kindHuge      faultKind = "huge-body"
	kindRedirect  faultKind = "redirect"
	kindTrickle   faultKind = "trickle"
	kindCommand   faultKind = "command-error"
	kindLost      faultKind = "lost-then-error"
	kindNoPerm    faultKind = "no-permission"
	kindInterim   faultKind = "interim"
	kindTwice     faultKind = "twice"
	kindTwiceLate faultKind = "twice-late"
	kindCloses    faultKind = "closes"
	kindEarly     faultKind = "early-refusal"
	kindLate      faultKind = "late"
	kindLateExec  faultKind = "late-exec"
	kindEvict     faultKind = "evict"
)

// Drop closes the connection without an answer.
func Drop(when When) Fault { return Fault{kind: kindDrop, when: when} }

// Stall sends no answer until the client leaves or the server closes. A client
// leaves when its attempt has taken WithTimeout, in real time. In a bubble of
// testing/synctest it waits in virtual time: see the Example of [WithListener].
func Stall(when When) Fault { return Fault{kind: kindStall, when: when} }

// CutBody executes, announces the whole body and closes the connection after n
// bytes of it. However large n is, the last byte is left out.
func CutBody(n int64) Fault { return Fault{kind: kindCut, when: AfterExec, n: n} }

// RateLimit answers 429 and executes nothing. If retryAfter is above 0, the
// answer has a Retry-After header, in whole seconds, rounded up.
func RateLimit(retryAfter time.Duration) Fault {
	if retryAfter > 0 {
		return Fault{kind: kindRateAfter, wait: retryAfter}
	}
	return Fault{kind: kindRate}
}

// InternalError answers 500 with a JSON error.
func InternalError(when When) Fault { return Fault{kind: kindInternal, when: when} }

// BadGateway answers 502 with an HTML page, as some proxies do.
func BadGateway(when When) Fault { return Fault{kind: kindGateway, when: when} }

// ErrorObject answers 200 with {"error":text}, even to a batch, and executes
// nothing.
func ErrorObject(text string) Fault { return Fault{kind: kindError, text: text} }

// NotJSON answers 200 with a line of text, as some proxies do.
func NotJSON(when When) Fault { return Fault{kind: kindNotJSON, when: when} }

// WrongType executes and changes the JSON type of each result: an integer
// becomes a string, an array an integer, anything else an array. Errors stay.
func WrongType() Fault { return Fault{kind: kindType, when: AfterExec} }

// ShortResult executes and leaves out the last element of each array among the
// results. If no result is an array, each becomes an empty one.
func ShortResult() Fault { return Fault{kind: kindShort, when: AfterExec} }

// LongResult executes and repeats the last element of each array among the
// results; an empty array gets a 0. If no result is an array, each becomes an
// array of itself, twice.
func LongResult() Fault { return Fault{kind: kindLong, when: AfterExec} }

// ShortBatch executes and leaves out the last answer of a pipeline or a
// transaction. For a single command it is ShortResult.
func ShortBatch() Fault { return Fault{kind: kindFewer, when: AfterExec} }

// LongBatch executes and repeats the last answer of a pipeline or a
// transaction. For a single command it is LongResult.
func LongBatch() Fault { return Fault{kind: kindMore, when: AfterExec} }

// HugeBody executes and answers with a result that is one string of n bytes. It
// does not announce the length.
func HugeBody(n int64) Fault { return Fault{kind: kindHuge, when: AfterExec, n: n} }

// Redirect answers 307 with this Location header and executes nothing.
func Redirect(location string) Fault { return Fault{kind: kindRedirect, text: location} }

// Trickle executes and sends the body one byte at a time, with a pause before
// each.
func Trickle(pause time.Duration) Fault {
	return Fault{kind: kindTrickle, when: AfterExec, wait: pause}
}

// CommandError executes nothing and answers each command with the error reply
// text: a single command with status 400, a batch with 200. A database without
// memory refuses only some commands: see [Server.SetFull].
func CommandError(text string) Fault { return Fault{kind: kindCommand, text: text} }

// lostThenError executes and closes the connection without an answer. The next
// request with the same commands, which is a retry, meets CommandError(text).
func lostThenError(text string) Fault {
	return Fault{kind: kindLost, when: AfterExec, text: text}
}

// NoPermission refuses each command of this name with NOPERM, like a Redis
// whose token may not use it on that key. It executes the other commands. A
// transaction with a refused command is discarded.
func NoPermission(command string) Fault {
	return Fault{kind: kindNoPerm, when: AfterExec, text: command}
}

// interim executes and sends n interim answers with status 103 before the real
// answer.
func interim(n int64) Fault { return Fault{kind: kindInterim, when: AfterExec, n: n} }

// Twice executes and sends the whole answer twice, in one packet or, if later is
// above 0, with this pause. The connection stays open, but the server answers no
// more requests on it: a client that uses it again takes the second answer for that
// to its next request. After a pause no client can notice the mistake. Therefore
// EveryFault returns only Twice(0).
func Twice(later time.Duration) Fault {
	if later > 0 {
		return Fault{kind: kindTwiceLate, when: AfterExec, wait: later}
	}
	return Fault{kind: kindTwice, when: AfterExec}
}

// closes executes and answers with this Connection header. It should name close
// in some spelling: "CLOSE", "keep-alive, close". The connection stays open
// until the client closes it or sends another request. The other request is not
// executed.
func closes(connection string) Fault {
	return Fault{kind: kindCloses, when: AfterExec, text: connection}
}

// earlyRefusal answers 413 and leaves the connection open. It never reads the
// body. InjectWrites and the function of InjectFunc choose a fault after the
// body was read. If it is an earlyRefusal, it strikes the next request instead.
func earlyRefusal() Fault { return Fault{kind: kindEarly} }

// Late executes, and answers after this time.
func Late(by time.Duration) Fault { return Fault{kind: kindLate, when: AfterExec, wait: by} }

// LateExec closes the connection without an answer, and executes after this
// time. Other requests may run before that.
func LateExec(by time.Duration) Fault { return Fault{kind: kindLateExec, wait: by} }

// Evict deletes the keys of the request's commands and then executes them, as
// if Redis had just evicted the keys. EveryFault does not include it, because
// it changes which answer is right.
func Evict() Fault { return Fault{kind: kindEvict, when: AfterExec} }

// EveryFault returns one fault for each String except "evict" and "twice-late",
// with small parameters, for tests with random faults. The redirect leads to a
// host that does not exist. Four are in this list alone: "interim" sends interim
// answers before the real one, "closes" announces the end of the connection,
// "early-refusal" answers 413 without reading the body, and "lost-then-error"
// executes without an answer and refuses the retry, whenever it comes, unless Inject()
// takes that back.
func EveryFault() []Fault {
	return []Fault{
		Drop(BeforeExec), Drop(AfterExec), Stall(BeforeExec), Stall(AfterExec),
		CutBody(5), RateLimit(0), RateLimit(time.Second),
		InternalError(BeforeExec), InternalError(AfterExec),
		BadGateway(BeforeExec), BadGateway(AfterExec),
		ErrorObject("ERR injected"), NotJSON(BeforeExec), NotJSON(AfterExec),
		WrongType(), ShortResult(), LongResult(), ShortBatch(), LongBatch(),
		HugeBody(64 << 10), Redirect("http://elsewhere.invalid/"),
		Trickle(100 * time.Microsecond),
		CommandError(string(database.ErrFull)), lostThenError(string(database.ErrFull)),
		NoPermission("BITFIELD"), interim(7), Twice(0),
		closes("keep-alive, CLOSE"), earlyRefusal(), Late(time.Millisecond),
		LateExec(time.Millisecond),
	}
}

// String returns the kind, such as "trickle", and the When if the fault takes
// one: "drop-after-exec". Injected counts by it. It leaves out other
// parameters.
func (f Fault) String() string {
	switch f.kind {
	case "":
		return string(kindNone)
	case kindDrop, kindStall, kindInternal, kindGateway, kindNotJSON:
		return fmt.Sprintf("%s-%s", f.kind, f.when)
	}
	return string(f.kind)
}

// Executes reports whether the commands of the request run before the client
// has its answer or has lost its connection. It is true for NoPermission,
// although some commands are refused, and false for LateExec, because they run
// later.
func (f Fault) Executes() bool { return f.kind == "" || f.when == AfterExec }

// String returns "before-exec" or "after-exec".
func (w When) String() string {
	if w == AfterExec {
		return "after-exec"
	}
	return "before-exec"
}

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

// faultQueue chooses the fault of each request. The zero value is ready.
type faultQueue struct {
	choosing sync.Mutex // one request at a time, also while draw runs

	mu       sync.Mutex // not held while draw runs, which may inject
	queue    []Fault
	writes   []Fault // for requests that write
	draw     func(n int64, r RequestInfo) Fault
	drawn    int64
	repeated map[string]Fault // for the next request with the same commands
	injected map[string]int64
}

// early takes the next fault from the queue if it is an earlyRefusal, and
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
	q.choosing.Lock()
	defer q.choosing.Unlock()
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
		f, q.writes = q.afterBody(q.writes[0]), q.writes[1:]
	case len(q.queue) > 0:
		f, q.queue = q.queue[0], q.queue[1:]
	case q.draw != nil:
		q.drawn++
		f = q.afterBody(q.drawNow(r))
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

// drawNow calls draw.
func (q *faultQueue) drawNow(r RequestInfo) Fault {
	draw, n := q.draw, q.drawn
	q.mu.Unlock()
	defer q.mu.Lock() // also if draw panics
	return draw(n, r)
}

// afterBody returns the fault of a request whose body has been read. It is too late
// for an earlyRefusal, which therefore waits for the next request.
func (q *faultQueue) afterBody(f Fault) Fault {
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
