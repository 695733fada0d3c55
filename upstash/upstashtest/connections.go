package upstashtest

import (
	"net"
	"net/http"
	"sync"
)

// connections holds the open connections. Close waits until the goroutine of
// each has ended. The zero value is ready.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
	idle chan struct{} // closed when open becomes empty; nil if nothing waits
}

// track is an http.Server's ConnState hook.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.open == nil {
			c.open = make(map[net.Conn]struct{})
		}
		c.open[conn] = struct{}{}
	case http.StateIdle:
		handle(conn, false)
	case http.StateClosed:
		delete(c.open, conn)
		if len(c.open) == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
	}
}

// wait returns when no connection is open. No new one may be opened meanwhile.
func (c *connections) wait() {
	c.mu.Lock()
	if len(c.open) == 0 {
		c.mu.Unlock()
		return
	}
	c.idle = make(chan struct{})
	idle := c.idle
	c.mu.Unlock()
	<-idle
}
