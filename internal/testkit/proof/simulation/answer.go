package simulation

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// serverConn is the server's side of a connection, above TLS if there is any.
// It changes answers as a proxy or a broken server would.
type serverConn struct {
	net.Conn
	e       *end
	answers int
}

// flagged is the first line of a script for the service alone. An older server
// refuses the line.
var (
	flagged = []byte("#!lua flags=allow-key-locking")
	refused = []byte("#!lua flags=unknown-to-server")
)

// Read returns a request as an old server sees it, if the server is old.
func (c *serverConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.e.p.net.old {
		copy(b, bytes.ReplaceAll(b[:n], flagged, refused))
	}
	return n, err
}

func (n *network) serverSide(e *end) net.Conn {
	c := &serverConn{Conn: e, e: e}
	if n.tls != nil {
		c.Conn = tls.Server(e, n.tls)
	}
	return c
}

// Write sends an answer, or passes other bytes as they are.
func (c *serverConn) Write(b []byte) (int, error) {
	n := c.e.p.net
	if !bytes.HasPrefix(b, []byte("HTTP/1.1 ")) || n.isCalm() {
		return c.Conn.Write(b)
	}
	c.answers++
	f := n.fates.ofAnswer(c.e.p.id, c.answers)
	if f.how == twice && !isWhole(b) { // the second would pass for the rest of the first
		f.how = untouched
	}
	if f.how != untouched {
		n.note("answer %d on connection %d: %v", c.answers, c.e.p.id, f)
	}
	if err := c.send(b, f); err != nil {
		return 0, err
	}
	if isWhole(b) {
		c.e.answered()
		n.sent(b)
	}
	return len(b), nil
}

// sent keeps an answer: for connFate.unasked.
func (n *network) sent(answer []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = bytes.Clone(answer)
}

// isWhole reports whether b is a whole answer. The server writes a short one in
// one piece.
func isWhole(b []byte) bool {
	head, body, _ := bytes.Cut(b, []byte("\r\n\r\n"))
	return bytes.Contains(head, fmt.Appendf(nil, "Content-Length: %d\r\n", len(body)))
}

func (c *serverConn) send(b []byte, f answerFate) error {
	switch f.how {
	case interim:
		lines := bytes.Repeat([]byte("HTTP/1.1 102 Processing\r\n\r\n"), f.n)
		return c.parts(f.pause, lines, b)
	case twice:
		return c.together(b)
	case elsewhere:
		c.strayTo(b, f.pause)
	case late:
		c.e.delayNext(f.pause)
	case pieces:
		at := len(b) * f.n / 1000
		return c.parts(f.pause, b[:at], b[at:])
	case broken:
		_, err := c.Conn.Write(b[:len(b)*f.n/1000])
		c.e.hangUp(f.reset)
		return err
	case closing:
		return c.announceClose(b, f)
	}
	_, err := c.Conn.Write(b)
	return err
}

// parts sends a, and after a pause b.
func (c *serverConn) parts(pause time.Duration, a, b []byte) error {
	if len(a) > 0 {
		if _, err := c.Conn.Write(a); err != nil {
			return err
		}
	}
	c.e.delayNext(pause)
	_, err := c.Conn.Write(b)
	return err
}

// together sends b twice, to arrive in one piece. If the second one arrived
// after the next request, it would pass for that request's answer.
func (c *serverConn) together(b []byte) error {
	_, err := c.Conn.Write(b)
	c.e.hold(true)
	defer c.e.hold(false)
	if err == nil {
		_, err = c.Conn.Write(b)
	}
	return err
}

// strayTo sends b to all other connections. Over TLS it does nothing, because a
// record lost on the way would break the connection.
func (c *serverConn) strayTo(b []byte, pause time.Duration) {
	n := c.e.p.net
	if n.tls != nil {
		return
	}
	n.mu.Lock()
	pipes := n.pipes
	n.mu.Unlock()
	for _, p := range pipes {
		if p != c.e.p {
			p.ends[1].stray(b, pause)
		}
	}
}

func (c *serverConn) announceClose(b []byte, f answerFate) error {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	out := append(bytes.Clone(line), "\r\n"+f.header+"\r\n"...)
	if _, err := c.Conn.Write(append(out, rest...)); err != nil {
		return err
	}
	c.e.p.net.after(c.e.peer.in.class, f.pause, func() { _ = c.e.Close() })
	return nil
}

// delayNext makes the end's next chunk come later.
func (e *end) delayNext(d time.Duration) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	e.peer.in.delay = d
}

// hold makes the next bytes of the end arrive with the chunk before them.
func (e *end) hold(on bool) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	e.peer.in.held = on
}

// hangUp closes the end. If hard is set, the other side gets a reset.
func (e *end) hangUp(hard bool) {
	if hard {
		e.p.mu.Lock()
		e.peer.in.reset = true
		e.peer.nudge()
		e.p.mu.Unlock()
	}
	_ = e.Close()
}

// answered notes that the request under way has its answer.
func (e *end) answered() {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	e.peer.asked = false
}

// stray sends an answer without a request. It arrives while no request is under
// way, or never.
func (e *end) stray(b []byte, pause time.Duration) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	if e.closed || e.peer.closed || e.peer.asked || e.peer.in.isCut() {
		return
	}
	e.peer.in.delay = pause
	e.peer.in.append(e, b, true)
}
