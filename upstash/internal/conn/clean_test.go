//go:build !wasm

package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// arrived waits, without reading, until something from the other end is in c's
// socket.
func arrived(t *testing.T, c *Conn) {
	t.Helper()
	testenv.Arrived(t, c.socket.Conn)
}

// TestCleanLooksIntoEveryLayer: clean finds an unexpected byte in every layer.
func TestCleanLooksIntoEveryLayer(t *testing.T) {
	const answer, stray = "answer", "stray"
	for _, l := range layerings {
		for _, tt := range []struct {
			name  string
			send  func(*server)
			clean bool
		}{
			{"the answer alone", func(s *server) { s.send(t, 0, answer) }, true},
			{"a second answer in the same segment", func(s *server) { s.send(t, 0, answer, stray) }, false},
			{"a part of a second answer", func(s *server) { s.send(t, 1, answer, stray) }, false},
			{"the farewell in the same segment", func(s *server) {
				s.held.hold = true
				_, _ = io.WriteString(s.top, answer)
				if c, ok := s.top.(*tls.Conn); ok {
					_ = c.CloseWrite()
				}
				_ = s.held.Conn.SetDeadline(time.Time{}) // undoes CloseWrite's
				_, _ = s.held.Conn.Write(s.held.out)
				_ = s.held.Conn.(*net.TCPConn).CloseWrite()
			}, false},
		} {
			t.Run(l.name+"/"+tt.name, func(t *testing.T) {
				c, s := layered(t, l.layers, l.version)
				if !c.clean() {
					t.Fatal("not clean from the start")
				}
				tt.send(s)
				// Like a parser, read the answer and nothing more.
				wantRead(t, c, answer)
				if !tt.clean && l.layers == 0 {
					arrived(t, c)
				}
				if c.clean() != tt.clean {
					t.Errorf("clean = %v, want %v", !tt.clean, tt.clean)
				}
			})
		}
	}
}

// TestRecordsAreFollowed: a record is cut everywhere but at its end, however it comes.
func TestRecordsAreFollowed(t *testing.T) {
	records := []byte("\x16\x03\x03\x00\x03abc" + "\x17\x03\x03\x00\x00" + "\x17\x03\x03\x01\x00")
	records = append(records, make([]byte, 256)...)
	ends := map[int]bool{0: true, 8: true, 13: true, len(records): true}
	for n := range len(records) + 1 {
		var atOnce, inBytes record
		atOnce.note(records[:n])
		for i := range n {
			inBytes.note(records[i : i+1])
		}
		if atOnce.cut() == ends[n] || inBytes != atOnce {
			t.Errorf("%d bytes: cut %v; byte by byte %+v, at once %+v", n, atOnce.cut(), inBytes, atOnce)
		}
	}
}

// TestCleanDoesNotDisturb: after any number of checks the connection works as
// before. TLS's own messages do not count as stray answers.
func TestCleanDoesNotDisturb(t *testing.T) {
	for _, l := range layerings {
		t.Run(l.name, func(t *testing.T) {
			c, s := layered(t, l.layers, l.version)
			for range 3 {
				for range 2 {
					if !c.clean() {
						t.Fatal("not clean")
					}
				}
				if _, err := io.WriteString(c.top, "request"); err != nil {
					t.Fatal(err)
				}
				wantRead(t, s.top, "request")
				s.send(t, 0, "answer")
				wantRead(t, c, "answer")
			}
			s.send(t, 0, "stray")
			arrived(t, c)
			if c.clean() {
				t.Error("clean, with an answer in the socket")
			}
		})
	}
}

// TestSessionTicketsAreNoStrayAnswers: a server may send tickets at any time
// after the handshake. They are no reason to close a connection.
func TestSessionTicketsAreNoStrayAnswers(t *testing.T) {
	near, far := pair(t)
	h := &held{Conn: far}
	pool := httptest.NewUnstartedServer(nil)
	pool.StartTLS()
	defer pool.Close()
	server := tls.Server(h, &tls.Config{Certificates: pool.TLS.Certificates, MinVersion: tls.VersionTLS13})
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	cache := tls.NewLRUClientSessionCache(1)
	config := &tls.Config{InsecureSkipVerify: true, ServerName: "x", ClientSessionCache: cache}
	if err := near.addTLS(config); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !near.clean() {
		t.Error("a session ticket counts as a stray answer")
	}
	if _, ok := cache.Get("x"); !ok {
		t.Error("the ticket is lost")
	}
}

// TestCleanAllocatesNothing, apart from crypto/tls's own allocation in each
// read.
func TestCleanAllocatesNothing(t *testing.T) {
	for _, l := range layerings {
		c, _ := layered(t, l.layers, l.version)
		c.clean() // reads the tickets
		if n := testing.AllocsPerRun(100, func() { c.clean() }); n > float64(l.layers) {
			t.Errorf("%s: %v allocations, want %d", l.name, n, l.layers)
		}
	}
}

func TestPoolDetectsDeadConnections(t *testing.T) {
	for name, kill := range map[string]func(far net.Conn){
		"closed":        func(far net.Conn) { _ = far.Close() },
		"half closed":   func(far net.Conn) { _ = far.(*net.TCPConn).CloseWrite() },
		"reset":         func(far net.Conn) { _ = far.(*net.TCPConn).SetLinger(0); _ = far.Close() },
		"uninvited 408": func(far net.Conn) { _, _ = io.WriteString(far, "HTTP/1.1 408 Request Timeout\r\n\r\n") },
	} {
		p := newPool(1)
		near, far := pair(t)
		p.add(near, 0)
		if get(t, p) != near {
			t.Fatalf("%s: not even returned while it was alive", name)
		}
		p.Put(near)
		kill(far)
		arrived(t, near)
		if get(t, p) != nil || !closed(near) {
			t.Errorf("%s: returned, or not closed", name)
		}
	}
}

func BenchmarkClean(b *testing.B) {
	for _, l := range layerings {
		b.Run("layers="+l.name, func(b *testing.B) {
			c, _ := layered(b, l.layers, l.version)
			b.ReportAllocs()
			for b.Loop() {
				if !c.clean() {
					b.Fatal("not clean")
				}
			}
		})
	}
}

// TestDialToATalker: without TLS, what a server sends before the request is no
// answer, and a connection that it has closed cannot carry one. No request was
// sent on either.
func TestDialToATalker(t *testing.T) {
	for name, tt := range map[string]struct {
		talk func(net.Conn)
		want error
	}{
		"silence": {func(net.Conn) {}, nil},
		"an answer": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"result\":1}")
		}, errUnasked},
		"a byte":      {func(c net.Conn) { _, _ = io.WriteString(c, "+") }, errUnasked},
		"a close":     {func(c net.Conn) { _ = c.Close() }, errClosed},
		"a last byte": {func(c net.Conn) { _, _ = io.WriteString(c, "-"); _ = c.Close() }, errUnasked},
	} {
		d := NewDialer("db.test", "80", false)
		var near *Conn
		d.Open = func(context.Context, string, string) (net.Conn, error) {
			c, far := pair(t)
			near = c
			if tt.talk(far); tt.want != nil {
				arrived(t, c)
			}
			return c.socket.Conn, nil
		}
		c, err := d.Dial(t.Context())
		if !errors.Is(err, tt.want) || (c == nil) != (tt.want != nil) || closed(near) != (tt.want != nil) {
			t.Errorf("%s: %v, %v, want %v and a closed connection", name, c, err, tt.want)
		}
	}
}

// TestExpect: a read fails once more has come than is due, but not in the next exchange.
func TestExpect(t *testing.T) {
	c, s := layered(t, 0, 0)
	c.Expect(len("answer"))
	s.send(t, 0, "answer")
	wantRead(t, c, "answer")
	s.send(t, 0, "x")
	if _, err := c.Read(make([]byte, 1)); err != BadChunks || c.ReadError() != err {
		t.Errorf("a byte too many: %v, want BadChunks", err)
	}
	c.Begin(t.Context(), false)
	s.send(t, 0, "answer")
	if wantRead(t, c, "answer"); !c.Unwatch() {
		t.Error("the next exchange was interrupted")
	}
}

// TestUnaskedCost: the look is one attempt to read.
func TestUnaskedCost(t *testing.T) {
	c, _ := layered(t, 0, 0)
	raw := &counted{RawConn: c.socket.raw}
	c.socket.raw = raw
	if err := c.checkSilent(); err != nil || raw.tries != 1 {
		t.Errorf("%v, %d tries, want 1", err, raw.tries)
	}
}

// held collects what TLS writes. The test sends it in pieces.
type held struct {
	net.Conn
	hold bool
	out  []byte
}

func (h *held) Write(p []byte) (int, error) {
	if !h.hold {
		return h.Conn.Write(p)
	}
	h.out = append(h.out, p...)
	return len(p), nil
}

// server is the other end of a connection.
type server struct {
	top  net.Conn
	held *held
}

// send writes each text as its own record, and all in one segment, except for
// the last keep bytes.
func (s *server) send(t *testing.T, keep int, texts ...string) {
	t.Helper()
	s.held.hold, s.held.out = true, nil
	for _, text := range texts {
		if _, err := io.WriteString(s.top, text); err != nil {
			t.Fatal(err)
		}
	}
	s.held.hold = false
	if _, err := s.held.Conn.Write(s.held.out[:len(s.held.out)-keep]); err != nil {
		t.Fatal(err)
	}
}

// wantRead reads as many bytes as want has.
func wantRead(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("read %.20q, %v, want %.20q", got, err, want)
	}
}

// layered returns both ends of a connection with the given number of layers of
// TLS.
func layered(t testing.TB, layers int, version uint16) (*Conn, *server) {
	t.Helper()
	near, far := pair(t)
	s := &server{held: &held{Conn: far}}
	s.top = s.held
	pool := httptest.NewUnstartedServer(nil)
	pool.StartTLS()
	defer pool.Close()
	for range layers {
		done := make(chan error, 1)
		server := tls.Server(s.top, &tls.Config{Certificates: pool.TLS.Certificates, MaxVersion: version})
		go func() { done <- server.Handshake() }()
		if err := near.addTLS(&tls.Config{InsecureSkipVerify: true}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		s.top = server
	}
	return near, s
}

var layerings = []struct {
	name    string
	layers  int
	version uint16
}{
	{"plain", 0, 0},
	{"TLS 1.2", 1, tls.VersionTLS12},
	{"TLS 1.3", 1, tls.VersionTLS13},
}

// counted counts how often package net asks for a raw read to be tried.
type counted struct {
	syscall.RawConn
	tries int
}

func (c *counted) Read(try func(uintptr) bool) error {
	return c.RawConn.Read(func(fd uintptr) bool {
		c.tries++
		return try(fd)
	})
}
