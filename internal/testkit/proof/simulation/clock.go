package simulation

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// A clock is a process's idea of the time: a wall clock and a monotonic one.
// The wall clock may be wrong and may jump. The process may be frozen while it
// sends or reads. Its monotonic clock then runs on, as when a group of
// processes is frozen, or stands still, as when a machine is.
type clock struct {
	net           *network
	client        int
	pane, gap     time.Duration
	jumps, thaws  bool
	pauses        time.Duration // the longest pause before a request, or 0
	start, frozen time.Time

	mu     sync.Mutex
	rng    *rand.Rand
	sent   map[string]bool // the requests so far, of a client that pauses
	ahead  time.Duration   // of the wall clock
	lost   time.Duration   // of the monotonic clock
	frozes int             // running freezes that stop it
}

func newClock(n *network, client int, t *timing) *clock {
	c := &clock{
		net: n, client: client, pane: t.pane, gap: t.gap, start: time.Now(), sent: make(map[string]bool),
		rng: rand.New(rand.NewPCG(n.fates.seed, 1<<42+uint64(client))),
	}
	switch c.rng.IntN(4) {
	case 0:
		c.ahead = c.skew()
	case 1:
		c.ahead, c.jumps = c.skew(), true
	case 2:
		c.thaws = true
	}
	n.note("client %d: wall clock ahead by %v, jumps %v, process freezes %v", client, c.ahead, c.jumps, c.thaws)
	return c
}

// skew draws an error of a wall clock. One that is behind by the gap shows, after
// it, the time of the window's last turn.
func (c *clock) skew() time.Duration {
	if c.gap > 0 && c.rng.IntN(2) == 0 {
		return c.pane - c.gap - upTo(c.rng, 2*c.pane)
	}
	d := upTo(c.rng, []time.Duration{
		2 * time.Second, 10 * c.pane, 10 * c.pane, 5 * time.Hour, 100_000 * time.Hour,
	}[c.rng.IntN(5)])
	if c.rng.IntN(2) == 0 {
		return -d
	}
	return d
}

func (c *clock) wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now()
	if c.frozes > 0 {
		at = c.frozen
	}
	return at.Sub(c.start) - c.lost
}

// now is both clocks, for a Mirror.
func (c *clock) now() time.Time { return testenv.TwoClocks(c.wall(), c.elapsed()) }

// upset occasionally makes the wall clock jump, or freezes the process.
func (c *clock) upset() {
	c.mu.Lock()
	if c.jumps && c.rng.IntN(10) == 0 {
		c.ahead = c.skew()
		c.net.note("client %d: wall clock ahead by %v", c.client, c.ahead)
	}
	if !c.thaws || c.rng.IntN(15) != 0 {
		c.mu.Unlock()
		return
	}
	d := upTo(c.rng, []time.Duration{1500 * time.Millisecond, 2 * c.pane, 10 * c.pane}[c.rng.IntN(3)])
	stops := c.rng.IntN(2) == 0
	c.mu.Unlock()
	c.net.note("client %d: frozen for %v, monotonic clock stops %v", c.client, d, stops)
	pause := func() { time.Sleep(c.net.until(byClock, d)) }
	if stops {
		c.freeze(pause)
	} else {
		pause()
	}
}

// freeze stops the monotonic clock during a pause.
func (c *clock) freeze(pause func()) {
	c.mu.Lock()
	if c.frozes++; c.frozes == 1 {
		c.frozen = time.Now()
	}
	c.mu.Unlock()
	pause()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozes--; c.frozes == 0 {
		c.lost += time.Since(c.frozen)
	}
}

// jump sets the wall clock.
func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	c.net.note("client %d: wall clock ahead by %v", c.client, c.ahead)
}

// pause occasionally waits before a request is sent: for one that is sent again,
// and for a script, which turns a window, half of the time. The clocks run on.
func (c *clock) pause(request []byte) {
	if c.pauses == 0 {
		return
	}
	c.mu.Lock()
	often := 8
	if bytes.Contains(request, []byte("EVAL")) || c.sent[string(request)] {
		often = 2
	}
	c.sent[string(request)] = true
	d := time.Duration(0)
	if c.rng.IntN(often) == 0 {
		d = upTo(c.rng, c.pauses)
	}
	c.mu.Unlock()
	if d > 0 {
		c.net.note("client %d: a pause of %v", c.client, d)
		time.Sleep(c.net.until(byClock, d))
	}
}

// under returns a context under which connections belong to a process with this
// clock.
func (c *clock) under(ctx context.Context) context.Context {
	dial := dialctx.From(ctx)
	return dialctx.With(ctx, func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &frozenConn{conn.(dialctx.TryReader), c}, nil
	})
}

// frozenConn upsets the clock when its client sends, and when it reads.
type frozenConn struct {
	dialctx.TryReader
	clock *clock
}

func (c *frozenConn) Write(b []byte) (int, error) {
	if e, ok := c.TryReader.(*end); ok {
		e.asks()
	}
	c.clock.upset()
	c.clock.pause(b)
	return c.TryReader.Write(b)
}

func (c *frozenConn) Read(b []byte) (int, error) {
	n, err := c.TryReader.Read(b)
	if n == 0 {
		return n, err
	}
	c.clock.upset()
	if e, ok := c.TryReader.(*end); ok { // the client keeps the connection from now on
		e.p.net.uses.answers(e.p)
	}
	return n, err
}

// timing is the part of a scenario for types with clocks.
type timing struct {
	pane, gap time.Duration
	gapAt     time.Time
}

// newTiming begins the times of a run. It returns nil for a type without clocks.
func newTiming(of proof.Type, rng *rand.Rand) *timing {
	t := &timing{pane: of.Pane(), gap: of.Gap()}
	if t.pane == 0 {
		return nil
	}
	t.gapAt = time.Now().Add(upTo(rng, 5*t.pane))
	return t
}

// rest is the time between two calls: short, about a pane, or several panes. In
// the gap nobody does anything.
func (t *timing) rest(rng *rand.Rand) time.Duration {
	d := upTo(rng, 2*time.Millisecond)
	switch rng.IntN(6) {
	case 0:
		d += upTo(rng, 2*time.Second)
	case 1:
		d += upTo(rng, 2*t.pane)
	case 2:
		if rng.IntN(3) == 0 {
			d += upTo(rng, 6*t.pane)
		}
	}
	now := time.Now()
	if end := t.gapAt.Add(t.gap); now.Before(end) && now.Add(d).After(t.gapAt) {
		d += end.Sub(now)
	}
	return d
}

// limit is how long a call may take.
func (t *timing) limit(rng *rand.Rand) time.Duration {
	return upTo(rng, []time.Duration{2 * time.Second, 12 * time.Second, time.Hour}[rng.IntN(3)])
}

func (c *clock) option() upstash.Option { return door.WithClock(c.wall, c.elapsed).(upstash.Option) }
