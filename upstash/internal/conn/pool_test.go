//go:build !wasm

package conn

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pair returns both ends of a connection over the loopback interface.
func pair(t testing.TB) (near *Conn, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), far.Close() })
	return New(c), far
}

func closed(c *Conn) bool {
	_, err := c.top.Write(nil)
	return err != nil
}

var errDialled = errors.New("dialled")

// newPool makes a pool for connections put into it.
func newPool(limit int) *Pool {
	return NewPool(limit, func(context.Context) (*Conn, error) { return nil, errDialled })
}

// add puts c into p as a connection last used ago.
func (p *Pool) add(c *Conn, ago time.Duration) {
	c.lastUse = time.Now().Add(-ago)
	p.idle = append(p.idle, c)
}

// get returns a connection of p, or nil if p had to dial.
func get(t *testing.T, p *Pool) *Conn {
	t.Helper()
	c, err := p.Get(t.Context())
	if err != nil && err != errDialled {
		t.Fatal(err)
	}
	return c
}

func TestPoolReturnsTheLastUsedFirst(t *testing.T) {
	p := newPool(2)
	a, _ := pair(t)
	b, _ := pair(t)
	p.add(a, 0)
	p.add(b, 0)
	if get(t, p) != b || get(t, p) != a {
		t.Error("another order")
	}
	p.Put(b)
	p.Put(a)
	if get(t, p) != a {
		t.Error("another order after Put")
	}
}

func TestPoolLetsGoOfExpired(t *testing.T) {
	p := newPool(4)
	a, _ := pair(t)
	p.add(a, maxIdleTime-time.Minute/4)
	if get(t, p) != a {
		t.Error("not returned before the limit")
	}
	p.leave()
	p.add(a, maxIdleTime+1)
	if get(t, p) != nil || !closed(a) {
		t.Error("returned, or not closed, after the limit")
	}
	b, _ := pair(t)
	c, _ := pair(t)
	d, _ := pair(t)
	p.add(b, maxIdleTime+1)
	p.add(c, 0)
	p.inUse++
	d.lastUse = time.Now()
	p.Put(d) // Put also removes expired connections
	if len(p.idle) != 2 || !closed(b) || closed(c) || closed(d) {
		t.Errorf("%d connections kept, want 2", len(p.idle))
	}
}

// In a frozen process the monotonic clock may stand still. The wall clock alone
// must be enough.
func TestPoolAsksTheWallClock(t *testing.T) {
	c := &Conn{lastUse: time.Now()}
	wall := c.lastUse.Round(0).Add(maxIdleTime + time.Second)
	if !c.expired(wall) {
		t.Error("not expired by the wall clock")
	}
	if c.expired(c.lastUse.Add(maxIdleTime - time.Second)) {
		t.Error("expired early")
	}
	if c.expired(c.lastUse.Add(-time.Second)) {
		t.Error("expired for a caller whose clock was read before")
	}
	if !c.expired(c.lastUse.Round(0).Add(-time.Hour)) {
		t.Error("not expired after the wall clock was set back")
	}
}

func TestPoolKeepsOnlyWhatWasLeftUsable(t *testing.T) {
	p := newPool(1)
	c, _ := pair(t)
	p.inUse++
	c.KeepAlive = false
	if p.Put(c); len(p.idle) != 0 || !closed(c) {
		t.Error("kept, or not closed")
	}
}

func TestClosedPoolKeepsNothing(t *testing.T) {
	p := newPool(2)
	a, _ := pair(t)
	b, _ := pair(t)
	p.add(a, 0)
	p.inUse++ // b
	p.Close()
	if !closed(a) || closed(b) {
		t.Errorf("idle closed: %v; in use closed: %v", closed(a), closed(b))
	}
	if p.Put(b); len(p.idle) != 0 || !closed(b) {
		t.Error("kept, or not closed")
	}
}

// TestPoolBoundsConnections has bursts of callers. The open connections never
// exceed the limit, and only the first burst dials.
func TestPoolBoundsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, callers = 4, 40
		var dials, open atomic.Int64
		p := NewPool(limit, func(context.Context) (*Conn, error) {
			near, _ := net.Pipe()
			dials.Add(1)
			open.Add(1)
			return New(&countedConn{near, &open}), nil
		})
		for range 3 {
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					c, err := p.Get(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Second) // all who have a place
					p.Put(c)
				})
			}
			group.Wait()
		}
		if open.Load() != limit || dials.Load() != limit || len(p.idle) != limit {
			t.Errorf("%d open, %d dials, %d idle, want %d of each", open.Load(), dials.Load(), len(p.idle), limit)
		}
		if p.Close(); open.Load() != 0 {
			t.Errorf("%d connections left open, want 0", open.Load())
		}
	})
}

// countedConn decrements open when it is closed.
type countedConn struct {
	net.Conn
	open *atomic.Int64
}

func (c *countedConn) Close() error {
	c.open.Add(-1)
	return c.Conn.Close()
}

func TestWaitingForAConnectionHonoursTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1, func(context.Context) (*Conn, error) {
			near, far := net.Pipe()
			t.Cleanup(func() { _ = far.Close() })
			return New(near), nil
		})
		defer p.Close()
		first, err := p.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		time.AfterFunc(time.Second, func() { p.Put(first) })
		if c, err := p.Get(t.Context()); c != first || err != nil {
			t.Errorf("got %v, %v; want the connection that was put back", c, err)
		} else {
			p.Put(c)
		}
	})
}

// TestPlacesGoInOrder: who has waited longest gets the next place, and who gave
// up gets none.
func TestPlacesGoInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		if err := p.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []string
		wait := func(ctx context.Context, name string) {
			go func() {
				if p.enter(ctx) == nil {
					order = append(order, name)
				}
			}()
			synctest.Wait()
		}
		impatient, giveUp := context.WithCancel(t.Context())
		wait(impatient, "impatient")
		wait(t.Context(), "first")
		wait(t.Context(), "second")
		giveUp()
		synctest.Wait()
		for range 2 {
			p.leave()
			synctest.Wait()
		}
		if !slices.Equal(order, []string{"first", "second"}) || len(p.waiting) != 0 || p.inUse != 1 {
			t.Errorf("served %v; %d wait, %d in use; want first and second, 0, 1", order, len(p.waiting), p.inUse)
		}
	})
}

// TestPlaceForOneWhoGivesUp: if a place comes when a caller gives up, it is not
// lost, whichever of the two wakes the caller.
func TestPlaceForOneWhoGivesUp(t *testing.T) {
	for _, placeFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(1)
			p.inUse = 1
			ctx, giveUp := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- p.enter(ctx) }()
			synctest.Wait()
			p.mu.Lock()
			if placeFirst {
				p.free()
				giveUp()
			} else {
				giveUp()
				p.free()
			}
			p.mu.Unlock()
			err := <-ended
			if took := err == nil; took != placeFirst {
				t.Errorf("place first: %v; took it: %v (%v)", placeFirst, took, err)
			}
			if err == nil {
				p.leave()
			}
			if p.inUse != 0 {
				t.Errorf("%d in use at the end, want 0", p.inUse)
			}
		})
	}
}

// TestFailedDialFreesItsPlace: the next caller need not wait for a place.
func TestFailedDialFreesItsPlace(t *testing.T) {
	p := newPool(1)
	for range 2 {
		if _, err := p.Get(t.Context()); err != errDialled {
			t.Fatal(err)
		}
	}
}
