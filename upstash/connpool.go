//go:build !wasm

package upstash

import (
	"bufio"
	"net"
	"sync"
	"time"
)

const (
	// maxIdleConns bounds what is kept between calls, not how many calls may
	// run at once.
	maxIdleConns = 64
	// maxIdleTime is well below the idle limits of servers and NAT gateways,
	// so that a thawed process rarely meets a connection that died unheard.
	maxIdleTime = 30 * time.Second
)

// conn is one connection with its buffers.
type conn struct {
	net.Conn
	socket    net.Conn // below TLS, to look at
	r         *bufio.Reader
	w         *bufio.Writer
	idleSince time.Time
}

// connPool keeps idle connections, the last used first. The zero value is
// ready; it is safe for concurrent use.
type connPool struct {
	mu     sync.Mutex
	conns  []*conn
	closed bool
}

// get gives a connection that its peer has not closed, or nil.
func (p *connPool) get(now time.Time) *conn {
	for {
		c := p.pop()
		if c == nil || !c.expired(now) && isAlive(c.socket) {
			return c
		}
		_ = c.Close()
	}
}

func (p *connPool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.conns)
	if n == 0 {
		return nil
	}
	c := p.conns[n-1]
	p.conns[n-1] = nil
	p.conns = p.conns[:n-1]
	return c
}

// put keeps c for another call, and lets go of what has been idle too long.
func (p *connPool) put(c *conn, now time.Time) {
	c.idleSince = now
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.conns) > 0 && (len(p.conns) >= maxIdleConns || p.conns[0].expired(now)) {
		_ = p.conns[0].Close()
		p.conns = append(p.conns[:0], p.conns[1:]...)
	}
	if p.closed {
		_ = c.Close()
		return
	}
	p.conns = append(p.conns, c)
}

// close lets go of all. That a peer was gone before, as TLS complains, is of no
// interest to anybody.
func (p *connPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// expired asks both clocks: in a frozen process the monotonic one may have
// stood still.
func (c *conn) expired(now time.Time) bool {
	return now.Sub(c.idleSince) > maxIdleTime ||
		now.Round(0).Sub(c.idleSince.Round(0)) > maxIdleTime
}
