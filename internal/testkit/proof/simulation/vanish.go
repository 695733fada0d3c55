package simulation

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
)

// Connections vanish as behind a NAT gateway that has forgotten them: nothing
// arrives any more, and nobody says so. An attempt over a kept one ends by its own
// limit. After that its client must use no connection that was kept for longer:
// one such attempt is enough.

// uses is what the clients do with their connections.
type uses struct {
	limit time.Duration // of an attempt

	mu    sync.Mutex
	of    map[[2]int][]*use // by client and server
	wrong error
}

// use is what a client does with one connection.
type use struct {
	asked    time.Time // when the request under way began, or zero
	answered time.Time // when a byte of an answer last came, or zero
	lost     bool      // the limit of an attempt has ended the use of a kept connection
}

// owner is the key of a context's value: the process whose connections a call
// uses, if it is another's than the caller's.
type owner struct{}

// dialer returns the dial of a client.
func (n *network) dialer(client int) dialctx.Func {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := n.dial(ctx, network, addr)
		if e, ok := c.(*end); ok && n.tls == nil { // with TLS, a handshake looks like an answer
			of := client
			if other, ok := ctx.Value(owner{}).(int); ok {
				of = other
			}
			n.uses.add(e.p, of, e.p.id%len(n.places))
		}
		return c, err
	}
}

func (u *uses) add(p *pipe, client, server int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = make(map[[2]int][]*use)
	}
	p.use = new(use)
	u.of[[2]int{client, server}] = append(u.of[[2]int{client, server}], p.use)
	p.key = [2]int{client, server}
}

// asks notes that a client writes.
func (u *uses) asks(p *pipe) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p.use == nil || !p.use.asked.IsZero() {
		return
	}
	p.use.asked = time.Now()
	for _, x := range u.of[p.key] {
		if x.lost && !p.use.answered.IsZero() && p.use.answered.Before(x.answered) && u.wrong == nil {
			u.wrong = fmt.Errorf("connection %d of client %d was used at %v, after one that was used later had vanished",
				p.id, p.key[0], p.use.asked.Sub(p.net.begin))
		}
	}
}

// answers notes that a byte of an answer has come.
func (u *uses) answers(p *pipe) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p.use != nil {
		p.use.asked, p.use.answered = time.Time{}, time.Now()
	}
}

// ends notes that a client closes a connection.
func (u *uses) ends(p *pipe) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := p.use; x != nil && !x.asked.IsZero() && !x.answered.IsZero() {
		x.lost = time.Since(x.asked) == u.limit
	}
}

func (u *uses) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.wrong
}

// vanish cuts all open connections, without a word.
func (n *network) vanish() {
	n.mu.Lock()
	pipes, calm := n.pipes, n.calm
	n.mu.Unlock()
	if calm {
		return
	}
	n.note("all connections vanish")
	for _, p := range pipes {
		p.mu.Lock()
		for _, e := range p.ends {
			e.in.cut = cut{how: swallow}
		}
		p.mu.Unlock()
	}
}
