package simulation

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Events of one instant have no order. A run depends only on its seed if each
// event has an instant of its own. An instant's remainder, in units, says which
// kind of event it is for. Goroutines that may run at once take instants of
// different kinds: two servers, a client and a server, two callers. No timeout
// of a client is near a multiple of a unit, so it ends at none of these
// instants.
const unit = 1019 // nanoseconds

// The remainders.
const (
	byServer   = 0  // something sent by a server arrives; there are up to two servers
	byClient   = 2  // something sent by a client arrives
	byClock    = 4  // a process goes on after a freeze
	byFault    = 5  // on this side of byClient, a server goes on after a fault's pause
	byObserver = 8  // an observer returns
	callers    = 20 // the first of those of callers
)

// A timeline gives the acts of a run their instants, and tells its story.
type timeline struct {
	begin    time.Time
	restless bool        // see yield
	twoWays  atomic.Bool // the seed can run in another way

	book  sync.Mutex
	trace []string
	taken map[int64]bool // the instants of plan
	acts  map[int]act    // by the server, and everywhere for the history
}

func newTimeline() *timeline {
	return &timeline{begin: time.Now(), taken: make(map[int64]bool), acts: make(map[int]act)}
}

// plan returns the first free instant of a class, not before at, and takes it.
func (n *timeline) plan(class int64, at time.Time) time.Time {
	at = nextOf(class, at)
	n.book.Lock()
	defer n.book.Unlock()
	for n.taken[at.UnixNano()] {
		at = at.Add(unit)
	}
	n.taken[at.UnixNano()] = true
	return at
}

// until returns the time until such an instant, after d.
func (n *timeline) until(class int64, d time.Duration) time.Duration {
	return time.Until(n.plan(class, time.Now().Add(max(d, 1))))
}

// after calls f at such an instant, after d.
func (n *timeline) after(class int64, d time.Duration, f func()) {
	time.AfterFunc(n.until(class, d), f)
}

// everywhere is the place of the history's beginnings and ends.
const everywhere = -1

// An act is something for which its actor must be alone at that instant.
type act struct {
	at  time.Time
	who any // a worker, or a pipe
}

// alone notes an act in a place: a server, or everywhere. If another did
// something there at the same instant, the run does not depend on its seed
// alone.
func (n *timeline) alone(place int, who any) {
	now := time.Now()
	n.book.Lock()
	last := n.acts[place]
	n.acts[place] = act{now, who}
	n.book.Unlock()
	p, ok := last.who.(interface{ isBroken() bool })
	if last.who != who && last.at.Equal(now) && !(ok && p.isBroken()) {
		n.runsInTwoWays("two acts at one instant")
	}
}

// runsInTwoWays notes why the seed can run in another way.
func (n *timeline) runsInTwoWays(why string) {
	if !n.twoWays.Swap(true) {
		n.note("the seed can run in another way: %s", why)
	}
}

// yield lets other goroutines go first, now and then, in a restless run. If two
// can act at one instant, they then act in both orders.
func (n *timeline) yield() {
	if n.restless {
		for range rand.IntN(3) {
			runtime.Gosched()
		}
	}
}

// nextOf returns the first instant of a class that is not before at.
func nextOf(class int64, at time.Time) time.Time {
	return at.Add(time.Duration(((class-at.UnixNano())%unit + unit) % unit))
}

// lateness is upTo for the pause of a server's fault.
func lateness(rng *rand.Rand, d time.Duration) time.Duration {
	return upTo(rng, d)/unit*unit + byFault
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(1 + rng.Int64N(int64(d)))
}

// note records a fault for the report of a failed seed.
func (n *timeline) note(format string, args ...any) {
	n.book.Lock()
	defer n.book.Unlock()
	n.trace = append(n.trace, fmt.Sprintf("%12v  ", time.Since(n.begin))+fmt.Sprintf(format, args...))
}
