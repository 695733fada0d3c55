package linear

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// A proxy passes bytes between clients and a server. It cuts, delays and resets
// connections at randomly drawn bytes.
type proxy struct {
	l    net.Listener
	addr string // of the server
	seed uint64

	mu    sync.Mutex
	calm  bool
	count uint64
	open  map[net.Conn]bool

	running sync.WaitGroup
}

func newProxy(addr string, seed uint64) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l, addr: addr, seed: seed, open: make(map[net.Conn]bool)}
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) url() string { return "http://" + p.l.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.join(client) })
	}
}

// join passes bytes in both directions until one side ends, or the drawn fate
// strikes.
func (p *proxy) join(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.addr)
	if err != nil {
		return
	}
	defer server.Close()
	there, back, ok := p.enter(client, server)
	if !ok {
		return
	}
	defer p.leave(client, server)
	var ways sync.WaitGroup
	ways.Go(func() { there.carry(client, server) })
	ways.Go(func() { back.carry(server, client) })
	ways.Wait()
}

// enter adds a pair of connections and draws the fates of both directions.
func (p *proxy) enter(a, b net.Conn) (there, back fate, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return there, back, false
	}
	p.open[a], p.open[b] = true, true
	p.count++
	rng := rand.New(rand.NewPCG(p.seed, p.count))
	if !p.calm && rng.IntN(3) == 0 {
		if rng.IntN(2) == 0 {
			there = drawFate(rng)
		} else {
			back = drawFate(rng)
		}
	}
	return there, back, true
}

func (p *proxy) leave(a, b net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, a)
	delete(p.open, b)
}

// heal ends all connections. Nothing happens to new ones.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calm = true
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *proxy) close() {
	_ = p.l.Close()
	p.heal()
	p.mu.Lock()
	p.open = nil
	p.mu.Unlock()
	p.running.Wait()
}

// fate is what happens to one direction of a connection. The zero value means
// nothing.
type fate struct {
	how   blow
	at    int           // bytes that pass before it
	delay time.Duration // of each piece
}

type blow uint8

const (
	none blow = iota
	cut
	reset
	slow
)

func drawFate(rng *rand.Rand) fate {
	return fate{
		how: cut + blow(rng.IntN(3)), at: rng.IntN(3000),
		delay: time.Duration(rng.IntN(int(8 * time.Millisecond))),
	}
}

// carry copies from one side to the other, and closes both in the end.
func (f fate) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 4096)
	for carried := 0; ; {
		n, err := from.Read(buf)
		if f.how == slow {
			time.Sleep(f.delay)
		}
		if (f.how == cut || f.how == reset) && carried+n > f.at {
			_, _ = to.Write(buf[:f.at-carried])
			if f.how == reset {
				linger(from)
				linger(to)
			}
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
		carried += n
	}
}

// linger makes Close send a reset.
func linger(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
