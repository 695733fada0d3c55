//go:build !wasm

package conn

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Pool bounds the number of open connections. It keeps the idle ones, and
// returns the last used one first. Make one with NewPool. It is safe for
// concurrent use.
type Pool struct {
	dial  func(context.Context) (*Conn, error)
	limit int

	mu      sync.Mutex
	idle    []*Conn         // by their numbers
	puts    uint64          // how often a connection was kept
	inUse   int             // with those being dialled
	waiting []chan struct{} // a caller's is closed when it gets the place of another
	closed  bool
}

// NewPool makes a pool of up to limit connections, opened by dial.
func NewPool(limit int, dial func(context.Context) (*Conn, error)) *Pool {
	return &Pool{dial: dial, limit: limit}
}

// Get returns an idle connection found alive just now, or a new one. If all
// connections are in use, it waits for one until ctx ends. The caller must give
// the connection back with Put.
func (p *Pool) Get(ctx context.Context) (*Conn, error) {
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	// If there is no idle connection, then fewer than the limit are open,
	// because this caller has a place.
	if c := p.alive(p.next(), time.Now(), time.Time{}); c != nil {
		return c, nil
	}
	c, err := p.dial(ctx)
	if err != nil {
		p.leave()
		return nil, err
	}
	c.lastUse = time.Now()
	return c, nil
}

// Idle is Get for a caller who does not wait: it returns nil if no connection is
// idle or all are in use. Reads and writes of the connection end at the deadline,
// unless that is zero. The caller has just read the clock, and says now.
func (p *Pool) Idle(now, deadline time.Time) *Conn {
	c := p.enterIdle()
	if c == nil {
		return nil
	}
	if c = p.alive(c, now, deadline); c == nil {
		p.leave()
	}
	return c
}

// enterIdle takes a place and an idle connection, or neither.
func (p *Pool) enterIdle() *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse == p.limit || len(p.idle) == 0 {
		return nil
	}
	p.inUse++
	return p.pop()
}

// enter takes a place, and waits for one until ctx ends.
func (p *Pool) enter(ctx context.Context) error {
	p.mu.Lock()
	if p.inUse < p.limit {
		p.inUse++
		p.mu.Unlock()
		return nil
	}
	place := make(chan struct{})
	p.waiting = append(p.waiting, place)
	p.mu.Unlock()
	select {
	case <-place:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, place); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else { // the place came at the same time
		p.free()
	}
	return fmt.Errorf("all %d connections (WithMaxConns) are in use: %w", p.limit, ctx.Err())
}

// leave gives a place back.
func (p *Pool) leave() {
	p.mu.Lock()
	p.free()
	p.mu.Unlock()
}

// free is leave for a caller with the lock.
func (p *Pool) free() {
	if len(p.waiting) == 0 {
		p.inUse--
		return
	}
	close(p.waiting[0])
	p.waiting = slices.Delete(p.waiting, 0, 1)
}

// alive returns c, or an idle connection after it, whichever is found alive
// first, with its deadline set; or nil.
func (p *Pool) alive(c *Conn, now, deadline time.Time) *Conn {
	for ; c != nil; c = p.next() {
		if !c.expired(now) {
			c.Limit(deadline) // first, because an old limit would make the look fail
			if c.clean() {
				c.lastUse = now
				return c
			}
		}
		c.Close()
	}
	return nil
}

func (p *Pool) next() *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pop()
}

func (p *Pool) pop() *Conn {
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return c
}

// Put ends the use of c. It keeps c if the last exchange left it usable, and
// closes connections that were not used for too long.
func (p *Pool) Put(c *Conn) {
	var closing []*Conn
	if c.drained() {
		if closing = p.keep(c); len(closing) == 0 {
			return
		}
	} else {
		closing = []*Conn{c}
	}
	for _, old := range closing {
		old.Close()
	}
	// The place is freed last: no other caller dials while they are open.
	p.leave()
}

// keep keeps c and frees its place, or returns the connections to close,
// perhaps with c.
func (p *Pool) keep(c *Conn) (closing []*Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return []*Conn{c}
	}
	n := 0
	for n < len(p.idle) && p.idle[n].expired(c.lastUse) {
		n++
	}
	closing = slices.Clone(p.idle[:n])
	p.puts++
	c.number = p.puts
	p.idle = append(slices.Delete(p.idle, 0, n), c)
	if n == 0 {
		p.free()
	}
	return closing
}

// CloseUpTo closes the idle connections whose last answer is no younger than
// that of c, which is in use.
func (p *Pool) CloseUpTo(c *Conn) {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && p.idle[n].number <= c.number {
		n++
	}
	closing := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	p.mu.Unlock()
	for _, old := range closing {
		old.Close()
	}
}

// Close closes the idle connections. Put closes those in use.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}
