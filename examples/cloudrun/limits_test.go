package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestLimits stalls the database at one step of a webhook at a time. The limit meant
// for that step is short: no step before it has the same. All other limits are longer
// than the test waits.
func TestLimits(t *testing.T) {
	const short, never = time.Second, time.Hour
	stall := upstashtest.Stall(upstashtest.BeforeExec)
	for _, tt := range []struct {
		name                 string
		path                 string
		patience, recordTime time.Duration
		any, write           []upstashtest.Fault
		status               int
	}{
		{"the look-up", "POST /webhook", short, never, []upstashtest.Fault{stall}, nil, 503},
		{"the Add", "POST /webhook", never, short, nil, []upstashtest.Fault{stall}, 200},
		{"the probe", "GET /ready", short, never, []upstashtest.Fault{stall}, nil, 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.patience, b.recordTime = tt.patience, tt.recordTime
			b.server.Inject(tt.any...)
			b.server.InjectWrites(tt.write...)
			method, path, _ := strings.Cut(tt.path, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("x"))
			r.Header.Set("Webhook-Id", "a")
			answer := make(chan int, 1)
			go func() {
				w := httptest.NewRecorder()
				b.routes().ServeHTTP(w, r)
				answer <- w.Code
			}()
			select {
			case status := <-answer:
				if status != tt.status {
					t.Errorf("status %d, want %d", status, tt.status)
				}
			case <-time.After(testenv.Patience):
				t.Fatal("no answer came")
			}
		})
	}
}

// TestWorkUntilItsEnd has work that goes on to the very end of its time. If it has
// failed then, the answer is a 500; if it succeeded, the record has its own time. The
// clock is virtual: it stands still while the database is asked.
func TestWorkUntilItsEnd(t *testing.T) {
	b := newBench(t)
	synctest.Test(t, func(t *testing.T) {
		for _, fails := range []bool{true, false} {
			b.process = func(ctx context.Context, _ []byte) error {
				<-ctx.Done()
				if fails {
					return ctx.Err()
				}
				return nil
			}
			began, want := time.Now(), http.StatusOK
			if fails {
				want = http.StatusInternalServerError
			}
			if w := b.post(t.Context(), "a"); w.Code != want {
				t.Fatalf("status %d, want %d", w.Code, want)
			}
			if took := time.Since(began); took != b.patience {
				t.Errorf("the answer came after %v, want %v", took, b.patience)
			}
			if recorded, err := b.handled.Exists(t.Context(), "a"); err != nil || recorded == fails {
				t.Errorf("Exists of the webhook: %v, %v, want %v", recorded, err, !fails)
			}
		}
	})
}

// TestGrace adds up the limits: a request whose first byte came before SIGTERM
// must end before the process does.
func TestGrace(t *testing.T) {
	s, err := newService(newBench(t).client, "handled", windowConfig, pay)
	if err != nil {
		t.Fatal(err)
	}
	handling := s.patience + s.recordTime + answerTime
	if longest := headerTime + handling; longest >= grace {
		t.Errorf("a request may take %v, want less than the %v that the end of the process waits", longest, grace)
	}
	if handling >= writeTime {
		t.Errorf("a webhook may take %v, want less than the %v of its connection", handling, writeTime)
	}
	if readTime >= s.patience {
		t.Errorf("a body may take %v, want less than the %v there are to handle it", readTime, s.patience)
	}
}

// TestSlowSender ends the service while two senders hold their bodies back. The
// service reads the body of one of them only. The clock is virtual.
func TestSlowSender(t *testing.T) {
	b := newBench(t)
	synctest.Test(t, func(t *testing.T) {
		listen, shutdown := serve(t, b)
		unread := listen.dial(t, "abc") // it has no id
		reading := listen.dial(t, "", "Webhook-Id: a", "Expect: 100-continue")
		wantStatus(t, reading, 100) // the service has begun to read
		if _, err := reading.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // net/http drops a request whose handler has not begun
		ended := make(chan error, 1)
		go func() { ended <- shutdown() }()
		wantStatus(t, reading, 408)
		wantStatus(t, unread, 400)
		if err := <-ended; err != nil {
			t.Errorf("Shutdown with two slow senders: %v, want none", err)
		}
	})
}

// TestSenderThatReadsNothing: a sender that takes no answer must not delay the
// end of the service. Its connection has no buffer, so the first answer blocks.
// The clock is virtual.
func TestSenderThatReadsNothing(t *testing.T) {
	b := newBench(t)
	synctest.Test(t, func(t *testing.T) {
		listen, shutdown := serve(t, b)
		listen.dial(t, strings.Repeat("x", 100))
		synctest.Wait() // the answer is being written
		began := time.Now()
		if err := shutdown(); err != nil {
			t.Errorf("Shutdown with a sender that reads no answer: %v, want none", err)
		}
		if took := time.Since(began); took >= writeTime {
			t.Errorf("Shutdown took %v, as long as net/http waits for any sender", took)
		}
	})
}

// serve starts the service. Its end has as much time as in main.
func serve(t *testing.T, b *bench) (listen *listener, shutdown func() error) {
	t.Helper()
	listen = &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := newServer(b.routes())
	go func() { _ = server.Serve(listen) }()
	return listen, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), grace)
		defer cancel()
		return server.Shutdown(ctx)
	}
}

// listener accepts the connections of dial, which have no buffers.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// dial sends the header of a webhook with a body of 100 bytes, and then body,
// which may be shorter.
func (l *listener) dial(t *testing.T, body string, header ...string) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	l.conns <- theirs
	header = append([]string{"POST /webhook HTTP/1.1", "Host: x", "Content-Length: 100"}, header...)
	if _, err := fmt.Fprintf(ours, "%s\r\n\r\n%s", strings.Join(header, "\r\n"), body); err != nil {
		t.Fatal(err)
	}
	return ours
}

// wantStatus reads the header of one answer.
func wantStatus(t *testing.T, conn net.Conn, want int) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%v, want an answer with status %d", err, want)
	}
	if resp.StatusCode != want {
		t.Fatalf("status %d, want %d", resp.StatusCode, want)
	}
}
