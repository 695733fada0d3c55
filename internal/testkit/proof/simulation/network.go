package simulation

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// address is the address of the first server. The others have the next ports.
// They exist only in memory.
var address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379}

// network joins the clients and the servers of one run.
type network struct {
	fates fates

	tls *tls.Config // the server's, or nil
	old bool        // the server knows no flags in scripts

	*timeline
	uses uses

	mu     sync.Mutex
	sum    uint64 // of all chunks: see travelled
	pipes  []*pipe
	calm   bool // nothing goes wrong any more
	places []*place
	pauses int    // of observers, so far
	answer []byte // the last one sent
}

// place is where a server listens. It is the server's net.Listener.
type place struct {
	net      *network
	number   int
	dialed   int
	from, to time.Time // it is down meanwhile
	queue    chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newNetwork(f fates, tlsConfig *tls.Config, servers int) *network {
	n := &network{
		fates: f, tls: tlsConfig, timeline: newTimeline(),
	}
	for i := range servers {
		n.places = append(n.places, &place{
			net: n, number: i, queue: make(chan net.Conn, 64), closed: make(chan struct{}),
		})
	}
	if servers > 1 {
		n.drawOutage()
	}
	return n
}

// drawOutage draws whether a server is down for a while, and which.
func (n *network) drawOutage() {
	rng := rand.New(rand.NewPCG(n.fates.seed, 1<<44))
	p := n.places[rng.IntN(len(n.places))]
	if rng.IntN(2) == 0 {
		return
	}
	p.from = n.plan(byClock, n.begin.Add(upTo(rng, 3*time.Second)))
	p.to = p.from.Add(upTo(rng, 3*time.Second))
	n.note("server %d: down from %v to %v", p.number, p.from.Sub(n.begin), p.to.Sub(n.begin))
	time.AfterFunc(time.Until(p.from), func() { n.hangUp(p.number) })
}

func (p *place) isDown() bool {
	now := time.Now()
	return !now.Before(p.from) && now.Before(p.to)
}

// address returns the server's address.
func (p *place) address() *net.TCPAddr {
	a := *address
	a.Port += p.number
	return &a
}

// arrival returns the instant at which the next chunk of a stream arrives. It
// is after the last chunk, and depends only on the seed and the place, as fates
// do.
func (n *network) arrival(s *stream) time.Time {
	rng := rand.New(rand.NewPCG(n.fates.seed, s.place<<32|uint64(s.count)))
	s.count++
	at := time.Now().Add(s.delay + time.Duration(20_000+rng.IntN(180_000)))
	s.delay = 0
	if !at.After(s.last) {
		at = s.last.Add(1)
	}
	return n.plan(s.class, at)
}

// travelled adds a chunk to the sum by which two runs are compared: its
// instant, its connection and its length. Its bytes may come from random
// numbers without the seed, such as TLS keys.
func (n *network) travelled(at time.Time, id, length int) {
	sum := uint64(14695981039346656037)
	for _, v := range []uint64{uint64(at.UnixNano()), uint64(id), uint64(length)} {
		sum = (sum ^ v) * 0x100000001b3
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sum += sum
}

// dial opens a pipe. Its fate is drawn now.
func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.yield()
	n.mu.Lock()
	at := n.places[0]
	for _, p := range n.places {
		if p.address().String() == addr {
			at = p
		}
	}
	// Several calls may dial at one instant, each to another server.
	id := at.dialed*len(n.places) + at.number
	at.dialed++
	p := newPipe(n, id)
	n.pipes = append(n.pipes, p)
	calm, answer := n.calm, n.answer
	n.mu.Unlock()
	n.alone(at.number, p)
	if !calm {
		f := n.fates.ofConn(id)
		if f != (connFate{}) {
			n.note("connection %d: %v", id, f)
		}
		if f.unasked && n.tls == nil {
			p.ends[1].stray(answer, 0)
		}
		if err := n.pause(ctx, p.ends[1].in.class, f.dialDelay); err != nil {
			return nil, err
		}
		if f.refused || at.isDown() {
			return nil, syscall.ECONNREFUSED
		}
		p.ends[0].in.cut, p.ends[1].in.cut = f.toClient, f.toServer
		if f.idleClose > 0 {
			server := p.ends[1]
			n.after(server.in.class, f.idleClose, func() { _ = server.Close() })
		}
	}
	select {
	case at.queue <- p.ends[1]:
		return p.ends[0], nil
	case <-at.closed:
		return nil, syscall.ECONNREFUSED
	}
}

func (n *network) pause(ctx context.Context, class int64, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(n.until(class, d))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// heal ends all connections. Nothing goes wrong with new ones.
func (n *network) heal() {
	n.mu.Lock()
	n.calm = true
	n.mu.Unlock()
	for i := range n.places {
		n.hangUp(i)
	}
}

// linger lets time pass in an observer.
func (n *network) linger() {
	n.mu.Lock()
	rng := rand.New(rand.NewPCG(n.fates.seed, 1<<47+uint64(n.pauses)))
	n.pauses++
	n.mu.Unlock()
	time.Sleep(n.until(byObserver, upTo(rng, 300*time.Millisecond)))
}

// hangUp ends all connections to a server.
func (n *network) hangUp(server int) {
	n.mu.Lock()
	pipes := n.pipes
	n.mu.Unlock()
	for _, p := range pipes {
		if p.id%len(n.places) == server {
			_ = p.ends[1].Close()
		}
	}
}

func (n *network) isCalm() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calm
}

// Accept, Close and Addr make a place the server's listener.
func (p *place) Accept() (net.Conn, error) {
	select {
	case c := <-p.queue:
		return p.net.serverSide(c.(*end)), nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *place) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *place) Addr() net.Addr { return p.address() }
