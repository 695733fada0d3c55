//go:build !wasm

// Package conn opens connections to one server, and keeps them for reuse. It
// knows sockets and TLS, and nothing of commands.
package conn

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
)

// Conn is one connection with its layers, from the bottom: the socket, TLS, the
// buffers. It serves one exchange at a time.
type Conn struct {
	R *bufio.Reader
	W *bufio.Writer
	// KeepAlive is false from the beginning of an exchange until its whole
	// answer has come, if status and header allow another use of the
	// connection.
	KeepAlive bool
	// MaxSilence is how long the peer's system may take to confirm written
	// bytes, after LimitSilence(true). New sets it to 3 s, time for four
	// repetitions of a packet. The system answers at once, however busy the
	// server is.
	MaxSilence time.Duration

	top            net.Conn // the highest layer
	socket         *socket  // the lowest
	readErr        error
	most, came     int  // since Expect
	answered       bool // a byte of the answer has come
	limited        bool
	number         uint64    // of its last Put, 0 before the first
	lastUse        time.Time // when the last exchange began
	one            [1]byte   // what clean reads into
	silenceLimited bool      // by LimitSilence
}

// The buffers of a connection, in bytes.
const (
	ReadBuffer  = 16 << 10 // the header of an answer must fit into it
	writeBuffer = 8 << 10
)

// New makes a connection over an open socket.
func New(open net.Conn) *Conn {
	s := newSocket(open)
	c := &Conn{top: s, socket: s, KeepAlive: true, MaxSilence: MaxSilence}
	c.R = bufio.NewReaderSize(c, ReadBuffer)
	c.W = bufio.NewWriterSize(c, writeBuffer)
	return c
}

// addTLS adds a layer of TLS, as its client, and completes the handshake.
func (c *Conn) addTLS(config *tls.Config) error {
	t := tls.Client(c.top, config)
	c.top, c.socket.secure = t, true
	return t.Handshake()
}

// Dialer opens connections to one server. Make one with NewDialer. Its fields
// may be changed before the first dial; after that it is safe for concurrent use.
type Dialer struct {
	// ServerTLS is the configuration of TLS to the server, nil for http.
	ServerTLS *tls.Config
	// Open looks up a name and opens a socket, as a net.Dialer does.
	Open dialctx.Func

	addr string
}

// NewDialer makes a dialer for a host, without brackets, and port.
func NewDialer(host, port string, secure bool) *Dialer {
	d := &Dialer{Open: new(net.Dialer).DialContext, addr: net.JoinHostPort(host, port)}
	if secure {
		d.ServerTLS = &tls.Config{
			ServerName: host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(8),
		}
	}
	return d
}

// Dial looks up the name, opens a socket, and adds TLS. A net.Dialer races both
// families of addresses, and shares a look-up among the calls that wait for one
// name. Dial fails if a server without TLS speaks or closes before it was asked.
// If Dial fails, no request was sent.
func (d *Dialer) Dial(ctx context.Context) (*Conn, error) {
	open := dialctx.From(ctx)
	if open == nil {
		open = d.Open
	}
	s, err := open(ctx, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	c := New(s)
	// One limit for all that follows, because not every step takes a context.
	c.Watch(ctx)
	if d.ServerTLS == nil {
		err = c.checkSilent()
	} else {
		err = brokenInHandshake(c.addTLS(d.ServerTLS))
	}
	if !c.Unwatch() {
		err = ctx.Err()
		if d.ServerTLS != nil {
			err = SilentHandshake(err)
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Read reads from the highest layer.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.top.Read(p)
	c.answered = c.answered || n > 0
	c.came += n
	if err == nil && c.most > 0 && c.came > c.most {
		err = BadChunks
	}
	if err != nil {
		c.readErr = err
	}
	return n, err
}

// Expect lets Read fail with BadChunks once it has brought more than so many bytes
// from now on, in this exchange: nothing else ends the extension of a chunk.
func (c *Conn) Expect(most int) { c.most, c.came = most, 0 }

// Write writes to the highest layer.
func (c *Conn) Write(p []byte) (int, error) { return c.top.Write(p) }

// Begin begins an exchange that ends with ctx: until Unwatch. If its request is
// small, the peer's silence is limited, and the request is held: see
// LimitSilence, Hold and Watch.
func (c *Conn) Begin(ctx context.Context, small bool) {
	c.KeepAlive, c.answered, c.most = false, false, 0
	c.LimitSilence(small)
	if small {
		c.Hold()
	}
	c.Watch(ctx)
}

// Hold keeps what is written from now on until the next read, which sends it
// before it waits. WriteError then returns the error of sending. It saves a
// system call an exchange: without it, a read begins with a look for an answer
// that cannot be there yet. In turn, if the peer closes between the pool's
// check and this read, a microsecond at most, nobody notices until the read
// fails. Held bytes are copied, and should be few.
func (c *Conn) Hold() {
	c.socket.holding, c.socket.writeErr = canHold && c.socket.raw != nil, nil
}

// Watch makes blocked reads and writes, and all later ones, fail once ctx ends,
// until Unwatch. If a request is held, it begins to watch when the request has
// gone out, and so does not delay it.
func (c *Conn) Watch(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	c.socket.ctx = ctx
	if !c.socket.holding {
		c.socket.watch()
	}
}

// Unwatch reports whether c can be used again: after an interruption the past
// deadline may strike at any time.
func (c *Conn) Unwatch() bool {
	s := c.socket
	stop := s.stop
	s.ctx, s.stop = nil, nil
	return stop == nil || stop()
}

// WriteError returns the error of sending the held bytes, or nil. Bytes still
// held after a read were never sent: TLS had bytes before the request.
func (c *Conn) WriteError() error {
	if c.socket.holding {
		return errUnasked
	}
	return c.socket.writeErr
}

var (
	errUnasked = errors.New("the server sent data before the request")
	errClosed  = errors.New("the server closed the connection before the request")
)

// ReadError returns the error that ended reading, or nil. A parser's own error
// can hide it.
func (c *Conn) ReadError() error { return c.readErr }

// Limit makes reads and writes fail from the deadline on. The zero time takes the
// last limit back.
func (c *Conn) Limit(deadline time.Time) {
	if deadline.IsZero() && !c.limited {
		return
	}
	c.limited = !deadline.IsZero()
	_ = c.socket.SetDeadline(deadline)
}

// InterruptWrites makes a blocked write, and all later ones, fail.
func (c *Conn) InterruptWrites() { _ = c.socket.SetWriteDeadline(past) }

// LimitSilence says whether a connection ends in an error if the peer's system
// has not confirmed written bytes for MaxSilence: a peer can vanish without a word,
// after a failover or behind a NAT gateway that forgot it. The error proves
// nothing about the request. It is not for long requests, with which a peer may
// take its time. It has an effect on Linux alone.
func (c *Conn) LimitSilence(on bool) {
	if on != c.silenceLimited {
		c.silenceLimited = on
		limit := time.Duration(0)
		if on {
			limit = c.MaxSilence
		}
		c.socket.limitSilence(limit)
	}
}

// Vanished reports whether the peer may be gone without a word, and so those of
// the connections that were kept before: c was kept, no byte of an answer came,
// and err says that a limit or the system's silence ended the exchange. An end of
// ctx says so only if its deadline left MaxSilence.
func (c *Conn) Vanished(ctx context.Context, err error) bool {
	if c.number == 0 || c.answered {
		return false
	}
	if ended := ctx.Err(); ended != nil {
		deadline, ok := ctx.Deadline()
		return ok && ended == context.DeadlineExceeded && deadline.Sub(c.lastUse) >= c.MaxSilence
	}
	return IsSilence(err)
}

// Close closes the socket without TLS's close_notify, which could block for
// five seconds if the peer does not read.
func (c *Conn) Close() { _ = c.socket.Close() }

// clean reports whether c can be used again: the next answer on it must be that
// to the next request. The last answer must have left the connection open, and
// no stray byte, nor the peer's end of the connection, may be in the buffer, in
// TLS or in the socket.
//
// It reads through all layers while the socket never blocks. In such a read TLS
// returns its decrypted bytes, decrypts what it has, and handles its own
// messages, such as session tickets. A part of a record it keeps unseen.
func (c *Conn) clean() bool {
	return c.drained() && c.look() == errNothingYet && !c.socket.record.cut()
}

// look reads what has come, without waiting. It returns errNothingYet if there
// is nothing to read, and errUnasked if there is.
func (c *Conn) look() error {
	c.socket.noWait = true
	n, err := c.top.Read(c.one[:])
	c.socket.noWait = false
	if n != 0 {
		return errUnasked
	}
	return err
}

// checkSilent returns an error if the server has sent something on a new
// connection, or closed it, before the first request. It is for a connection
// without TLS: with it, the server has proved its name, and its first messages
// may have come.
//
// It cannot see what comes between this look and the request. That would pass
// for the answer, because an answer of HTTP/1.1 does not say which request it
// answers.
func (c *Conn) checkSilent() error {
	switch err := c.look(); err {
	case errNothingYet:
		return nil
	case io.EOF:
		return errClosed
	default:
		return err
	}
}

// drained reports what clean need not look for again while c is idle.
func (c *Conn) drained() bool { return c.KeepAlive && c.R.Buffered() == 0 }

// maxIdleTime is well below the idle limits of servers and NAT gateways. So a
// process rarely uses a connection that died unnoticed while it was frozen.
const maxIdleTime = 30 * time.Second

// expired reports whether the last exchange began too long ago, by the
// monotonic or the wall clock: the first can stand still in a frozen process.
// If the wall clock was set back, nobody knows how long c was idle, and it
// counts as expired. (With two callers at once, now may be a little before
// lastUse.)
func (c *Conn) expired(now time.Time) bool {
	wall := now.Round(0).Sub(c.lastUse.Round(0))
	return now.Sub(c.lastUse) > maxIdleTime || wall.Abs() > maxIdleTime
}

// socket is the lowest layer. If noWait is set, a read returns the bytes
// already there, or errNothingYet.
type socket struct {
	net.Conn
	noWait bool

	raw     syscall.RawConn // nil if Conn is not a socket of the system
	readRaw func(fd uintptr) bool
	p       []byte // what readRaw reads into; n and err are its result
	n       int
	err     error

	holding  bool   // writes go into held
	held     []byte // for the next read to send before it waits
	writeErr error

	secure bool // TLS reads from it
	record record

	ctx       context.Context // ends the exchange; nil if nothing does
	stop      func() bool     // watching ctx; nil before
	interrupt func()          // made once, because a method value allocates
}

// past is a deadline that interrupts at once.
var past = time.Unix(1, 0)

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c}
	s.interrupt = func() { _ = s.SetDeadline(past) }
	if sc, ok := c.(syscall.Conn); ok {
		s.raw, _ = sc.SyscallConn()
	}
	s.readRaw = s.readOnce // once, because it allocates
	return s
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.read(p)
	if s.secure {
		s.record.note(p[:n])
	}
	return n, err
}

// record follows the records of TLS, of which all that comes consists: each has a
// header of five bytes, and the last two of those are the length of the rest.
type record struct {
	header int    // bytes of it that have come
	length uint16 // by the last of those
	left   int    // bytes of the rest
}

func (r *record) note(p []byte) {
	for len(p) > 0 {
		if n := min(r.left, len(p)); n > 0 {
			r.left, p = r.left-n, p[n:]
			continue
		}
		r.header, r.length, p = r.header+1, r.length<<8|uint16(p[0]), p[1:]
		if r.header == 5 {
			r.header, r.left = 0, int(r.length)
		}
	}
}

// cut reports whether a part of a record has come.
func (r *record) cut() bool { return r.header > 0 || r.left > 0 }

func (s *socket) read(p []byte) (int, error) {
	switch {
	case !s.noWait && !s.holding:
		return s.Conn.Read(p)
	case len(p) == 0:
		return 0, errNothingYet
	case s.raw == nil:
		return s.tryRead(p)
	}
	s.p, s.n, s.err = p, 0, nil
	err := s.raw.Read(s.readRaw)
	s.p = nil
	if err == nil {
		return s.n, s.err
	}
	if s.holding { // the limit had passed, and nothing was sent
		s.holding, s.held, s.writeErr = false, s.held[:0], err
	}
	return s.n, err
}

// failed is the error of a raw read in the form of package net.
func (s *socket) failed(err error) error {
	local, remote := s.LocalAddr(), s.RemoteAddr()
	return &net.OpError{
		Op: "read", Net: remote.Network(), Source: local, Addr: remote, Err: os.NewSyscallError("read", err),
	}
}

// Write keeps p until the next read if s is holding. Otherwise a Read would
// first look for an answer that cannot be there: a system call for nothing.
func (s *socket) Write(p []byte) (int, error) {
	if s.holding {
		s.held = append(s.held, p...)
		return len(p), nil
	}
	return s.Conn.Write(p)
}

// release sends what is held. It reports true if there was something and it
// went out: the answer is still to come.
func (s *socket) release() bool {
	if !s.holding {
		return false
	}
	s.holding = false
	_, s.writeErr = s.Conn.Write(s.held)
	s.held = s.held[:0]
	s.watch()
	return s.writeErr == nil
}

// watch interrupts reads and writes when ctx ends: only a past deadline wakes
// them.
func (s *socket) watch() {
	if s.ctx != nil {
		s.stop = context.AfterFunc(s.ctx, s.interrupt)
	}
}

// tryRead reads without waiting from a connection that is not a socket of the
// system, if the connection can do so.
func (s *socket) tryRead(p []byte) (n int, err error) {
	if c, ok := s.Conn.(dialctx.TryReader); ok {
		n, err = c.TryRead(p)
	}
	if n == 0 && err == nil {
		err = errNothingYet
	}
	return n, err
}

// errNothingYet is returned instead of waiting. For TLS it is a temporary
// error, and it can read on.
var errNothingYet net.Error = nothingYet{}

type nothingYet struct{}

func (nothingYet) Error() string   { return "nothing to read yet" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }
