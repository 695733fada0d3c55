//go:build unix

package conn

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// countedPipe counts how often its deadline moves.
type countedPipe struct {
	net.Conn
	moves int
}

func (p *countedPipe) SetDeadline(t time.Time) error {
	p.moves++
	return p.Conn.SetDeadline(t)
}

// limited returns a connection in memory and its other end, which says what it
// reads after a pause.
func limited(t *testing.T, pause *time.Duration) (*Conn, *countedPipe) {
	t.Helper()
	near, far := net.Pipe()
	counted := &countedPipe{Conn: near}
	c := New(counted)
	var peer sync.WaitGroup
	t.Cleanup(func() {
		_, _ = near.Close(), far.Close()
		peer.Wait()
	})
	peer.Go(func() {
		var b [1]byte
		for {
			if _, err := far.Read(b[:]); err != nil {
				return
			}
			time.Sleep(*pause)
			_, _ = far.Write(b[:])
		}
	})
	return c, counted
}

// exchange writes a byte and reads one, for no longer than the limit.
func exchange(c *Conn, limit time.Duration) (took time.Duration, err error) {
	start := time.Now()
	var deadline time.Time
	if limit > 0 {
		deadline = start.Add(limit)
	}
	c.Limit(start, deadline)
	if _, err := c.Write([]byte{1}); err != nil {
		return time.Since(start), err
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return time.Since(start), err
}

// TestLimitStaysOverManyExchanges: to move a deadline is the dearest part of a
// fast exchange.
func TestLimitStaysOverManyExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pause := time.Millisecond
		c, pipe := limited(t, &pause)
		for range 1000 {
			if _, err := exchange(c, 10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if pipe.moves != 1 {
			t.Errorf("1,000 exchanges within 1 s moved the deadline %d times, want 1", pipe.moves)
		}
		for range 29_000 {
			if _, err := exchange(c, 10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if pipe.moves > 4 {
			t.Errorf("30,000 exchanges within 30 s moved the deadline %d times, want 3 or 4", pipe.moves)
		}
	})
}

// TestLimitIsTheExchangesOwn: the deadline of an exchange before, earlier or
// later, ends no other.
func TestLimitIsTheExchangesOwn(t *testing.T) {
	const s = time.Second
	type step struct {
		idle, pause, limit time.Duration
		ends               bool // at the limit
	}
	for name, steps := range map[string][]step{
		"an answer after the last deadline":  {{0, 0, 10 * s, false}, {9 * s, 5 * s, 10 * s, false}},
		"none until the own deadline":        {{0, 0, 10 * s, false}, {9 * s, 20 * s, 10 * s, true}},
		"the last deadline has passed":       {{0, 0, 10 * s, false}, {11 * s, 9 * s, 10 * s, false}},
		"the last deadline strikes now":      {{0, 0, 10 * s, false}, {10 * s, 0, 10 * s, false}},
		"a shorter limit":                    {{0, 0, 10 * s, false}, {s, 5 * s, 2 * s, true}},
		"a longer limit":                     {{0, 0, 2 * s, false}, {s, 5 * s, 10 * s, false}},
		"no limit after one":                 {{0, 0, 2 * s, false}, {s, 3600 * s, 0, false}},
		"a limit after none":                 {{0, 0, 0, false}, {s, 5 * s, 2 * s, true}},
		"none, and one that has passed long": {{0, 0, s, false}, {60 * s, 60 * s, 0, false}, {0, 2 * s, s, true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var pause time.Duration
				c, _ := limited(t, &pause)
				for i, st := range steps {
					time.Sleep(st.idle)
					pause = st.pause
					took, err := exchange(c, st.limit)
					want := st.pause
					if st.ends {
						want = st.limit
					}
					if took != want || errors.Is(err, os.ErrDeadlineExceeded) != st.ends || err != nil && !st.ends {
						t.Errorf("exchange %d took %v: %v; want %v, ended by its limit: %v", i, took, err, want, st.ends)
					}
				}
			})
		})
	}
}

// TestInterruptAfterAnOldDeadline: an interruption stays, whether it comes before
// or after the deadline of another exchange strikes.
func TestInterruptAfterAnOldDeadline(t *testing.T) {
	for _, at := range []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		for name, interrupt := range map[string]func(*Conn){
			"read":  func(c *Conn) { c.Interrupt() },
			"write": (*Conn).InterruptWrites,
		} {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe() // nobody reads or writes at the other end
				defer far.Close()
				c := New(near)
				defer c.Close()
				c.Limit(time.Now(), time.Now().Add(10*time.Second)) // strikes after a second
				time.Sleep(9 * time.Second)
				start := time.Now()
				c.Limit(start, start.Add(10*time.Second))
				time.AfterFunc(at, func() { interrupt(c) })
				var err error
				if name == "read" {
					_, err = c.Read(make([]byte, 1))
				} else {
					_, err = c.Write(make([]byte, 1))
				}
				if took := time.Since(start); took != at || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s, interrupted after %v: took %v: %v", name, at, took, err)
				}
			})
		}
	}
}

// TestInterruptReachesReaderAndWriter: the one of them that wakes first must not
// take the interruption for an old deadline, and set another.
func TestInterruptReachesReaderAndWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := New(near)
		defer c.Close()
		now := time.Now()
		c.Limit(now, now.Add(10*time.Second))
		ended := make(chan error, 2)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		go func() {
			_, err := c.Write(make([]byte, 1))
			ended <- err
		}()
		time.AfterFunc(time.Second, c.Interrupt)
		for range 2 {
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(now) != time.Second {
				t.Errorf("interrupted after a second; ended after %v: %v", time.Since(now), err)
			}
		}
	})
}

// TestOldDeadlineWithinTLS: TLS refuses to write after an error, and loses what it
// has read of a record.
func TestOldDeadlineWithinTLS(t *testing.T) {
	c, s := layered(t, 1, tls.VersionTLS13)
	if !c.clean() {
		t.Fatal("not clean after the handshake")
	}
	now := time.Now()
	c.Limit(now, now.Add(time.Hour))
	_ = c.socket.SetDeadline(past) // as if an hour had passed
	if _, err := c.Write([]byte("asked")); err != nil {
		t.Fatal(err)
	}
	_ = c.socket.SetDeadline(past)
	got := make(chan error, 1)
	b := make([]byte, 6)
	go func() {
		_, err := io.ReadFull(c, b)
		got <- err
	}()
	s.send(t, 3, "answer")
	_, _ = s.held.Conn.Write(s.held.out[len(s.held.out)-3:])
	if err := <-got; err != nil || string(b) != "answer" {
		t.Errorf("got %q, %v", b, err)
	}
}
