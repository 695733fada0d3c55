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
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// scenario is drawn from a seed. The fates are drawn from it too, but
// separately.
type scenario struct {
	of proof.Type
	draws
}

// draws is the rest of a scenario.
type draws struct {
	seed    uint64
	clients int
	workers int // of each client
	calls   int // of each worker
	rate    int
	tls     bool
	foreign bool // another program's data is there first
	shared  bool // the workers of a client share its handles
	lag     int  // how many writes the nearest region is behind
	caught  int  // before this call of a worker the region catches up, and is stuck again
	stale   bool // clients send no sync token
	old     bool // the server knows no flags in scripts

	late       bool          // two scripts in three run late
	unscripted bool          // the token may not run scripts
	held       bool          // one BITFIELD in four waits longer than its client
	crossing   bool          // replies come after others
	crowded    bool          // no client rests long
	slow       bool          // one TIME in two is as late as it may be
	patience   time.Duration // how long clients wait for an answer, or 0
	watched    bool          // handles have a WarnFill
	budget     int           // WithRetryBudget, or 0
	queue      bool          // the workers of a client wait for its only connection

	restless bool // see yield; it is not drawn
}

// newScenario draws the scenario of a seed, with one of the types.
func newScenario(seed uint64, types []string, themes proof.Theme) scenario {
	rng := rand.New(rand.NewPCG(seed, 1<<40))
	s := scenario{of: proof.DrawType(rng, types[seed%uint64(len(types))], themes)}
	s.draws = draws{
		seed:    seed,
		clients: 1 + rng.IntN(3), workers: 1 + rng.IntN(2), calls: 3 + rng.IntN(4),
		rate:    []int{0, 5, 10, 15, 20}[rng.IntN(5)],
		tls:     rng.IntN(8) == 0 && serverTLS != nil,
		foreign: rng.IntN(5) == 0, shared: rng.IntN(2) == 0,
	}
	lags := false
	switch f := s.of.(type) {
	case *proof.Filters:
		if s.watched = f.Watch; s.watched && rng.IntN(2) == 0 { // who share a handle
			s.workers, s.shared = 2, true
		}
		lags, s.old, s.unscripted = f.Lag, f.Themes&proof.OldServer != 0, f.NoScripts
		s.held = f.Slow
		if f.Slow || f.Themes&proof.Mirrors != 0 && rng.IntN(2) == 0 { // who share a Mirror
			s.workers, s.shared = 2, true
		}
		if f.Slow { // only a long order of calls shows something
			s.clients, s.calls, s.rate = 1, 2*s.calls, min(s.rate, 5)
		}
	case *proof.Cuckoos:
		lags, s.old, s.calls = f.Lag, f.OldServer, s.calls+1
	case *proof.Scalables:
		lags, s.old, s.unscripted, s.late = f.Plain.Lag, rng.IntN(8) == 0, rng.IntN(10) == 0, f.Churn
		if s.watched = f.Watch; s.watched && rng.IntN(2) == 0 { // who share a handle
			s.workers, s.shared = 2, true
		}
	case *proof.Shardeds:
		lags, s.old = f.Plain.Lag, rng.IntN(8) == 0
	case *proof.Windows: // its calls need more time
		lags, s.slow, s.watched = f.Lag, f.Slow, f.Watch
		s.calls, s.foreign, s.rate = 2*s.calls, false, min(s.rate, 10)
		if rng.IntN(4) > 0 {
			s.clients, s.workers = s.clients+s.workers-1, 1
		}
		if s.slow {
			s.clients, s.workers = 2, 1
		}
		if f.Patient > 0 {
			s.clients, s.workers, s.rate = 3, 1, 10+10*rng.IntN(3)
			s.patience = time.Duration(f.Patient) * f.Pane()
		}
	}
	if lags {
		s.lag, s.stale = []int{1, 3, math.MaxInt}[rng.IntN(3)], rng.IntN(2) == 0
		s.caught = rng.IntN(s.calls)
	}
	f, ok := s.of.(*proof.Filters)
	if ok && f.Near {
		s.clients, s.workers, s.foreign, s.crossing, s.crowded = 2+rng.IntN(3), 2, false, true, rng.IntN(4) > 0
		s.stale = !f.Bare && !s.crowded && rng.IntN(4) == 0 // else its Snapshots have too many orders
		s.lag = []int{1, 2, 3, 5, 8, math.MaxInt}[rng.IntN(6)]
		if s.crowded {
			s.clients, s.calls = 2, 8+rng.IntN(4)
		}
	}
	s.queue = rng.IntN(8) == 0
	if !s.old && rng.IntN(8) == 0 {
		s.budget = 1 + rng.IntN(2)
	}
	if lags && !s.crossing && rng.IntN(2) == 0 {
		s.workers, s.crossing = 2, true
	}
	switch f := s.of.(type) {
	case *proof.Filters:
		f.Tokens = lags && !s.stale
	case *proof.Scalables:
		f.Plain.Tokens = lags && !s.stale
	}
	return s
}

// run is the run of one seed, inside of a bubble.
type run struct {
	scenario
	net     *network
	servers []*upstashtest.Server // one for each database
	history *proof.History
	timing  *timing
	tallies []*tally // of clients with a budget
}

const (
	timeout = 300 * time.Millisecond // of an attempt
	// slowTime is the longest delay with which an answer to TIME is still used.
	slowTime = 1900 * time.Millisecond
)

const (
	key   = "key-of-the-filter"
	token = "token-of-the-server"
)

// serverTLS is the server's TLS configuration. It is nil if the platform's
// clients cannot be made to trust it.
var serverTLS *tls.Config

// simulate runs a seed. It is called in its own bubble.
func simulate(sc scenario) (_ *run, err error) {
	r := &run{scenario: sc, history: proof.NewHistory(sc.of)}
	r.timing = newTiming(sc.of, rand.New(rand.NewPCG(sc.seed, 1<<43)))
	r.net = newNetwork(fates{sc.seed, sc.rate, sc.held, sc.patience, r.timing}, nil, proof.DatabasesOf(sc.of))
	if sc.tls {
		r.net.tls = serverTLS
	}
	r.net.old, r.net.restless = sc.old, sc.restless
	if sc.of.Parallel() > 1 {
		r.net.runsInTwoWays("batches send two parts at one instant")
	}
	if of, ok := sc.of.(proof.Watching); ok {
		of.OnWarning(r.net.linger)
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
	ctx := dialctx.With(context.Background(), r.net.dial)
	if r.foreign {
		r.outside(proof.Call{Verb: proof.Overwrite})
	}
	var running sync.WaitGroup
	var clients []*upstash.Client // of all processes
	workers := 0
	for i := range sc.clients {
		ctx, opts := ctx, []upstash.Option(nil)
		if r.timing != nil {
			clock := newClock(r.net, i, r.timing.pane)
			clock.pauses = sc.patience
			ctx, opts = clock.under(ctx), append(opts, clock.option())
		}
		own, err := r.clientsOf(opts...)
		if err != nil {
			return r, err
		}
		clients = append(clients, own...)
		session := r.open(own)
		for j := range sc.workers {
			w := r.worker(i, j, session)
			w.number, workers = workers, workers+1
			if !sc.shared {
				w.session, w.handles = r.open(own), w.name
			}
			ctx := lots.With(ctx, r.lots(i*10+j))
			running.Go(func() { w.work(ctx) })
		}
	}
	running.Wait()
	err = r.finish(lots.With(ctx, r.lots(atLast)))
	for _, c := range clients {
		_ = c.Close()
	}
	return r, errors.Join(err, r.overspent())
}

func (r *run) fates() fates { return r.net.fates }

// worker makes one call after another.
type worker struct {
	r       *run
	name    string
	rng     *rand.Rand
	session proof.Handles
	handles string // the name of the session
	number  int    // of all workers
}

func (r *run) worker(client, n int, s proof.Handles) *worker {
	return &worker{
		r: r, name: fmt.Sprintf("%d.%d", client, n), session: s, handles: fmt.Sprint(client),
		rng: rand.New(rand.NewPCG(r.seed, 1<<41+uint64(client*10+n))),
	}
}

// atLast is the number of the caller of the last calls.
const atLast = 99

// lots draws the random numbers by which a caller looks at a fill. Most looks
// are made.
func (r *run) lots(number int) func() float64 {
	rng := rand.New(rand.NewPCG(r.seed, 1<<45+uint64(number)))
	return func() float64 { return float64(rng.IntN(3) / 2) }
}

func (r *run) open(clients []*upstash.Client) proof.Handles {
	s, err := r.of.Open(clients, key)
	if err != nil {
		panic(err) // the Configs are constants
	}
	return s
}

func (w *worker) work(ctx context.Context) {
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
		w.one(ctx)
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

func (w *worker) one(ctx context.Context) {
	f := w.r.of
	if c, ok := f.DrawOutside(w.rng); ok {
		w.r.outside(c)
		return
	}
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
	for _, c := range f.Draw(w.rng) {
		switch c.Verb {
		case proof.Rest:
			w.sleep(c.Wait)
			began = time.Now()
			continue
		case proof.Align:
			w.session.Run(ctx, c)
			w.own()
			began = time.Now()
			continue
		}
		if c.FromOutside() {
			w.r.outside(c)
			continue
		}
		ctx, cancel := context.WithDeadline(ctx, w.next(began.Add(limit)))
		if c.Cause != 0 {
			c.CauseAfter = time.Until(w.next(time.Now().Add(c.CauseAfter)))
		}
		w.r.net.alone(everywhere, w)
		w.r.history.Do(w.name, w.handles, c, func(c proof.Call) proof.Result {
			defer w.r.net.alone(everywhere, w)
			defer w.own() // others may end their calls at this instant
			return w.session.Run(ctx, c)
		})
		cancel()
	}
}

// outside changes the key in a way in which none of our clients does.
func (r *run) outside(c proof.Call) {
	r.history.Do("outside", "outside", c, func(c proof.Call) proof.Result {
		return r.of.Outside(r.servers, key, r.seed, c)
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
	return r.of.Finish(ctx, r.history, r.servers, key, r.open(clients))
}

// String tells the story of a seed.
func (r *run) String() string {
	return fmt.Sprintf("%T %+v %+v\n%s", r.of, r.of, r.draws, strings.Join(r.net.trace, "\n"))
}
