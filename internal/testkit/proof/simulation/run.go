// Package simulation runs clients, a REST server and a Bloom filter in one
// bubble of testing/synctest: on a virtual clock, over a network in memory.
// What goes wrong, and when, comes from a seed: which byte is cut, which answer
// comes late, twice or on another connection, which interim answers come before
// it, what freezes, and how long the clients rest. Package proof checks the
// answers that they got. A seed that failed fails again:
//
//	go test ./internal/testkit/proof/simulation -run TestSeeds -v -simulation.seed=N
//
// The network makes no fault that a client cannot notice over HTTP/1.1. An
// answer without a request arrives before the next request on its connection,
// or never. The code that works on real sockets is tested elsewhere.
package simulation

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// scenario is drawn from a seed. So are the fates, which are not part of it.
type scenario struct {
	seed    uint64
	cfg     bloom.Config
	small   bloom.Config // as cfg, with batches of several requests
	clients int
	workers int // of each client
	calls   int // of each worker
	rate    int
	tls     bool
	foreign bool // another program's data is there first
}

func newScenario(seed uint64) scenario {
	rng := rand.New(rand.NewPCG(seed, 1<<40))
	sizes := []bloom.Config{{Bits: 53, Hashes: 2}, {Bits: 106, Hashes: 4}}
	s := scenario{
		seed: seed, cfg: sizes[rng.IntN(2)],
		clients: 1 + rng.IntN(3), workers: 1 + rng.IntN(2), calls: 3 + rng.IntN(4),
		rate: []int{0, 5, 10, 15, 20}[rng.IntN(5)],
		tls:  rng.IntN(8) == 0 && serverTLS != nil,
	}
	s.cfg.BatchParallel = 1
	if rng.IntN(2) == 0 {
		s.cfg.TTL = time.Hour
	}
	s.cfg.MustExist = rng.IntN(8) == 0
	s.small = s.cfg
	s.small.BatchBytes = 1
	s.foreign = rng.IntN(5) == 0
	return s
}

// run is the run of one seed, inside of a bubble.
type run struct {
	scenario
	net     *network
	server  *upstashtest.Server
	history *proof.History
}

const (
	key   = "key-of-the-filter"
	token = "token-of-the-server"
)

// serverTLS is the server's TLS configuration. It is nil on platforms on which
// the clients cannot be made to trust it.
var serverTLS *tls.Config

// simulate runs a seed. It is called in a bubble of its own.
func simulate(sc scenario) (*run, error) {
	history, err := proof.NewHistory(sc.cfg)
	if err != nil {
		return nil, err
	}
	r := &run{scenario: sc, history: history}
	r.net = newNetwork(fates{sc.seed, sc.rate}, nil)
	if sc.tls {
		r.net.tls = serverTLS
	}
	r.server, err = upstashtest.Start(upstashtest.WithListener(r.net), upstashtest.WithToken(token))
	if err != nil {
		return r, err
	}
	defer r.server.Close()
	r.server.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		f := r.fates().ofRequest(int(n))
		if f != (upstashtest.Fault{}) {
			r.net.note("request %d: %v", n, f)
		}
		return f
	})
	ctx := dialctx.With(context.Background(), r.net.dial)
	if r.foreign {
		r.outside(proof.Overwrite)
	}
	var running sync.WaitGroup
	var clients []*upstash.Client
	for i := range sc.clients {
		c, err := r.client()
		if err != nil {
			return r, err
		}
		clients = append(clients, c)
		for j := range sc.workers {
			w := r.worker(fmt.Sprintf("%d.%d", i, j), c, uint64(i*10+j))
			running.Go(func() { w.work(ctx) })
		}
	}
	running.Wait()
	err = r.finish(ctx)
	for _, c := range clients {
		_ = c.Close()
	}
	return r, err
}

func (r *run) fates() fates { return r.net.fates }

func (r *run) client() (*upstash.Client, error) {
	scheme := "http://"
	if r.tls {
		scheme = "https://"
	}
	return upstash.New(scheme+address.String(), token,
		upstash.WithObserver(proof.Observe), upstash.WithTimeout(300*time.Millisecond),
		upstash.WithRetry(2), upstash.WithBackoff(0, 0), upstash.WithMaxResponse(32<<10))
}

// worker makes one call after another.
type worker struct {
	r     *run
	name  string
	rng   *rand.Rand
	whole *bloom.Filter // its batches are one request
	parts *bloom.Filter // its batches are several
}

func (r *run) worker(name string, c *upstash.Client, n uint64) *worker {
	w := &worker{r: r, name: name, rng: rand.New(rand.NewPCG(r.seed, 1<<41+n))}
	w.whole, w.parts = r.handle(c, r.cfg), r.handle(c, r.small)
	return w
}

func (r *run) handle(c *upstash.Client, cfg bloom.Config) *bloom.Filter {
	f, err := bloom.New(c, key, cfg)
	if err != nil {
		panic(err) // the Config is a constant
	}
	return f
}

func (w *worker) work(ctx context.Context) {
	for range w.r.calls {
		time.Sleep(w.rest())
		w.one(ctx)
	}
}

// rest is the time between two calls: short, or so long that a process might
// have been frozen meanwhile.
func (w *worker) rest() time.Duration {
	d := upTo(w.rng, 2*time.Millisecond)
	if w.rng.IntN(12) == 0 {
		d += upTo(w.rng, 90*time.Second)
	}
	return d
}

func (w *worker) one(ctx context.Context) {
	if c, ok := proof.DrawOutside(w.rng); ok {
		w.r.outside(c.Verb)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, upTo(w.rng, 2*time.Second))
	defer cancel()
	c := proof.Draw(w.rng)
	f, whole := w.whole, true
	if len(c.Items) > 1 && w.rng.IntN(3) == 0 {
		f, whole = w.parts, false
	}
	w.r.history.Do(w.name, c, whole, func(c proof.Call) proof.Result { return proof.Run(ctx, f, c) })
}

// outside changes the key as no client of ours does.
func (r *run) outside(v proof.Verb) {
	r.history.Do("outside", proof.Call{Verb: v}, true, func(c proof.Call) proof.Result {
		return proof.Outside(r.server, key, r.seed, c)
	})
}

// finish ends the faults, waits, and makes the last calls.
func (r *run) finish(ctx context.Context) error {
	r.server.InjectFunc(nil)
	r.net.heal()
	time.Sleep(10 * time.Second)
	c, err := r.client()
	if err != nil {
		return err
	}
	defer c.Close()
	return proof.Finish(ctx, r.history, r.server, key, r.handle(c, r.cfg))
}

// String is the story of a seed.
func (r *run) String() string {
	return fmt.Sprintf("%d clients with %d workers, %v, TLS %v, faults %d%%\n%s",
		r.clients, r.workers, r.cfg, r.tls, r.rate, strings.Join(r.net.trace, "\n"))
}
