package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// run is the run of one seed, inside of a bubble.
type run struct {
	scenario
	net     *network
	servers []*upstashtest.Server // one for each database
	history *proof.History
	timing  *timing
	tallies []*tally // of clients with a budget
	silence silence
}

const (
	key   = "key-of-the-filter"
	token = "token-of-the-server"
)

func (r *run) fates() fates { return r.net.fates }

func (r *run) open(clients []*upstash.Client) *proof.Session {
	return proof.NewSession(r.of, clients, key)
}

// outside changes the key in a way in which none of our clients does.
func (r *run) outside(c proof.Call) {
	r.history.Do("outside", "outside", c, func(c proof.Call) proof.Result {
		if c.Verb == proof.Silence || c.Verb == proof.Speak || c.Verb == proof.Hold {
			return r.silence.begin(c)
		}
		return r.of.Outside(r.servers, key, r.seed, c)
	})
}

// String tells the story of a seed.
func (r *run) String() string {
	return fmt.Sprintf("%T %+v %+v\n%s", r.of, r.of, r.draws, strings.Join(r.net.trace, "\n"))
}

// clientsOf returns the clients of a process, one for each server.
func (r *run) clientsOf(more ...upstash.Option) (clients []*upstash.Client, err error) {
	for _, at := range r.net.places {
		c, err := r.client(at, more...)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

func (r *run) client(at *place, more ...upstash.Option) (*upstash.Client, error) {
	scheme := "http://"
	if r.tls {
		scheme = "https://"
	}
	opts := append(
		r.spend(), upstash.WithTimeout(r.limit()),
		upstash.WithRetry(attempts-1), upstash.WithBackoff(0, 0), upstash.WithMaxResponse(32<<10),
	)
	if r.stale {
		opts = append(opts, upstash.WithoutSyncToken())
	}
	if r.queue {
		opts = append(opts, upstash.WithMaxConns(1))
	}
	return upstash.New(scheme+at.address().String(), token, append(opts, more...)...)
}

// limit is how long an attempt may take.
func (r *run) limit() time.Duration {
	switch {
	case r.patience > 0:
		return r.patience + timeout
	case r.slow:
		return 2 * slowTime
	}
	return timeout
}

// observe lets time pass between the requests of a Snapshot. A late reply to
// another call of the client may come then. It may panic at the script after an
// Add, which settles the TTL.
func (r *run) observe(ctx context.Context, e upstash.Event) {
	proof.Observe(ctx, e)
	if r.crossing && e.Label == "bloom.Snapshot" {
		r.net.linger()
	}
	if r.panics && e.Command == "EVAL" && e.Label == "bloom.Add" && e.Attempt == 1 && !r.net.isCalm() {
		panic(errObserver)
	}
}

var errObserver = errors.New("an observer has panicked")

// attempts is how many attempts a command has at most.
const attempts = 3

// survive makes the panic of an observer the outcome of its call. How many
// attempts the call made is not known.
func survive(r *proof.Result) {
	switch v := recover(); v {
	case nil:
	case errObserver:
		*r = proof.Result{End: proof.Unknown, Tried: attempts, Maybe: attempts, Err: errObserver.Error()}
	default:
		panic(v)
	}
}

// tally counts what one client did under its budget of retries.
type tally struct {
	tokens int // 0 if the budget is the default

	mu                 sync.Mutex
	retries, successes int
	err                error
}

// observe counts an attempt. An answer brings a tenth of a token back, and is
// observed before that.
func (t *tally) observe(e upstash.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Err == nil {
		t.successes++
	}
	if e.Attempt > 1 {
		t.retries++
	}
	if t.err == nil && 10*t.retries > 10*t.tokens+t.successes {
		t.err = fmt.Errorf("%d retries of a client after %d answers, with a budget of %d",
			t.retries, t.successes, t.tokens)
	}
}

// spend returns the options of a client with a budget, if the run has one.
func (r *run) spend() (opts []upstash.Option) {
	t := &tally{tokens: r.budget}
	if t.tokens == 0 {
		return []upstash.Option{upstash.WithObserver(r.observe)}
	}
	r.tallies = append(r.tallies, t)
	return []upstash.Option{
		door.WithRetryBudget(t.tokens).(upstash.Option), upstash.WithObserver(func(ctx context.Context, e upstash.Event) {
			t.observe(e)
			r.observe(ctx, e)
		}),
	}
}

// overspent returns an error if a client made more retries than its budget has.
func (r *run) overspent() error {
	for _, t := range r.tallies {
		if t.err != nil {
			return t.err
		}
	}
	return nil
}

// serve starts a server.
func (r *run) serve(at *place) (*upstashtest.Server, error) {
	s, err := upstashtest.Start(upstashtest.WithListener(at), upstashtest.WithToken(token))
	if err != nil {
		return nil, err
	}
	s.SetReplicaLag(r.lag)
	s.InjectFunc(func(n int64, q upstashtest.RequestInfo) upstashtest.Fault {
		f := r.fates().ofRequest(int(n)*len(r.net.places)+at.number, q.Commands[0])
		if r.late && strings.HasPrefix(q.Commands[0], "EVAL") {
			if rng, late := r.fates().at(placeScript, int(n)); late || rng.IntN(3) > 0 {
				f = upstashtest.LateExec(lateness(rng, 20*time.Millisecond))
			}
		}
		if r.unscripted && q.Commands[0] == "EVAL" {
			f = upstashtest.NoPermission("EVAL")
		}
		if rng, _ := r.fates().at(placeCrossing, int(n)); r.crossing && rng.IntN(4) < r.crosses(q.Commands[0]) {
			f = upstashtest.Late(lateness(rng, timeout))
		}
		if r.twice {
			f = r.fates().ofUpload(int(n), q.Commands[0], f)
		}
		if r.slow {
			f = r.fates().ofSlow(int(n), q.Commands[0], f)
		}
		if r.outages && slices.Contains(unusable, f) {
			f = upstashtest.Fault{}
		}
		if s, ok := r.silence.strikes(q.Commands[0]); ok {
			f = s
		}
		if f != (upstashtest.Fault{}) {
			r.net.note("request %d of server %d: %v", n, at.number, f)
		}
		return f
	})
	return s, nil
}

// scale is the time in which something begins that befalls a run once.
func (r *run) scale() time.Duration {
	if r.timing != nil {
		return 2 * r.timing.pane
	}
	return 2 * time.Second
}

// drawFull draws whether a database is full for a while, and which. Requests that
// are under way then run before or after.
func (r *run) drawFull() {
	rng := rand.New(rand.NewPCG(r.seed, 1<<46))
	if rng.IntN(5) > 0 {
		return
	}
	i := rng.IntN(len(r.servers))
	from := r.net.plan(byClock, r.net.begin.Add(upTo(rng, r.scale())))
	to := r.net.plan(byClock, from.Add(upTo(rng, r.scale())))
	r.net.note("server %d: full from %v to %v", i, from.Sub(r.net.begin), to.Sub(r.net.begin))
	for at, full := range map[time.Time]bool{from: true, to: false} {
		time.AfterFunc(time.Until(at), func() { r.servers[i].SetFull(full && !r.net.isCalm()) })
	}
}

// drawVanishing draws when all open connections vanish, if they do.
func (r *run) drawVanishing() {
	rng := rand.New(rand.NewPCG(r.seed, 1<<48))
	if rng.IntN(4) > 0 {
		return
	}
	for range 1 + rng.IntN(3) {
		at := r.net.plan(byClock, r.net.begin.Add(upTo(rng, r.scale())))
		time.AfterFunc(time.Until(at), r.net.vanish)
	}
}

// crosses returns how many replies in four to a command come after others.
func (r *run) crosses(command string) int {
	if r.crowded && command == "BITFIELD" {
		return 2
	}
	return 1
}

// unusable are faults that a client's observer does not notice: the package
// refuses the answer.
var unusable = []upstashtest.Fault{
	upstashtest.WrongType(), upstashtest.ShortResult(), upstashtest.LongResult(),
	upstashtest.ShortBatch(), upstashtest.LongBatch(),
}

// silence is the time in which the server answers no request.
type silence struct {
	mu    sync.Mutex
	fault upstashtest.Fault
	pass  int    // how many requests are answered before
	left  int    // how many have no answer then
	only  string // how they begin
}

// silences are the ways to say nothing of a filter. The first holds a request.
var silences = []upstashtest.Fault{
	upstashtest.Stall(upstashtest.BeforeExec), upstashtest.Drop(upstashtest.BeforeExec),
	upstashtest.Drop(upstashtest.AfterExec), upstashtest.BadGateway(upstashtest.BeforeExec),
	upstashtest.InternalError(upstashtest.AfterExec), upstashtest.RateLimit(0),
	upstashtest.CommandError("ERR max daily request limit exceeded. Limit: 10000, Usage: 10001."),
	upstashtest.CommandError("WRONGPASS invalid or missing auth token"),
	upstashtest.CommandError("LOADING Redis is loading the dataset in memory"),
}

// holds are the ways to keep an answer back, as long as a client waits or longer, or
// a request.
var holds = []upstashtest.Fault{
	upstashtest.Late(timeout*4/5/unit*unit + byFault), upstashtest.Stall(upstashtest.AfterExec),
	upstashtest.LateExec(timeout/3/unit*unit + byFault), upstashtest.Stall(upstashtest.BeforeExec),
}

// begin begins or ends a silence. One of one question loses all of its attempts, or
// only the first if that is not repeated.
func (s *silence) begin(c proof.Call) proof.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := c.From % len(silences)
	s.fault, s.left, s.pass, s.only = silences[i], c.More, 0, c.Command
	switch {
	case c.Verb == proof.Hold:
		s.fault, s.left, s.pass = holds[c.From], 1, c.More
	case c.More == 1 && i < 6:
		s.left = attempts
	}
	return proof.Result{End: proof.Answered}
}

// strikes returns what befalls a request.
func (s *silence) strikes(command string) (f upstashtest.Fault, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 || !strings.HasPrefix(command, s.only) {
		return f, false
	}
	if s.pass > 0 {
		s.pass--
		return f, false
	}
	s.left--
	return s.fault, true
}
