package bloom

import (
	"sync"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/upstash"
)

// A request is the operations of one record in one command, and their outcome.
// Requests come from a pool, which keeps large and small ones: a part of a
// batch needs about a megabyte, a single Add a few hundred bytes.
type request struct {
	rec   *record
	items []string // in the order of their operations
	cmd   upstash.BitField

	observer   *mirrorCall // learns from the answers; nil outside of a Mirror
	birthFound int64       // by a read, for the observer

	// Of a write.
	birth        int64    // the birth number that it carries
	asksSettled  bool     // it reads bit 127
	asksBirth    bool     // it reads the birth number
	compareBirth bool     // its caller compares the birth number
	script       bool     // it is a script
	ops          []string // the operations of the script
	opBytes      int      // their length in JSON
	earlier      bool     // an attempt before a resend may have run

	// Of a read, and of the reads of a write: the index at which the words of
	// each item, or of each part of an item, end.
	ends  []int
	words []cells.Word // blocked only

	shaped

	pos     []uint64 // of the last item
	answers []upstash.NullInt64

	// The outcome.
	reply upstash.Reply
	err   error
	found []bool // of a read, by item
	added []bool // of a write, by item
	wrote written

	one  [1]string // room for items
	self [1]*request
}

// observe lets the Mirror learn from the judged request: q.err says if it failed.
// primary is false if a region may have answered.
func (q *request) observe(primary bool) {
	if q.observer != nil {
		q.observer.learn(q, primary)
	}
}

// near reports whether the nearest region is asked first. A request without
// items is a Count: a region's number proves nothing, unlike its "yes".
func (q *request) near() bool {
	if len(q.items) == 0 && q.rec.reads == ReadsNearestFirst {
		return q.rec.client.ReadOnly()
	}
	return q.rec.near() && (q.observer == nil || !q.observer.primary)
}

var requestPool = sync.Pool{New: func() any { return new(request) }}

// newRequest takes a request from the pool; its user puts it back with free.
func newRequest(r *record) *request {
	q := requestPool.Get().(*request)
	q.rec, q.self[0] = r, q
	return q
}

func (q *request) free() {
	clear(q.items) // the caller's strings
	q.rec, q.observer, q.items, q.one[0] = nil, nil, q.items[:0], ""
	q.reply, q.err, q.wrote, q.earlier = upstash.Reply{}, nil, written{}, false
	q.shaped.reset()
	requestPool.Put(q)
}

// single makes the request one about a single item.
func (q *request) single(item string) *request {
	q.one[0] = item
	q.items = q.one[:]
	return q
}
