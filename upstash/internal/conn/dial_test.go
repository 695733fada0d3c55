//go:build !wasm

package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// talkative counts the writes and closes of a socket.
type talkative struct {
	net.Conn
	writes, closes int
}

func (s *talkative) Write(p []byte) (int, error) {
	s.writes++
	return s.Conn.Write(p)
}

func (s *talkative) Close() error {
	s.closes++
	return s.Conn.Close()
}

// TestCloseSaysNothing: TLS's close_notify would block if the peer does not
// read.
func TestCloseSaysNothing(t *testing.T) {
	for _, l := range layerings {
		c, _ := layered(t, l.layers, l.version)
		socket := &talkative{Conn: c.socket.Conn}
		c.socket.Conn = socket
		if c.Close(); socket.writes != 0 || socket.closes != 1 {
			t.Errorf("%s: %d writes, %d closes", l.name, socket.writes, socket.closes)
		}
	}
}

var errRefused = errors.New("refused")

// TestDialEndsWithItsContext: also while it waits for the handshake.
func TestDialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := dialing(t, "db.test", true, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		cancel()
		_, _ = io.Copy(io.Discard, c) // until the other end closes
	})
	if _, err := d.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// silence is a name server that never answers, and counts the sockets to it.
type silence struct {
	server net.PacketConn
	open   atomic.Int64
	most   atomic.Int64
	mu     sync.Mutex
	asked  chan struct{} // closed at the first question
	over   bool
	conns  []net.Conn
}

func newSilence(t *testing.T) *silence {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return &silence{server: server, asked: make(chan struct{})}
}

func (s *silence) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, net.ErrClosed
	}
	c, err := net.Dial("udp", s.server.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	if len(s.conns) == 0 {
		close(s.asked)
	}
	s.conns = append(s.conns, c)
	s.most.Store(max(s.most.Load(), s.open.Add(1)))
	return &asking{Conn: c, s: s}, nil
}

// end ends the look-ups that run on after their contexts.
func (s *silence) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// asking is a socket to the name server.
type asking struct {
	net.Conn
	s    *silence
	once sync.Once
}

func (c *asking) Close() error {
	c.once.Do(func() { c.s.open.Add(-1) })
	return c.Conn.Close()
}

// TestAThousandCallersWithoutANameServer wait for one look-up, and end with their
// contexts: an outage of the name servers does not use up a process's sockets.
func TestAThousandCallersWithoutANameServer(t *testing.T) {
	const callers, sockets = 1000, 8 // a look-up has two: for IPv4 and for IPv6
	names := newSilence(t)
	d := NewDialer("db.test", "443", false)
	d.Open = (&net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: names.dial}}).DialContext
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var begun, all sync.WaitGroup
	begun.Add(callers)
	for range callers {
		all.Go(func() {
			begun.Done()
			if _, err := d.Dial(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the context", err)
			}
		})
	}
	begun.Wait()
	<-names.asked
	cancel()
	all.Wait()
	if n := names.most.Load(); n > sockets {
		t.Errorf("%d sockets at once to the name server, want at most %d", n, sockets)
	}
	names.end()
}

// TestQuestion: the commonest mistakes on a laptop have errors with a question.
func TestQuestion(t *testing.T) {
	for want, cause := range map[string]error{
		NoServer: errRefused, NoHost: &net.DNSError{Err: "no such host", Name: "db.test", IsNotFound: true},
	} {
		failed := &net.OpError{Op: "dial", Net: "tcp", Err: cause}
		d := NewDialer("db.test", "443", true)
		d.Open = func(context.Context, string, string) (net.Conn, error) { return nil, failed }
		_, err := d.Dial(t.Context())
		if q := Question(err); !errors.Is(err, failed) || q != want {
			t.Errorf("got %v, question %q, want %q", err, q, want)
		}
	}
	d := dialing(t, "db.test", true, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 16<<10))
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
	})
	_, err := d.Dial(t.Context())
	if q := Question(err); err == nil || !strings.Contains(q, "is it http://?") {
		t.Errorf("no TLS: got %v, question %q", err, q)
	}
	// How net/http wraps the errors of a proxy.
	for want, err := range map[string]error{
		"is the proxy's URL in the environment right, does the proxy run?": &net.OpError{
			Op: "proxyconnect", Net: "tcp", Err: &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}},
		},
		"": &net.OpError{Op: "socks connect", Net: "tcp", Err: errors.New("host unreachable")},
	} {
		if q := Question(err); q != want {
			t.Errorf("%v: question %q, want %q", err, q, want)
		}
	}
}

func TestPermanent(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&net.DNSError{IsNotFound: true}, true},
		{&net.DNSError{IsTimeout: true}, false},
		{&net.DNSError{IsTemporary: true}, false},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(116)}, true}, // certificate required
		{&net.OpError{Op: "remote error", Err: tls.AlertError(80)}, false}, // internal error
		{&net.OpError{Op: "local error", Err: tls.AlertError(116)}, false},
		{&net.OpError{Op: "remote error", Err: errRefused}, false},
		{errBadProxy, true},
		{errRefused, false},
		{context.DeadlineExceeded, false},
	} {
		if got := Permanent(fmt.Errorf("wrapped: %w", tt.err)); got != tt.want {
			t.Errorf("Permanent(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
