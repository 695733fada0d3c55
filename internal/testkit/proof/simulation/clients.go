package simulation

import (
	"context"
	"fmt"
	"sync"

	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/upstash"
)

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
	limit := timeout
	if r.slow {
		limit = 2 * slowTime
	}
	if r.patience > 0 {
		limit = r.patience + timeout
	}
	opts := append(
		r.spend(), upstash.WithTimeout(limit),
		upstash.WithRetry(2), upstash.WithBackoff(0, 0), upstash.WithMaxResponse(32<<10),
	)
	if r.stale {
		opts = append(opts, upstash.WithoutSyncToken())
	}
	if r.queue {
		opts = append(opts, upstash.WithMaxConns(1))
	}
	return upstash.New(scheme+at.address().String(), token, append(opts, more...)...)
}

// observe lets time pass between the requests of a Snapshot. A late reply to
// another call of the client may come then.
func (r *run) observe(ctx context.Context, e upstash.Event) {
	proof.Observe(ctx, e)
	if r.crossing && e.Label == "bloom.Snapshot" {
		r.net.linger()
	}
}

// tally counts what one client did under its WithRetryBudget.
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
		upstash.WithRetryBudget(t.tokens), upstash.WithObserver(func(ctx context.Context, e upstash.Event) {
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
