//go:build !wasm

package httptransport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// vanishing is a server on pipes, and its listener. It answers nothing over the
// connections below gone.
type vanishing struct {
	pipes      chan net.Conn
	over       chan struct{}
	conns      atomic.Int64
	gone       atomic.Int64
	unanswered atomic.Int64 // requests
}

func (v *vanishing) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	v.pipes <- far
	return near, nil
}

func (v *vanishing) Accept() (net.Conn, error) {
	select {
	case c := <-v.pipes:
		return c, nil
	case <-v.over:
		return nil, net.ErrClosed
	}
}

func (v *vanishing) Close() error {
	close(v.over)
	return nil
}

func (v *vanishing) Addr() net.Addr { return &net.TCPAddr{} }

// numberKey is the key of a connection's number.
type numberKey struct{}

func (v *vanishing) number(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, numberKey{}, v.conns.Add(1))
}

func (v *vanishing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.ReadAll(r.Body)
	if r.ProtoMajor != 2 {
		http.Error(w, r.Proto, http.StatusHTTPVersionNotSupported)
		return
	}
	if r.Context().Value(numberKey{}).(int64) <= v.gone.Load() {
		v.unanswered.Add(1)
		<-r.Context().Done()
		return
	}
	time.Sleep(time.Millisecond)
	_, _ = io.WriteString(w, `{"result":1}`)
}

// TestAKeptConnectionOfHTTP2Vanished: the next call opens another. A caller who left
// says nothing. transporttest has the same for HTTP/1.1.
func TestAKeptConnectionOfHTTP2Vanished(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	synctest.Test(t, func(t *testing.T) {
		v := &vanishing{pipes: make(chan net.Conn), over: make(chan struct{})}
		server := &http.Server{
			Handler: v, ConnContext: v.number, ErrorLog: log.New(io.Discard, "", 0),
			// A pipe has no room for a ticket while the client writes.
			TLSConfig: &tls.Config{Certificates: s.TLS.Certificates, SessionTicketsDisabled: true},
		}
		go func() { _ = server.ServeTLS(v, "", "") }()
		defer server.Close()
		tr := httptransport.New(nil)
		defer tr.Close()
		httptransport.Trust(tr, roots)
		c, err := upstash.New("https://127.0.0.1", "token", upstash.WithTransport(tr), upstash.WithRetry(0))
		if err != nil {
			t.Fatal(err)
		}
		get := func(ctx context.Context) error {
			_, err := c.Do(dialctx.With(ctx, v.dial), upstash.Cmd("GET", "k"))
			return err
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := get(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		kept := v.conns.Load()

		v.gone.Store(kept)
		errLeft := errors.New("left")
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { leave(errLeft) })
		if err := get(ctx); !errors.Is(err, errLeft) {
			t.Errorf("a caller who left: %v", err)
		}
		for range 2 { // with an answer between them
			v.gone.Store(kept)
			soon, stop := context.WithTimeout(t.Context(), 2*time.Second)
			if err := get(soon); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a caller who left little time: %v", err)
			}
			stop()
			v.gone.Store(0)
			if err := get(t.Context()); err != nil || v.conns.Load() != kept {
				t.Errorf("after a caller who left: %v, %d connections, want the old %d", err, v.conns.Load(), kept)
			}
		}

		v.gone.Store(kept)
		if err := get(t.Context()); !errors.Is(err, context.DeadlineExceeded) || v.unanswered.Load() != 4 {
			t.Errorf("over a connection that is gone: %v, %d requests without an answer", err, v.unanswered.Load())
		}
		for range 3 {
			if err := get(t.Context()); err != nil {
				t.Errorf("after an attempt over a connection that is gone: %v", err)
			}
		}
		if v.conns.Load() != kept+1 {
			t.Errorf("%d connections, want one new beside %d", v.conns.Load(), kept)
		}

		// Callers who each leave too little time, until the silence has lasted.
		failed := 0
		v.gone.Store(v.conns.Load())
		for range 12 {
			soon, stop := context.WithTimeout(t.Context(), time.Second)
			if err := get(soon); err != nil {
				failed++
			}
			stop()
		}
		if failed != 3 {
			t.Errorf("%d of 12 calls of a second failed, want 3", failed)
		}

		// One who left enough, and another who came later.
		v.gone.Store(v.conns.Load())
		all.Go(func() {
			time.Sleep(2500 * time.Millisecond)
			soon, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			if err := get(soon); err == nil {
				t.Error("an answer over a connection that is gone")
			}
		})
		late, stop := context.WithTimeout(t.Context(), 4*time.Second)
		defer stop()
		if err := get(late); err == nil {
			t.Error("an answer over a connection that is gone")
		}
		all.Wait()
		if err := get(t.Context()); err != nil {
			t.Errorf("after a caller who left enough time: %v", err)
		}
	})
}
