package proof

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/errtext"
	"github.com/upbloom/upbloom/upstash"
)

// Verb names what a call does: see verbs.go.
type Verb string

// Call is one call of a client. It travels to other processes as JSON.
type Call struct {
	Verb  Verb
	Items []string `json:",omitempty"`
	// Key is 0 or 1. Filters move between the two keys.
	Key int `json:",omitempty"`
	// Into are the handles of an AddIn or ExistsIn: see intoStrict.
	Into []int `json:",omitempty"`
	// Parts makes each item of a batch a request. For a Scalable it chooses a
	// handle with a lower limit of layers.
	Parts bool `json:",omitempty"`
	// Shard is the shard of a call from outside, or the filter of a Mixed.
	Shard int `json:",omitempty"`
	// Turned calls a Sharded with its clients in another order.
	Turned bool `json:",omitempty"`
	// More is how many further items a batch has, from the one numbered From on.
	// Nobody asks for them. Of a Fill, More is how many items the layer still
	// takes.
	More int `json:",omitempty"`
	From int `json:",omitempty"`
	// Other calls through the handles of another client.
	Other bool `json:",omitempty"`
	// Cause, if not 0, ends the call's context after CauseAfter. The cause is
	// then one of the errors of other calls.
	Cause      int           `json:",omitempty"`
	CauseAfter time.Duration `json:",omitempty"`
	// Command is how requests begin that a Silence or a Hold concerns, or empty.
	Command string `json:",omitempty"`
	// Aside has the client make its next calls before this one ends.
	Aside bool `json:",omitempty"`
	// Dead is true if the call's context has ended before.
	Dead bool `json:",omitempty"`
	// Wait is for Rest and Align.
	Wait time.Duration `json:",omitempty"`
	// Sure is set of a last call that must end well.
	Sure bool `json:"-"`
}

// Result is the outcome of a call, as its client saw it. It travels as JSON.
type Result struct {
	// End is how the call ended. Ends has that of each answer of an AddIn, an
	// ExistsIn or a Crowd.
	End  End
	Ends []End `json:",omitempty"`
	// Each is what each filter answered to an AddIn or ExistsIn.
	Each []Result `json:",omitempty"`
	// Yes holds the answers, one an item, or a single one.
	Yes []bool
	// States is set after a batch that failed.
	States []bloom.ItemState
	// Count is the number of set cells of Stats and Inspect, layers, items of
	// Overlap, new cells of a Load (-1 if unknown), refreshes of a Crowd or new
	// items of an AddSeq. Done is how many items of an AddSeq are in, and Unsure how many of
	// them may have been new. In is InFilter of its error.
	Count        int
	Done, Unsure int  `json:",omitempty"`
	In           bool `json:",omitempty"`
	// Counts are the set cells of each shard. Shards are the shards named by
	// the error.
	Counts, Shards []int `json:",omitempty"`
	// Cells are the cells of a Snapshot.
	Cells bits
	// Tried is the number of attempts that ran or may have run. Maybe is the
	// number of those without an answer.
	Tried, Maybe int
	// Refused is true if a BITFIELD was refused, or a transaction did not run in
	// full.
	Refused bool `json:",omitempty"`
	// Timed is true if the client knew the server's time throughout. NoTime is
	// true if it was refused a TIME.
	Timed  bool `json:",omitempty"`
	NoTime bool `json:",omitempty"`
	// LostTime is true if a TIME had no answer, Unlearned if the client had never had one.
	LostTime  bool `json:",omitempty"`
	Unlearned bool `json:",omitempty"`
	// Ahead is by how much the wall clock of the call's process was ahead in the end, and
	// Stood how long its monotonic clock had stood still.
	Ahead, Stood time.Duration `json:"-"`
	// Leapt is true if they were not as wrong at the beginning.
	Leapt bool `json:"-"`
	// Sent is how long before the end of the call its last attempt to send its
	// items ended.
	Sent time.Duration `json:",omitempty"`
	// Full is true if the error is bloom.ErrFull.
	Full bool `json:",omitempty"`
	// Early is true if the error allows items to be forgotten early.
	Early bool `json:",omitempty"`
	// Safe is true if upstash.SafeToRetry is true of the error. After a batch that
	// failed, ErrSafe is true if it is true of BatchError.Err, ErrUnsure if that is
	// bloom.ErrUncertain, ErrGone if that says that the filter went away, and ErrAnew
	// if it is bloom.ErrRecreated.
	Safe      bool `json:",omitempty"`
	ErrSafe   bool `json:",omitempty"`
	ErrUnsure bool `json:",omitempty"`
	ErrGone   bool `json:",omitempty"`
	ErrAnew   bool `json:",omitempty"`
	// NoTTL is true if the error is bloom.ErrNoTTL, beside others or not.
	NoTTL bool `json:",omitempty"`
	// Lost is true if the call's process ended before the call returned.
	Lost bool `json:",omitempty"`
	// Over is LoadResult.OverCapacity. Sized is true if the handle has a Capacity.
	Over  bool `json:",omitempty"`
	Sized bool `json:",omitempty"`
	// Alarm says what is wrong with a string.
	Alarm string `json:",omitempty"`
	// Questions are the requests of a call through a Mirror.
	Questions []Question `json:",omitempty"`
	// Err is the error's text, for people.
	Err string
}

// End is how a call ended.
type End string

const (
	Answered  End = "answered"
	Uncertain End = "uncertain"
	Missing   End = "no filter"
	Mismatch  End = "other data"
	Taken     End = "the other key holds something"
	Recreated End = "made again meanwhile"
	NoNumber  End = "saturated"
	Full      End = "full"
	NotRun    End = "did not run"
	Unknown   End = "may have run"
	Partly    End = "partly" // see States
)

// Texts checks the text of each error that ends a call.
var Texts errtext.Collector

// endOf returns the documented End of an error. cause is the cause of the
// call's context. What it wraps is about another call.
func endOf(err, cause error) End {
	Texts.Add(err)
	var other *bloom.MismatchError
	switch {
	case err == nil:
		return Answered
	case cause != nil && errors.Is(err, cause):
	case errors.Is(err, bloom.ErrUncertain): // with or without ErrNoTTL
		return Uncertain
	case errors.Is(err, bloom.ErrNoTTL):
		return Answered
	case errors.Is(err, upstash.ErrMaybeRepeated):
		return Uncertain
	case errors.Is(err, bloom.ErrNotFound):
		return Missing
	case errors.Is(err, bloom.ErrKeyExists):
		return Taken
	case errors.Is(err, bloom.ErrRecreated):
		return Recreated
	case errors.Is(err, bloom.ErrSaturated):
		return NoNumber
	case errors.Is(err, bloom.ErrFull):
		return Full
	case errors.As(err, &other), errors.Is(err, bloom.ErrNotFilter):
		return Mismatch
	}
	if upstash.SafeToRetry(err) {
		return NotRun
	}
	return Unknown
}

// String formats the call for the history of a failed test.
func (c Call) String() string {
	name := fmt.Sprintf("%s(%s)", c.Verb, strings.Join(c.Items, " "))
	c.Verb, c.Items = "", nil
	return name + fieldsOf(c)
}

// String formats the result for the history of a failed test.
func (r Result) String() string {
	end := string(r.End)
	r.End = ""
	return end + fieldsOf(r)
}

// fieldsOf lists the fields of a struct that are set.
func fieldsOf(of any) (text string) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			text += fmt.Sprintf(" %s:%v", v.Type().Field(i).Name, f)
		}
	}
	return text
}

// causes are errors of other calls. An errgroup would end its members' contexts
// with them. They say nothing about the call they end.
var causes = makeCauses()

func makeCauses() []error {
	// These are errors of a client that never sent anything.
	c, err := upstash.New("http://127.0.0.1:1", "no-token", upstash.WithReadOnly())
	if err != nil {
		panic(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, notSent := c.Do(ended, upstash.Cmd("PING"))
	_, refused := c.Do(context.Background(), upstash.Cmd("SET", "key", "value"))
	_ = c.Close()
	return []error{
		notSent, refused,
		foreignError{},
		bloom.ErrNotFound, bloom.ErrUncertain, bloom.ErrRecreated,
		&upstash.Error{StatusCode: 429, Message: "ERR max requests limit exceeded", Command: "GET"},
		&upstash.Error{StatusCode: 400, Message: "ERR no such command", Command: "GET"},
		upstash.NotSent(errors.New("no connection")),
	}
}

// foreignError has the SafeToRetry method of this module's errors.
type foreignError struct{}

func (foreignError) Error() string     { return "another call did not run" }
func (foreignError) SafeToRetry() bool { return true }

// cause returns the error that may end the call's context, or nil.
func (c Call) cause() error {
	if c.Cause == 0 {
		return nil
	}
	return causes[c.Cause-1]
}

// within returns the context of a call, and the cause it may end with.
func (c Call) within(ctx context.Context) (_ context.Context, stop func(), cause error) {
	if c.Dead {
		var cancel func()
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	if c.Cause == 0 {
		return ctx, func() {}, nil
	}
	cause = c.cause()
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.CauseAfter, func() { cancel(cause) })
	return ctx, func() { timer.Stop(); cancel(nil) }, cause
}

// A Question is what a call through a Mirror asked the server, with all attempts.
type Question struct {
	Asked, Sent, Ended time.Time // the first attempt, and the last
	Answered           bool      // the server answered, whatever it said
}

// String leaves out the day, which is always the same.
func (q Question) String() string {
	const clock = "15:04:05.000000"
	end := "lost"
	if q.Answered {
		end = "answered"
	}
	return q.Asked.Format(clock) + "-" + q.Ended.Format(clock) + " " + end
}
