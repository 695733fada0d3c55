// Package linear makes histories of one filter over real sockets. It has
// several handles in several processes, a REST server with faults in front of
// Redis or of the embedded database, and a proxy that cuts, delays and resets
// connections. Package proof checks the histories.
package linear

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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
	switch f := r.of.(type) {
	case *proof.Filters:
		f.Lag, f.Reads = false, 0
		f.TTL = []time.Duration{0, time.Hour, time.Hour, shortTTL}[r.rng.IntN(4)]
		short = f.TTL == shortTTL
	case *proof.Cuckoos:
		f.Lag, f.Reads = false, 0
	case *proof.Scalables:
		f.Plain.Lag, f.Plain.Reads = false, 0
	case *proof.Shardeds:
		f.Plain.Lag, f.Plain.Reads = false, 0
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
	f := w.r.of
	if c, ok := f.DrawOutside(w.rng); ok {
		w.r.outside(c)
		return
	}
	for _, c := range f.Draw(w.rng) {
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
	r.proxy.heal()
	c := r.servers[0].Client()
	defer c.Close()
	f := r.of
	s, err := f.Open([]*upstash.Client{c}, r.target.Key)
	if err != nil {
		return err
	}
	err = f.Finish(context.Background(), r.history, r.servers, r.target.Key, s)
	if err != nil {
		return fmt.Errorf("%w\n%v", err, r.history)
	}
	keys := []string{"DEL", r.target.Key}
	for i := range 5 { // shards, and second keys
		keys = append(keys, r.target.Key+":"+strconv.Itoa(i))
	}
	_, err = r.servers[0].Exec(keys...)
	return err
}
