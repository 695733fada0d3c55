package simulation

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A pipe is a connection in memory: two streams, one for each direction. The
// bytes of a write arrive later, in order, each chunk at an instant of its own.
type pipe struct {
	net *network
	id  int

	mu   sync.Mutex
	ends [2]*end // the client's and the server's

	broken atomic.Bool // by the client, or by a reset

	use *use // by a client, or nil
	key [2]int
}

// end is one side of a pipe. It is a net.Conn.
type end struct {
	p    *pipe
	peer *end

	in     stream
	wake   chan struct{} // has room for one token, which means: look again
	closed bool
	limit  time.Time // of reads
	asked  bool      // of a client's end: a request waits for its answer
}

// stream is the bytes on their way to an end.
type stream struct {
	place  uint64 // for the draws
	class  int64  // of the instants of its arrivals
	count  int    // chunks so far
	chunks []chunk
	last   time.Time // when the last of them arrives
	fin    bool      // the peer closed, after the last chunk
	reset  bool

	carried int // bytes written so far
	cut     cut
	held    bool          // writes join the last chunk
	delay   time.Duration // of the next chunk
}

// chunk is bytes that arrive at one instant. A stray chunk is lost if the
// client sends a request before it arrives, because the chunk would pass for
// the answer.
type chunk struct {
	at    time.Time
	data  []byte
	stray bool
}

// firstStream is the place of the first stream, above those of fates.
const firstStream = 1 << 17

func newPipe(n *network, id int) *pipe {
	p := &pipe{net: n, id: id}
	client := &end{p: p, wake: make(chan struct{}, 1)}
	server := &end{p: p, wake: make(chan struct{}, 1)}
	client.in.place, server.in.place = firstStream+2*uint64(id), firstStream+2*uint64(id)+1
	of := int64(id % len(n.places))
	client.in.class, server.in.class = byServer+of, byClient+of
	client.peer, server.peer = server, client
	p.ends = [2]*end{client, server}
	return p
}

func (p *pipe) isBroken() bool { return p.broken.Load() }

func (e *end) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Read returns what has arrived, or waits for it.
func (e *end) Read(b []byte) (int, error) {
	for {
		e.p.net.yield()
		n, until, err := e.take(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		if until.IsZero() {
			<-e.wake
			continue
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-e.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// take reads without waiting. until is the instant at which to look again. If
// it is zero, look again after a nudge.
func (e *end) take(b []byte) (n int, until time.Time, err error) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	now := time.Now()
	switch {
	case e.closed:
		return 0, until, net.ErrClosed
	case !e.limit.IsZero() && !now.Before(e.limit):
		return 0, until, os.ErrDeadlineExceeded
	case e.in.reset:
		return 0, until, syscall.ECONNRESET
	}
	for len(e.in.chunks) > 0 && !e.in.chunks[0].at.After(now) && n < len(b) {
		c := &e.in.chunks[0]
		m := copy(b[n:], c.data)
		n, c.data = n+m, c.data[m:]
		if len(c.data) == 0 {
			e.in.chunks = e.in.chunks[1:]
		}
	}
	if n > 0 {
		if e == e.p.ends[0] {
			e.p.net.uses.answers(e.p)
		}
		return n, until, nil
	}
	until = e.limit
	if len(e.in.chunks) > 0 {
		until = earlier(until, e.in.chunks[0].at)
	} else if e.in.fin {
		if !e.in.last.After(now) {
			return 0, until, io.EOF
		}
		until = earlier(until, e.in.last)
	}
	return 0, until, nil
}

func earlier(limit, t time.Time) time.Time {
	if limit.IsZero() || t.Before(limit) {
		return t
	}
	return limit
}

// TryRead makes an end a dialctx.TryReader.
func (e *end) TryRead(b []byte) (int, error) {
	n, _, err := e.take(b)
	return n, err
}

// Write never waits, because a stream has no limit.
func (e *end) Write(b []byte) (int, error) {
	e.p.net.yield()
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	switch {
	case e.closed:
		return 0, net.ErrClosed
	case e.in.reset, e.peer.closed:
		return 0, syscall.EPIPE
	}
	if e == e.p.ends[0] {
		e.p.net.alone(e.p.id%len(e.p.net.places), e.p)
		e.in.dropStrays(time.Now())
		e.asked = true
		e.p.net.uses.asks(e.p)
	}
	return e.peer.in.write(e, b, false)
}

// asks says that a client is about to send a request: it has chosen the connection
// and looked for strays.
func (e *end) asks() {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	e.in.dropStrays(time.Now())
	e.asked = true
	e.p.net.uses.asks(e.p)
}

// dropStrays drops the strays still under way.
func (s *stream) dropStrays(now time.Time) {
	kept := s.chunks[:0]
	for _, c := range s.chunks {
		if !c.stray || !c.at.After(now) {
			kept = append(kept, c)
		}
	}
	s.chunks = kept
}

// write adds bytes from the end e, or cuts the stream.
func (s *stream) write(e *end, b []byte, stray bool) (int, error) {
	through := len(b)
	struck := s.cut.how != whole && s.carried+len(b) > s.cut.at
	if struck {
		through = max(0, s.cut.at-s.carried)
	}
	s.carried += len(b)
	s.append(e, b[:through], stray)
	if !struck {
		return len(b), nil
	}
	switch how := s.cut.how; how {
	case swallow:
		return len(b), nil
	case freeze:
		s.cut.how = whole
		s.delay = s.cut.pause
		s.append(e, b[through:], stray)
		return len(b), nil
	case reset:
		e.p.broken.Store(true)
		for _, side := range e.p.ends {
			side.in.reset = true
			side.nudge()
		}
		return len(b), nil
	case refuse, hangUp:
		for _, side := range e.p.ends {
			side.in.end(e.p.net)
			side.in.cut = cut{how: swallow}
			side.nudge()
		}
		if how == refuse {
			return through, syscall.EPIPE
		}
	}
	return len(b), nil
}

// isCut reports whether bytes of the stream were lost: none comes after them.
func (s *stream) isCut() bool { return s.cut.how != whole && s.carried > s.cut.at }

func (s *stream) append(e *end, b []byte, stray bool) {
	if len(b) == 0 || s.fin {
		return
	}
	if s.held && len(s.chunks) > 0 {
		c := &s.chunks[len(s.chunks)-1]
		c.data = append(c.data, b...)
		return
	}
	s.last = e.p.net.arrival(s)
	e.p.net.travelled(s.last, e.p.id, len(b))
	s.chunks = append(s.chunks, chunk{at: s.last, data: append([]byte(nil), b...), stray: stray})
	e.peer.nudge()
}

func (s *stream) end(n *network) {
	if !s.fin {
		s.fin, s.last = true, n.arrival(s)
	}
}

// Close ends both directions.
func (e *end) Close() error {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	if e.closed {
		return net.ErrClosed
	}
	e.closed = true
	if e == e.p.ends[0] {
		e.p.net.uses.ends(e.p)
	}
	e.p.broken.Store(e.p.broken.Load() || e == e.p.ends[0])
	e.peer.in.end(e.p.net)
	e.nudge()
	e.peer.nudge()
	return nil
}

// SetReadDeadline sets the only deadline that has an effect: writes never wait.
func (e *end) SetReadDeadline(t time.Time) error {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	e.limit = t
	e.nudge()
	return nil
}

func (e *end) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *end) SetWriteDeadline(time.Time) error { return nil }
func (e *end) LocalAddr() net.Addr              { return address }
func (e *end) RemoteAddr() net.Addr             { return address }
