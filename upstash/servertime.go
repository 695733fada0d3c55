package upstash

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// maxTimeTrip is the longest round trip of a TIME whose answer is used. The
	// server's clock is known to half of it.
	maxTimeTrip  = 2 * time.Second
	maxTimeTries = 5
	// timeLearnedFor bounds the drift of the process's clock.
	timeLearnedFor = 10 * time.Minute
	// maxClockGap is how far wall and monotonic clock may run apart. A frozen
	// process leaves a gap.
	maxClockGap = time.Second
)

// serverClock is what a client knows of its server's clock. One caller at a
// time learns it; turn is full meanwhile.
type serverClock struct {
	turn    chan struct{}
	learned atomic.Pointer[learnedTime]
}

// learnedTime is the server's time at a moment of both clocks of the process.
type learnedTime struct {
	server, wall time.Time
	elapsed      time.Duration
}

// processClock is the clocks of the process: the wall clock, and a monotonic one.
type processClock struct {
	now     func() time.Time
	elapsed func() time.Duration
}

func newProcessClock() processClock {
	start := time.Now()
	return processClock{now: time.Now, elapsed: func() time.Duration { return time.Since(start) }}
}

// ranApart reports whether the wall clock went another way than the monotonic one
// did: from wall to now, while passed went by.
func (c processClock) ranApart(wall time.Time, passed time.Duration) bool {
	gap := c.now().Round(0).Sub(wall.Round(0)) - passed
	return gap.Abs() > maxClockGap
}

// WithClock sets the clocks of [Client.ServerTime]: the wall clock, and a
// monotonic one, which counts from any moment. The default is the clocks of
// package time, also if one of the two is nil. WithClock is meant for tests of
// programs whose clocks are wrong, jump or stand still; timeouts do not heed
// it.
func WithClock(now func() time.Time, elapsed func() time.Duration) Option {
	if now == nil || elapsed == nil {
		return nil
	}
	return func(s *settings) { s.clock = processClock{now, elapsed} }
}

// ServerTime returns the time of the server's clock. It sends TIME, one billed
// command, the first time; for the next ten minutes it adds the process's
// monotonic clock to that answer and sends nothing. It asks again after the
// process was frozen: the wall clock has then run ahead of the monotonic one.
// The answer is right to a second, as far as the server's clock itself is: a
// TIME is not used if its round trip took more than two seconds. ServerTime
// then asks again, five times at most.
//
// Callers at the same time share one TIME. The error is a [*Error] or a
// [*CallError]. Even a closed client returns a time that it knows.
func (c *Client) ServerTime(ctx context.Context) (time.Time, error) {
	if t, ok := c.KnownServerTime(); ok {
		return t, nil
	}
	if err := c.serverClock.enter(ctx); err != nil {
		return time.Time{}, &CallError{Command: "TIME", Err: err, outcome: outcomeNotSent}
	}
	defer func() { <-c.serverClock.turn }()
	for range maxTimeTries {
		if t, ok := c.KnownServerTime(); ok { // another caller has learned it
			return t, nil
		}
		if err := c.learnTime(ctx); err != nil {
			return time.Time{}, err
		}
	}
	if t, ok := c.KnownServerTime(); ok {
		return t, nil
	}
	return time.Time{}, &CallError{Command: "TIME", outcome: outcomeRead, Err: fmt.Errorf(
		"no answer came within %v in %d attempts, so that the server's clock is not known",
		maxTimeTrip, maxTimeTries)}
}

// enter takes the turn. It waits for it until ctx ends, and returns why it did.
func (c *serverClock) enter(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx, nil)
	}
}

// KnownServerTime is [Client.ServerTime] without a request: ok is false if the
// client has not learned the server's time yet, or has to learn it again. Then
// t is the time of the process's own clock.
func (c *Client) KnownServerTime() (t time.Time, ok bool) {
	known := c.serverClock.learned.Load()
	if known == nil {
		return c.clock.now(), false
	}
	passed := c.clock.elapsed() - known.elapsed
	if passed < 0 || passed > timeLearnedFor || c.clock.ranApart(known.wall, passed) {
		return c.clock.now(), false
	}
	return known.server.Add(passed), true
}

// learnTime asks once, and keeps the answer if it came soon enough.
func (c *Client) learnTime(ctx context.Context) error {
	sent, wall := c.clock.elapsed(), c.clock.now()
	reply, err := c.Do(ctx, Cmd("TIME"))
	if err != nil {
		return err
	}
	server, err := serverTime(reply)
	if err != nil {
		return err
	}
	came := c.clock.elapsed()
	// A freeze in the midst of the trip may have stopped the monotonic clock.
	if trip := came - sent; trip <= maxTimeTrip && !c.clock.ranApart(wall, trip) {
		c.serverClock.learned.Store(&learnedTime{
			server: server.Add(trip / 2), wall: c.clock.now().Round(0), elapsed: came,
		})
	}
	return nil
}

// serverTime reads the answer to TIME: seconds and microseconds, as strings.
func serverTime(r Reply) (time.Time, error) {
	parts, err := r.Array()
	if err != nil || len(parts) != 2 {
		return time.Time{}, r.bad("not two numbers")
	}
	var n [2]int64
	for i, p := range parts {
		text, err := p.Text()
		if err == nil {
			n[i], err = strconv.ParseInt(text, 10, 64)
		}
		if err != nil || n[i] < 0 {
			return time.Time{}, r.bad("not a number of seconds")
		}
	}
	return time.Unix(n[0], n[1]*1000), nil
}
