//go:build !wasm

package httptransport_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// vanishing is a server that answers nothing more over the connections that were
// open when vanish was called.
type vanishing struct {
	*httptest.Server
	over chan struct{} // closed at the end of the test

	mu     sync.Mutex
	seen   map[string]bool // addresses of clients
	gone   map[string]bool
	waits  int // how many requests are to come before any is answered
	all    chan struct{}
	silent chan struct{} // gets one for each request that is not answered
}

func newVanishing(t *testing.T) *vanishing {
	t.Helper()
	v := &vanishing{
		over: make(chan struct{}), seen: make(map[string]bool), all: make(chan struct{}),
		silent: make(chan struct{}, 100),
	}
	v.Server = httptest.NewUnstartedServer(v)
	v.EnableHTTP2 = true
	v.StartTLS()
	t.Cleanup(v.Close)
	t.Cleanup(func() { close(v.over) })
	return v
}

func (v *vanishing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.ReadAll(r.Body)
	v.mu.Lock()
	v.seen[r.RemoteAddr] = true
	gone, all := v.gone[r.RemoteAddr], v.all
	if v.waits > 0 {
		if v.waits--; v.waits == 0 {
			close(all)
		}
	}
	v.mu.Unlock()
	if gone {
		v.silent <- struct{}{}
		<-v.over
		return
	}
	<-all
	_, _ = io.WriteString(w, `{"result":1}`)
}

// open makes n calls at once.
func (v *vanishing) open(t *testing.T, c *upstash.Client, n int) {
	t.Helper()
	v.mu.Lock()
	v.waits = n
	v.mu.Unlock()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := c.Do(t.Context(), upstash.Cmd("GET", "k")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func (v *vanishing) vanish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone = make(map[string]bool)
	for addr := range v.seen {
		v.gone[addr] = true
	}
}

// back takes vanish back.
func (v *vanishing) back() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone = nil
}

func (v *vanishing) connections() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.seen)
}

// TestAKeptConnectionOfHTTP2Vanished: the next call opens another. A caller who left
// says nothing. transporttest has the same for HTTP/1.1.
func TestAKeptConnectionOfHTTP2Vanished(t *testing.T) {
	errLeft := errors.New("left")
	v := newVanishing(t)
	roots := x509.NewCertPool()
	roots.AddCert(v.Certificate())
	tr := httptransport.New(nil)
	defer tr.Close()
	httptransport.Trust(tr, roots)
	client := func(limit time.Duration) *upstash.Client {
		c, err := upstash.New(v.URL, "token", upstash.WithTransport(tr),
			upstash.WithRetry(0), upstash.WithTimeout(limit))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	patient := client(testenv.Patience)
	// untilSent makes attempts of ever more time until one is sent, which gets no answer.
	untilSent := func(attempt func(limit time.Duration) error) {
		for limit := 20 * time.Millisecond; attempt(limit) != nil && len(v.silent) == 0; {
			limit *= 2
		}
		for len(v.silent) > 0 {
			<-v.silent
		}
	}
	v.open(t, patient, 5)
	kept := v.connections()

	v.vanish()
	ctx, leave := context.WithCancelCause(t.Context())
	go func() {
		<-v.silent
		leave(errLeft)
	}()
	if _, err := patient.Do(ctx, upstash.Cmd("GET", "k")); !errors.Is(err, errLeft) {
		t.Errorf("a caller who left: %v", err)
	}
	untilSent(func(limit time.Duration) error { // a caller who left little time
		soon, stop := context.WithTimeout(t.Context(), limit)
		defer stop()
		_, err := patient.Do(soon, upstash.Cmd("GET", "k"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who left little time: %v", err)
		}
		return err
	})
	v.back()
	if _, err := patient.Do(t.Context(), upstash.Cmd("GET", "k")); err != nil || v.connections() != kept {
		t.Errorf("after a caller who left: %v, %d connections, want the old %d", err, v.connections(), kept)
	}

	v.vanish()
	untilSent(func(limit time.Duration) error {
		_, err := client(limit).Do(t.Context(), upstash.Cmd("GET", "k"))
		return err
	})
	for range 3 {
		if _, err := patient.Do(t.Context(), upstash.Cmd("GET", "k")); err != nil {
			t.Errorf("after an attempt over a connection that is gone: %v", err)
		}
	}
	if v.connections() == kept {
		t.Error("no new connection")
	}
}
