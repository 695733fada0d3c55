//go:build !wasm

package conn

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Pool bounds how many connections are open. It keeps those that are not in
// use, and returns the last used one first. Make one with NewPool. It is safe
// for concurrent use.
type Pool struct {
	dial  func(context.Context) (*Conn, error)
	slots chan struct{} // one for each connection in use

	mu     sync.Mutex
	idle   []*Conn
	closed bool
}

// NewPool makes a pool of up to limit connections, which dial opens.
func NewPool(limit int, dial func(context.Context) (*Conn, error)) *Pool {
	return &Pool{dial: dial, slots: make(chan struct{}, limit)}
}

// Get returns an idle connection that was found alive just now, or a new one.
// If all connections that may be open are in use, it waits for one until ctx
// ends. Each connection that it returns must be given back with Put.
func (p *Pool) Get(ctx context.Context) (*Conn, error) {
	select {
	case p.slots <- struct{}{}:
	default:
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("all %d connections (WithMaxConns) are in use: %w", cap(p.slots), ctx.Err())
		}
	}
	// If there is no idle connection, then fewer than the limit are open,
	// because this caller has a slot.
	if c := p.alive(time.Now(), time.Time{}); c != nil {
		return c, nil
	}
	c, err := p.dial(ctx)
	if err != nil {
		<-p.slots
	}
	return c, err
}

// Idle is Get for a caller who does not wait: it returns nil if no connection is
// idle or all are in use. Reads and writes of the connection end at the deadline,
// unless that is zero. The caller has just read the clock, and says now.
func (p *Pool) Idle(now, deadline time.Time) *Conn {
	select {
	case p.slots <- struct{}{}:
	default:
		return nil
	}
	c := p.alive(now, deadline)
	if c == nil {
		<-p.slots
	}
	return c
}

// alive returns an idle connection that was found alive just now, or nil. Its
// limit is set first, because an old one would make the look fail.
func (p *Pool) alive(now, deadline time.Time) *Conn {
	for c := p.pop(); c != nil; c = p.pop() {
		if !c.expired(now) {
			if c.Limit(deadline); c.clean() {
				return c
			}
		}
		c.Close()
	}
	return nil
}

func (p *Pool) pop() *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
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
// closes what has been idle too long.
func (p *Pool) Put(c *Conn) {
	// The slot is freed last, so that no other caller dials while c is open.
	defer func() { <-p.slots }()
	if !c.settled() {
		c.Close()
		return
	}
	c.idleSince = time.Now()
	for _, old := range p.push(c) {
		old.Close()
	}
}

// push keeps c and returns the connections to close, of which c may be one.
func (p *Pool) push(c *Conn) (closing []*Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return []*Conn{c}
	}
	n := 0
	for n < len(p.idle) && p.idle[n].expired(c.idleSince) {
		n++
	}
	if n > 0 {
		closing = append(closing, p.idle[:n]...)
		kept := copy(p.idle, p.idle[n:])
		clear(p.idle[kept:])
		p.idle = p.idle[:kept]
	}
	p.idle = append(p.idle, c)
	return closing
}

// Close closes the idle connections. Put closes those that are in use.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}
