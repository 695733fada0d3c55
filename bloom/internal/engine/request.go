package engine

import (
	"sync"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/upstash"
)

// A request is the operations of one record in one command, and their outcome.
// Requests come from a pool, which keeps large and small ones: a part of a
// batch needs about a megabyte, a single Add a few hundred bytes.
type Request struct {
	Rec   *Core
	Items []string // in the order of their operations
	Cmd   upstash.BitField

	Observer   Observer // learns from the answers; nil outside of a Mirror
	BirthFound int64    // by a read, for the observer

	// Of a write.
	Birth        int64    // the birth number that it carries
	asksSettled  bool     // it reads bit 127
	asksBirth    bool     // it reads the birth number
	compareBirth bool     // its caller compares the birth number
	script       bool     // it is a script
	Ops          []string // the operations of the script
	opBytes      int      // their length in JSON
	earlier      bool     // an attempt before a resend may have run

	// Of a read, and of the reads of a write: the index at which the words of
	// each item, or of each part of an item, end.
	Ends  []int
	Words []cells.Word // blocked only

	shaped

	Pos     []uint64 // of the last item
	Answers []upstash.NullInt64

	// The outcome.
	Reply upstash.Reply
	Err   error
	Found []bool // of a read, by item
	Added []bool // of a write, by item
	Wrote Written

	one  [1]string // room for items
	Self [1]*Request
}

// An observer learns from the judged answers to the requests of a call.
type Observer interface {
	Learn(q *Request, primary bool)
	WantsPrimary() bool // no region may answer
}

// observe lets the Mirror learn from the judged request: q.err says if it failed.
// primary is false if a region may have answered.
func (q *Request) observe(primary bool) {
	if q.Observer != nil {
		q.Observer.Learn(q, primary)
	}
}

// near reports whether the nearest region is asked first. A request without
// items is a Count: a region's number proves nothing, unlike its "yes".
func (q *Request) Near() bool {
	if len(q.Items) == 0 && q.Rec.NearestFirst {
		return q.Rec.Client.ReadOnly()
	}
	return q.Rec.near() && (q.Observer == nil || !q.Observer.WantsPrimary())
}

var requestPool = sync.Pool{New: func() any { return new(Request) }}

// newRequest takes a request from the pool; its user puts it back with free.
func NewRequest(r *Core) *Request {
	q := requestPool.Get().(*Request)
	q.Rec, q.Self[0] = r, q
	return q
}

func (q *Request) Free() {
	clear(q.Items) // the caller's strings
	q.Rec, q.Observer, q.Items, q.one[0] = nil, nil, q.Items[:0], ""
	q.Reply, q.Err, q.Wrote, q.earlier = upstash.Reply{}, nil, Written{}, false
	q.shaped.reset()
	requestPool.Put(q)
}

// single makes the request one about a single item.
func (q *Request) Single(item string) *Request {
	q.one[0] = item
	q.Items = q.one[:]
	return q
}
