//go:build !wasm

package systemtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Histories of one filter over real sockets: several handles in several
// processes, a REST server with faults in front of Redis or of the embedded
// database, and a proxy that cuts, delays and resets connections. Package proof
// checks the histories.

var (
	histories = flag.Int("linear.histories", 30, "how many histories to make on each database")
	themes    = flag.String("linear.themes", "moves,copies,counts,mirrors,writers,causes,oldserver",
		"the groups of verbs beside the plain ones; crowds need a clock on which callers begin at once")
	types = flag.String("linear.types", "filter,window,cuckoo,scalable,sharded", "the types of filters")
	first = flag.Uint64("linear.first", 1, "the seed of the first")
)

// TestLinearEmbedded checks histories of handles in three processes, with the
// embedded database.
func TestLinearEmbedded(t *testing.T) { check(t, &lab{}) }

// TestLinearRedis is TestLinearEmbedded with two servers in front of one Redis.
func TestLinearRedis(t *testing.T) { check(t, &lab{redis: testenv.Redis(t)}) }

func check(t *testing.T, l *lab) {
	l.themes, l.types = proof.ParseTheme(*themes), strings.Split(*types, ",")
	for range 2 {
		p, err := startProcess()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.stop(); err != nil {
				t.Errorf("the other process: %v", err)
			}
		})
		l.processes = append(l.processes, p)
	}
	const atOnce = 6 // most of them wait for timeouts
	var undecided atomic.Int32
	t.Run("histories", func(t *testing.T) {
		for i := range atOnce {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for n := i; n < *histories; n += atOnce {
					seed := *first + uint64(n)
					if err := l.check(seed); errors.Is(err, proof.ErrUndecided) {
						undecided.Add(1)
					} else if err != nil {
						t.Errorf("history %d: %v", seed, err)
					}
				}
			})
		}
	})
	proof.ReportUndecided(t, int(undecided.Load()), *histories)
}

// lab makes histories. It is safe for concurrent use.
type lab struct {
	redis     string // host:port, "" for the embedded database
	processes []*process
	themes    proof.Theme
	types     []string
}

// shortTTL expires while a history runs.
const shortTTL = 40 * time.Millisecond

// run makes one history.
type run struct {
	lab     *lab
	seed    uint64
	rng     *rand.Rand
	of      proof.Type
	target  target
	servers []*upstashtest.Server
	proxy   *proxy
	history *proof.History
	rate    int

	mu sync.Mutex // guards faults
	fr *rand.Rand
}

// check draws and makes a history, and returns what is wrong with it.
func (l *lab) check(seed uint64) error {
	r := &run{lab: l, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), fr: rand.New(rand.NewPCG(seed, 1))}
	r.rate = []int{0, 5, 15, 25}[r.rng.IntN(4)]
	name := l.types[seed%uint64(len(l.types))]
	r.of = proof.DrawType(r.rng, name, l.themes)
	short := false
	b := r.of.Base()
	b.Lag, b.ReadsNearest = false, false
	switch f := r.of.(type) {
	case *proof.Filters:
		f.TTL = []time.Duration{0, time.Hour, time.Hour, shortTTL}[r.rng.IntN(4)]
		short = f.TTL == shortTTL
	case *proof.Shardeds:
		f.Spread = 1 // there is one database
	}
	text, err := json.Marshal(r.of)
	if err != nil {
		return err
	}
	r.target = target{
		Token: "token-of-the-history", Key: "proof:" + strconv.FormatUint(seed, 10), Type: name, Of: text,
	}
	r.history = proof.NewHistory(r.of)
	defer r.close()
	if err := r.start(); err != nil {
		return err
	}
	begin := time.Now()
	if err := r.work(); err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	if short {
		r.history.MayExpire(1 + int(time.Since(begin)/(shortTTL-time.Millisecond)))
	}
	return r.history.Check()
}

// start starts two REST servers in front of one Redis, or one with a database
// in memory, and a proxy.
func (r *run) start() error {
	opts := []upstashtest.Option{upstashtest.WithToken(r.target.Token)}
	n := 1
	if r.lab.redis != "" {
		opts = append(opts, upstashtest.WithRedis(r.lab.redis))
		n = 2
	}
	for range n {
		s, err := upstashtest.Start(opts...)
		if err != nil {
			return err
		}
		s.InjectFunc(r.fault)
		r.servers = append(r.servers, s)
	}
	u, err := url.Parse(r.servers[0].URL)
	if err != nil {
		return err
	}
	r.proxy, err = newProxy(u.Host, r.seed)
	return err
}

func (r *run) close() {
	if r.proxy != nil {
		r.proxy.close()
	}
	for _, s := range r.servers {
		s.Close()
	}
}

// fault draws the fault of a request.
func (r *run) fault(int64, upstashtest.RequestInfo) upstashtest.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fr.IntN(100) >= r.rate {
		return upstashtest.Fault{}
	}
	all := upstashtest.EveryFault()
	return all[r.fr.IntN(len(all))]
}

// work has several workers make calls at the same time, in this process and in
// others, directly and through the proxy.
func (r *run) work() error {
	var running sync.WaitGroup
	workers := 2 + r.rng.IntN(3)
	for i := range workers {
		t := r.target
		switch i % 3 {
		case 0:
			t.URL = r.servers[0].URL
		case 1:
			t.URL = r.proxy.url()
		default:
			t.URL = r.servers[len(r.servers)-1].URL
		}
		w, err := r.worker(i, t)
		if err != nil {
			return err
		}
		calls := 3 + r.rng.IntN(4)
		running.Go(func() {
			defer w.close()
			for range calls {
				w.one()
			}
		})
	}
	running.Wait()
	return nil
}

// worker makes one call after another.
type worker struct {
	r     *run
	name  string
	rng   *rand.Rand
	do    func(c proof.Call) proof.Result
	close func()
}

func (r *run) worker(i int, t target) (*worker, error) {
	w := &worker{r: r, rng: rand.New(rand.NewPCG(r.seed, uint64(i+2)))}
	if n := len(r.lab.processes); n > 0 && i%2 == 1 {
		p := r.lab.processes[(i/2)%n]
		w.name = fmt.Sprintf("%d, other process", i)
		o := order{Target: t, Worker: strconv.Itoa(i)}
		w.do = func(c proof.Call) proof.Result {
			o := o
			o.Call = c
			return p.do(o)
		}
		w.close = func() { p.do(o) }
		return w, nil
	}
	h, err := open(t)
	if err != nil {
		return nil, err
	}
	w.name, w.do, w.close = strconv.Itoa(i), h.run, h.close
	return w, nil
}

func (w *worker) one() {
	if w.rng.IntN(3) == 0 {
		time.Sleep(time.Duration(w.rng.IntN(int(3 * time.Millisecond))))
	}
	for _, c := range w.r.of.Draw(w.rng) {
		switch {
		case c.Verb == proof.Rest, c.Verb == proof.Align: // for histories on a virtual clock
		case c.FromOutside():
			w.r.outside(c)
		default:
			w.r.history.Do(w.name, w.name, c, w.do)
		}
	}
}

// outside changes the key as no client of ours does.
func (r *run) outside(c proof.Call) {
	r.history.Do("outside", "outside", c, func(c proof.Call) proof.Result {
		return r.of.Outside(r.servers, r.target.Key, r.seed, c)
	})
}

// finish ends the faults and makes the last calls.
func (r *run) finish() error {
	for _, s := range r.servers {
		s.InjectFunc(nil)
	}
	r.proxy.heal(fin)
	c := r.servers[0].Client()
	defer c.Close()
	s := proof.NewSession(r.of, []*upstash.Client{c}, r.target.Key)
	if err := proof.Finish(context.Background(), r.of, r.history, r.servers, r.target.Key, s); err != nil {
		return fmt.Errorf("%w\n%v", err, r.history)
	}
	keys := []string{"DEL", r.target.Key}
	for i := range 5 { // shards, and second keys
		keys = append(keys, r.target.Key+":"+strconv.Itoa(i))
	}
	_, err := r.servers[0].Exec(keys...)
	return err
}

// target is the filters of a session, and the session's URL. It travels to
// other processes as JSON. Of is a proof.Type with the name Type.
type target struct {
	URL, Token, Key string
	Type            string
	Of              json.RawMessage
}

// The limits are far longer than an answer over the loopback interface takes.
// On a loaded machine more attempts end without an answer, but no history
// becomes wrong.
const (
	attemptLimit = 25 * time.Millisecond
	callLimit    = 80 * time.Millisecond
)

// handle makes calls of a session.
type handle struct {
	client  *upstash.Client
	session *proof.Session
}

func open(t target) (*handle, error) {
	c, err := upstash.New(t.URL, t.Token, upstash.WithObserver(proof.Observe),
		upstash.WithTimeout(attemptLimit), upstash.WithRetry(2),
		upstash.WithBackoff(time.Millisecond, 4*time.Millisecond), upstash.WithMaxResponse(32<<10))
	if err != nil {
		return nil, err
	}
	of, err := proof.ReadType(t.Type, t.Of)
	if err != nil {
		return nil, err
	}
	return &handle{c, proof.NewSession(of, []*upstash.Client{c}, t.Key)}, nil
}

func (h *handle) run(c proof.Call) proof.Result {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	return h.session.Run(ctx, c)
}

func (h *handle) close() { _ = h.client.Close() }
