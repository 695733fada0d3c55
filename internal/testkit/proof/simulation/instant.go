package simulation

import (
	"math/rand/v2"
	"runtime"
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
	byServer  = 0  // something sent by a server arrives; there are up to two servers
	byClient  = 2  // something sent by a client arrives
	byClock   = 4  // a process goes on after a freeze
	byFault   = 5  // on this side of byClient, a server goes on after a fault's pause
	byWarning = 8  // a WarnFill ends
	callers   = 20 // the first of those of callers
)

// plan returns the first free instant of a class, not before at, and takes it.
func (n *network) plan(class int64, at time.Time) time.Time {
	at = nextOf(class, at)
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.taken[at.UnixNano()] {
		at = at.Add(unit)
	}
	n.taken[at.UnixNano()] = true
	return at
}

// until returns the time until such an instant, after d.
func (n *network) until(class int64, d time.Duration) time.Duration {
	return time.Until(n.plan(class, time.Now().Add(max(d, 1))))
}

// after calls f at such an instant, after d.
func (n *network) after(class int64, d time.Duration, f func()) {
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
func (n *network) alone(place int, who any) {
	now := time.Now()
	n.mu.Lock()
	last := n.acts[place]
	n.acts[place] = act{now, who}
	n.mu.Unlock()
	p, ok := last.who.(*pipe)
	if last.who != who && last.at.Equal(now) && !(ok && p.broken.Load()) {
		n.runsInTwoWays("two acts at one instant")
	}
}

// runsInTwoWays notes why the seed can run in another way.
func (n *network) runsInTwoWays(why string) {
	if !n.twoWays.Swap(true) {
		n.note("the seed can run in another way: %s", why)
	}
}

// yield lets other goroutines go first, now and then, in a restless run. If two
// can act at one instant, they then act in both orders.
func (n *network) yield() {
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

const mostCallers = 8

// next returns the first instant after t of this worker's own. The order of the
// workers is drawn anew each time.
func (w *worker) next(t time.Time) time.Time {
	t = nextOf(0, t.Add(1))
	rng := rand.New(rand.NewPCG(w.r.seed, 1<<46+uint64(t.UnixNano()/unit)))
	return t.Add(callers + time.Duration((w.number+rng.IntN(mostCallers))%mostCallers))
}

// own waits for the next instant of the worker.
func (w *worker) own() { time.Sleep(time.Until(w.next(time.Now()))) }

// sleep waits for d, and for the worker's next instant.
func (w *worker) sleep(d time.Duration) {
	time.Sleep(d)
	w.own()
}
