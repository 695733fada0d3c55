package transporttest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/upstash"
)

// RunSockets tests what the transports that open sockets themselves must do
// beside that of Run and RunTLS.
func RunSockets(t *testing.T, newTransport MakeTLS, exceptions ...Exception) {
	s := newTLSSuite(t, newTransport, exceptions)
	s.run(t, []namedCase{
		{"over before", s.testOverBefore},
		{"silent handshakes", s.testSilentHandshakes},
		{"first address drops", s.testFirstAddressDrops},
		{"no connection is free", s.testNoConnectionIsFree},
		{"each its own", func(t *testing.T) { s.testEachItsOwn(t, false) }},
		{"each its own, with strays", func(t *testing.T) { s.testEachItsOwn(t, true) }},
		{"TLS", s.testTLS},
		{"cause of a break", s.testCauseOfABreak},
		{"odd", s.testOdd},
		{"bounded memory", s.testBoundedMemory},
		{"early success", s.testEarlySuccess},
		{"refusal before the reset", s.testRefusalBeforeTheReset},
		{"dial hangs", s.testDialHangs},
		{"dial hangs until the limit", s.testDialHangsUntilTheLimit},
		{"hung up while idle", s.testHungUpWhileIdle},
		{"vanished", s.testVanished},
		{"not vanished", s.testNotVanished},
		{"younger stay", s.testYoungerStay},
	})
}

// maxConns is how many connections a transport opens at most.
const maxConns = 256

// testSilentHandshakes has more dials than there are connections end in a
// handshake that the server never goes on with. They leave nothing behind, and
// once the server speaks again, the next call has its answer.
func (s tlsSuite) testSilentHandshakes(t *testing.T) {
	var silent atomic.Bool
	var met atomic.Int64
	silent.Store(true)
	url := rawTLS(t, func(c net.Conn, _ <-chan struct{}) {
		if silent.Load() {
			met.Add(1)
			_, _ = io.Copy(io.Discard, c)
			return
		}
		over := tls.Server(c, &tls.Config{Certificates: s.certificates})
		readRequest(over)
		_, _ = over.Write([]byte(withLength(`{"result":1}`)))
	})
	tr := s.transport(t, url)
	before := goleak.IgnoreCurrent()
	wastes(t, tr, url, &met)
	wantNothingLeft(t, before)
	silent.Store(false)
	mustSend(t, tr, newRequest(url+"/", "[]"))
}

// wastes makes calls that end with their own limit, until more dials than there
// are connections have met the server.
func wastes(t *testing.T, tr upstash.Transport, url string, met *atomic.Int64) {
	t.Helper()
	c := limited(t, tr, url, 100*time.Millisecond)
	for start := time.Now(); met.Load() <= maxConns; {
		if time.Since(start) > patience {
			t.Fatalf("%d dials have met the server, want more than %d", met.Load(), maxConns)
		}
		var group sync.WaitGroup
		for range maxConns {
			group.Go(func() {
				if _, err := c.Do(t.Context(), upstash.Cmd("INCR", "k")); err == nil || !upstash.SafeToRetry(err) {
					t.Errorf("got %v, want an error that is safe to retry: nothing was sent", err)
				}
			})
		}
		group.Wait()
	}
}

// testOverBefore: if an attempt's limit has passed before its request is sent, over
// a new connection or a used one, nothing is sent, and the error says so.
func (s suite) testOverBefore(t *testing.T) {
	var requests atomic.Int64
	url, _ := httpServer(t, anyIPv4, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		echo(w, r)
	})
	tr := s.transport(t, url)
	c := limited(t, tr, url, time.Nanosecond)
	for n := range int64(2) {
		_, err := c.Do(t.Context(), upstash.Cmd("INCR", "k"))
		if !errors.Is(err, context.DeadlineExceeded) || !upstash.SafeToRetry(err) {
			t.Errorf("got %v, SafeToRetry %v, want the limit's end of a request that was not sent",
				err, upstash.SafeToRetry(err))
		}
		if mustSend(t, tr, newRequest(url+"/", "[]")); requests.Load() != n+1 {
			t.Errorf("%d requests, want %d", requests.Load(), n+1)
		}
	}
}

// testFirstAddressDrops: if the first address of a name answers no dial, there is
// time left for the second.
func (s suite) testFirstAddressDrops(t *testing.T) {
	dropping := strings.TrimPrefix(blackHole(t, func() {}), "http://")
	_, port, _ := net.SplitHostPort(dropping)
	httpServer(t, "127.0.0.2:"+port, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":1}`)
	})
	resolveTo(t, "127.0.0.1", "127.0.0.2")
	url := "http://two.test:" + port
	tr := s.transport(t, url)
	for limit := time.Second; ; limit *= 2 { // a slow machine may need more
		c := limited(t, tr, url, limit, upstash.WithInsecureHTTP())
		_, err := c.Do(t.Context(), upstash.Cmd("INCR", "k"))
		if err == nil {
			return
		}
		if limit > 4*time.Second {
			t.Fatal(err)
		}
	}
}
