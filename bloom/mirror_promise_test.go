package bloom_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A promise is a schedule of a Mirror of a Window and of those who write to it, with
// what the doc of [bloom.MirrorConfig] says of each answer. The server's clock is
// right. Those of the Mirror's process are wrong in one way: the wall clock jumps, or
// the process is frozen, and its monotonic clock may stand still meanwhile.
type promise struct {
	t     *testing.T
	rng   *rand.Rand
	clock *clock // the server's
	start time.Time
	skew  time.Duration // of the wall clock
	lost  time.Duration // of the monotonic clock
	jumps bool

	pane, stale, patience time.Duration
	cfg                   bloom.WindowConfig
	writer                *bloom.Window
	m                     *bloom.Mirror
	wire                  *timed
	outage                bool
	frozen                time.Duration // what the monotonic clock has lost since the last TIME
	last, own             map[string]time.Time
	yes, no               int
}

func newPromise(t *testing.T, s *upstashtest.Server, seed uint64) *promise {
	p := &promise{
		t: t, rng: rand.New(rand.NewPCG(seed, 39)), clock: newServerClock(),
		last: map[string]time.Time{}, own: map[string]time.Time{},
	}
	p.start, p.jumps = p.clock.Now(), p.rng.IntN(2) == 0
	panes := 1 + int(seed%4)
	p.cfg = bloom.WindowConfig{
		Capacity: 100, FPRate: 1e-8, Panes: panes, ExpireIdle: p.rng.IntN(3) == 0,
		Span: time.Duration(panes)*10*time.Second + time.Duration(p.rng.IntN(60))*time.Second,
	}
	p.pane = ((p.cfg.Span+5*time.Second)/time.Duration(panes) + time.Second - 1).Truncate(time.Second)
	if p.rng.IntN(3) > 0 {
		p.stale = time.Duration(p.rng.Int64N(int64(p.cfg.Span)))
	}
	p.patience = time.Duration(p.rng.Int64N(int64(3 * p.cfg.Span)))
	other, _ := timedClient(t, s, p.clock)
	p.writer = window(t, other, p.cfg)
	create(t, p.writer, true)
	c, wire := timedClient(t, s, p.clock, upstash.WithRetry(0), door.WithClock(p.wall, p.monotonic).(upstash.Option))
	p.wire = wire
	m := newMirror(t, window(t, c, p.cfg), bloom.MirrorConfig{MaxStale: p.stale, StaleIfError: p.patience})
	m.SetClock(func() time.Time { return testenv.TwoClocks(p.wall(), p.monotonic()) })
	p.m = m
	return p
}

func (p *promise) wall() time.Time          { return p.clock.Now().Add(p.skew) }
func (p *promise) monotonic() time.Duration { return p.clock.Now().Sub(p.start) - p.lost }

// upset makes the process's clocks wrong.
func (p *promise) upset() {
	d := time.Duration(p.rng.Int64N(int64(2 * p.pane)))
	switch {
	case p.jumps && p.rng.IntN(2) == 0:
		p.skew -= d
	case p.jumps:
		p.skew += d * time.Duration(p.rng.IntN(20))
	default:
		p.clock.pass(d)
		if p.rng.IntN(2) == 0 {
			p.lost += d
			p.frozen += d
		}
	}
}

func (p *promise) step() {
	switch item := fmt.Sprint("item ", p.rng.IntN(8)); p.rng.IntN(12) {
	case 0:
		p.clock.pass(time.Duration(p.rng.Int64N(int64(2 * p.pane))))
	case 1, 2, 3:
		p.clock.pass(time.Duration(p.rng.Int64N(int64(p.pane / 4))))
	case 4:
		p.upset()
	case 5, 6:
		noError(p.t, errorOf(p.writer.Add(p.t.Context(), item)))
		p.last[item] = p.clock.Now()
	case 7:
		add := p.m.AddThrough
		if p.rng.IntN(2) == 0 {
			add = p.m.Add
		}
		if _, err := add(p.t.Context(), item); err == nil {
			p.last[item], p.own[item] = p.clock.Now(), p.clock.Now()
		}
	case 8:
		p.outage = !p.outage
		p.wire.lose(p.outage)
	case 9:
		_ = p.m.Refresh(p.t.Context())
	default:
		p.lookUp()
	}
}

// lookUp checks what the Mirror says of all items.
func (p *promise) lookUp() {
	for n := range 8 {
		item := fmt.Sprint("item ", n)
		late := p.outage || !p.m.Stats().StaleSince.IsZero() // within a second after it nobody asks
		found, err := p.m.Exists(p.t.Context(), item)
		if err != nil {
			if !p.outage {
				p.t.Errorf("Exists: %v", err)
			}
			continue
		}
		now := p.clock.Now()
		least, most := p.stale, time.Duration(p.cfg.Panes+2)*p.pane
		if late {
			least += p.patience
			most += p.frozen
			if p.stale > 0 { // each refresh learns the time
				most -= max(0, p.frozen-p.stale-p.patience)
			}
		}
		last, added := p.last[item]
		switch {
		case found:
			p.yes++
			if !added || now.Sub(last) > most {
				p.t.Errorf("yes: %s was added %v ago, by %+v", item, now.Sub(last), p)
			}
		default:
			p.no++
			if added && now.Sub(last) > least && now.Sub(last) < p.cfg.Span {
				p.t.Errorf("no: %s was added %v ago, by %+v", item, now.Sub(last), p)
			}
			if own, ok := p.own[item]; ok && now.Sub(own) < p.cfg.Span {
				p.t.Errorf("no: the Mirror has added %s %v ago, by %+v", item, now.Sub(own), p)
			}
		}
	}
}

// What a Mirror of a Window promises holds in every schedule, with one to four panes,
// over turns and outages, in a frozen process and one whose wall clock jumps.
func TestMirrorOfAWindowPromises(t *testing.T) {
	seeds := uint64(200)
	if testenv.Long() {
		seeds = 2000
	}
	s := upstashtest.NewServer(t)
	yes, no := 0, 0
	for seed := range seeds {
		p := newPromise(t, s, seed)
		for range 80 {
			p.step()
			if slices.Contains(p.wire.requests, `["TIME"]`) && !p.outage {
				p.frozen = 0
			}
			p.wire.sent()
		}
		if t.Failed() {
			t.Fatal("seed", seed)
		}
		yes, no = yes+p.yes, no+p.no
		s.FlushAll()
	}
	t.Logf("%d yes, %d no", yes, no)
	if yes < 10*int(seeds) || no < 10*int(seeds) {
		t.Errorf("%d yes and %d no, want more", yes, no)
	}
}
