// Package simulation runs clients, a REST server and a Bloom filter in one
// bubble of testing/synctest: on a virtual clock, over a network in memory.
// What goes wrong, and when, comes from a seed: which byte is cut, which answer
// comes late, twice or on another connection, which interim answers come before
// it, what freezes, and how long the clients rest. Package proof checks the
// clients' answers. A failed seed shows its history, and most fail again:
//
//	go test ./internal/testkit/proof/simulation -run TestSeeds -v -simulation.seed=N
//
// -simulation.types names the types of filters, -simulation.themes the groups
// of verbs, or all of them: package proof lists them. With other types or
// themes a seed is another run.
//
// A seed can run in another way if two goroutines of a process go on at one
// instant and both send something, as two parts of a batch do. Such a run notes
// it. Its history is then what is left of it.
//
// The network makes only faults that a client can notice over HTTP/1.1. An
// answer without a request arrives before the next request on its connection,
// or never. Other tests run the code over real sockets.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/upstash"
)

// simulate runs a seed. It is called in its own bubble.
func simulate(sc scenario) (_ *run, err error) {
	r := &run{scenario: sc, history: proof.NewHistory(sc.of)}
	r.timing = newTiming(sc.of, rand.New(rand.NewPCG(sc.seed, 1<<43)))
	r.net = newNetwork(fates{sc.seed, sc.rate, sc.held, sc.patience, sc.of.Pane()}, nil, sc.of.Databases())
	if sc.tls {
		r.net.tls = serverTLS
	}
	r.net.old, r.net.restless, r.net.uses.limit = sc.old, sc.restless, r.limit()
	if sc.of.Base().Parallel > 1 && sc.queue {
		r.net.runsInTwoWays("two parts of a batch wait for one connection")
	}
	for _, at := range r.net.places {
		s, err := r.serve(at)
		if err != nil {
			return r, err
		}
		defer s.Close()
		r.servers = append(r.servers, s)
	}
	r.drawFull()
	r.drawVanishing()
	ctx := dialctx.With(context.Background(), r.net.dial)
	if r.foreign {
		r.outside(proof.Call{Verb: proof.Overwrite})
	}
	var clients []*upstash.Client // of all processes
	var workers []*worker
	for i := range sc.clients {
		ctx, opts := dialctx.With(ctx, r.net.dialer(i)), []upstash.Option(nil)
		open, clock := r.open, (*clock)(nil)
		if r.timing != nil {
			clock = newClock(r.net, i, r.timing)
			clock.pauses = sc.patience
			open = func(own []*upstash.Client) *proof.Session {
				s := r.open(own)
				s.LiveBy(clock.now)
				return s
			}
			ctx, opts = clock.under(ctx), append(opts, clock.option())
		}
		own, err := r.clientsOf(opts...)
		if err != nil {
			return r, err
		}
		clients = append(clients, own...)
		session := open(own)
		for j := range sc.workers {
			w := r.worker(i, j, session)
			w.number, w.ctx, w.process, w.clock = len(workers), ctx, i, clock
			if !sc.shared {
				w.session, w.handles = open(own), w.name
			}
			workers = append(workers, w)
		}
	}
	var running sync.WaitGroup
	for i, w := range workers {
		w.beside = workers[(i+1)%len(workers)]
		running.Go(w.work)
	}
	running.Wait()
	if err = r.finish(ctx); err == nil && sc.panics {
		r.settles(ctx, workers)
	}
	for _, c := range clients {
		_ = c.Close()
	}
	return r, errors.Join(err, r.overspent(), r.net.uses.err())
}

// worker makes one call after another.
type worker struct {
	r       *run
	name    string
	rng     *rand.Rand
	ctx     context.Context
	session *proof.Session
	handles string // the name of the session
	number  int    // of all workers
	process int
	beside  *worker // another one, if there is any
	clock   *clock  // of the process, of a type with clocks
}

func (r *run) worker(client, n int, s *proof.Session) *worker {
	return &worker{
		r: r, name: fmt.Sprintf("%d.%d", client, n), session: s, handles: fmt.Sprint(client),
		rng: rand.New(rand.NewPCG(r.seed, 1<<41+uint64(client*10+n))),
	}
}

func (w *worker) work() {
	if w.r.timing != nil && w.rng.IntN(3) == 0 { // others have begun long ago
		w.sleep(upTo(w.rng, 8*w.r.timing.pane))
	}
	for i := range w.r.calls {
		w.sleep(w.rest())
		if w.r.lag > 0 && w.name == "0.0" && i == w.r.caught {
			for _, server := range w.r.servers {
				server.CatchUp()
			}
		}
		w.one()
	}
}

// rest is the time between two calls. It is short, or long enough for the
// process to have been frozen.
func (w *worker) rest() time.Duration {
	if w.r.timing != nil {
		return w.r.timing.rest(w.rng)
	}
	d := upTo(w.rng, 2*time.Millisecond)
	if w.rng.IntN(12) == 0 && !w.r.crowded {
		d += upTo(w.rng, 90*time.Second)
	}
	return d
}

func (w *worker) one() {
	limit := 2 * time.Second
	if w.rng.IntN(2) == 0 { // longer than a script may take
		limit = 12 * time.Second
	}
	limit = upTo(w.rng, limit)
	if w.r.timing != nil {
		limit = w.r.timing.limit(w.rng)
	}
	if w.r.patience > 0 {
		limit = time.Hour
	}
	began := time.Now()
	var aside sync.WaitGroup
	n := w.number
	for _, c := range w.r.of.Draw(w.rng) {
		switch {
		case c.Verb == proof.Rest:
			w.sleep(c.Wait)
			began = time.Now()
		case c.Verb == proof.Align:
			pane := w.r.timing.pane
			passed := time.Duration(time.Now().UnixNano()) % pane
			w.sleep((c.Wait - passed + pane) % pane)
			began = time.Now()
		case c.Verb == proof.Jump:
			w.clock.jump(c.Wait)
		case c.Verb == proof.Freeze:
			w.clock.freeze(func() { w.sleep(c.Wait) })
			began = time.Now()
		case c.FromOutside():
			w.r.outside(c)
			began = time.Now()
		case c.Aside:
			n += mostCallers / 3
			other, until := *w, began.Add(limit)
			other.number, other.name = n, w.name+"'"
			aside.Go(func() {
				other.own()
				other.call(c, until)
			})
		default:
			w.call(c, began.Add(limit))
		}
	}
	aside.Wait()
}

// call makes a call, which may take until the worker's next instant after limit.
func (w *worker) call(c proof.Call, limit time.Time) {
	ctx, cancel := context.WithDeadline(w.ctx, w.next(limit))
	defer cancel()
	if c.Cause != 0 {
		c.CauseAfter = time.Until(w.next(time.Now().Add(c.CauseAfter)))
	}
	session := w.session
	if c.Other {
		session = w.beside.session
		ctx = context.WithValue(ctx, owner{}, w.beside.process)
	}
	w.r.net.alone(everywhere, w)
	w.r.history.Do(w.name, w.handles, c, func(c proof.Call) (res proof.Result) {
		defer w.r.net.alone(everywhere, w)
		defer w.own() // others may end their calls at this instant
		defer survive(&res)
		return session.Run(ctx, c)
	})
}

// finish ends the faults, waits, and makes the last calls.
func (r *run) finish(ctx context.Context) error {
	for _, s := range r.servers {
		s.InjectFunc(nil)
		s.SetFull(false)
	}
	r.net.heal()
	time.Sleep(10 * time.Second)
	clients, err := r.clientsOf()
	if err != nil {
		return err
	}
	for i, c := range clients {
		defer c.Close()
		r.servers[i].CatchUp()
	}
	return proof.Finish(ctx, r.of, r.history, r.servers, key, r.open(clients))
}

// settles makes the clients' own handles settle the TTL of a new filter, whatever
// befell them before. The look-up tells them that other data are gone.
func (r *run) settles(ctx context.Context, workers []*worker) {
	done := make(map[string]bool)
	for _, w := range workers {
		if done[w.handles] {
			continue
		}
		done[w.handles] = true
		r.outside(proof.Call{Verb: proof.Clear})
		for _, v := range []proof.Verb{proof.Exists, proof.Add} {
			c := proof.Call{Verb: v, Items: []string{"item-at-last"}}
			r.history.Do(w.handles, w.handles, c, func(c proof.Call) proof.Result { return w.session.Run(ctx, c) })
		}
		r.outside(proof.Call{Verb: proof.HasTTL})
	}
}

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

// mostCallers is three times the number of workers: each may make two calls aside.
const mostCallers = 24
