package simulation

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// address is the server's. It exists in memory alone.
var address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379}

// network joins the clients and the server of one run. It is the server's
// net.Listener.
type network struct {
	fates fates

	tls *tls.Config // the server's, or nil
	old bool        // the server knows no flags in scripts

	mu     sync.Mutex
	trace  []string
	sum    uint64 // of all that travelled: see travelled
	begin  time.Time
	used   map[int64]bool // the instants of arrivals
	pipes  []*pipe
	calm   bool // nothing goes wrong any more
	queue  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newNetwork(f fates, tlsConfig *tls.Config) *network {
	return &network{
		fates: f, tls: tlsConfig, begin: time.Now(),
		used: make(map[int64]bool), queue: make(chan net.Conn, 64), closed: make(chan struct{}),
	}
}

// arrival returns the instant at which the next chunk of a stream arrives. It
// is after the last chunk, and depends on the seed and the place alone, as
// fates do.
func (n *network) arrival(s *stream) time.Time {
	rng := rand.New(rand.NewPCG(n.fates.seed, s.place<<32|uint64(s.count)))
	s.count++
	at := time.Now().Add(s.delay + time.Duration(20_000+rng.IntN(180_000)))
	s.delay = 0
	if !at.After(s.last) {
		at = s.last.Add(1)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.used[at.UnixNano()] {
		at = at.Add(1)
	}
	n.used[at.UnixNano()] = true
	return at
}

// travelled adds a chunk to the sum by which two runs are compared: its
// instant, its connection and its length. Its bytes may depend on random
// numbers that do not come from the seed, such as the keys of TLS.
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
func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.mu.Lock()
	id := len(n.pipes)
	p := newPipe(n, id)
	n.pipes = append(n.pipes, p)
	calm := n.calm
	n.mu.Unlock()
	if !calm {
		f := n.fates.ofConn(id)
		if f != (connFate{}) {
			n.note("connection %d: %v", id, f)
		}
		if err := pause(ctx, f.dialDelay); err != nil {
			return nil, err
		}
		if f.refused {
			return nil, syscall.ECONNREFUSED
		}
		p.ends[0].in.cut, p.ends[1].in.cut = f.toClient, f.toServer
		if f.idleClose > 0 {
			server := p.ends[1]
			time.AfterFunc(f.idleClose, func() { _ = server.Close() })
		}
	}
	select {
	case n.queue <- p.ends[1]:
		return p.ends[0], nil
	case <-n.closed:
		return nil, syscall.ECONNREFUSED
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
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
	pipes := n.pipes
	n.mu.Unlock()
	for _, p := range pipes {
		_ = p.ends[1].Close()
	}
}

func (n *network) isCalm() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calm
}

// Accept, Close and Addr make the network the server's listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.queue:
		return n.serverSide(c.(*end)), nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (n *network) Addr() net.Addr { return address }

// note keeps a fault, for the report of a seed that fails.
func (n *network) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trace = append(n.trace, fmt.Sprintf("%12v  ", time.Since(n.begin))+fmt.Sprintf(format, args...))
}
