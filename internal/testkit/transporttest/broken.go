package transporttest

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
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/upstash"
)

// testCauseOfABreak: the network's error stays visible, and so does the status if
// it has come.
func (s suite) testCauseOfABreak(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		reset  bool
		status int
	}{
		"closed before the first byte": {},
		"closed within the header":     {answer: "HTTP/1.1 200 OK\r\nConte"},
		"closed within the body":       {answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{", status: 200},
		"reset before the first byte":  {reset: true},
		"reset within the header":      {answer: "HTTP/1.1 200 OK\r\nConte", reset: true},
		"reset within the body": {
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{", reset: true, status: 200,
		},
		"reset within a chunk": {
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5", reset: true, status: 200,
		},
	} {
		s.sub(t, name, func(t *testing.T) {
			if tt.reset && runtime.GOOS == "windows" {
				t.Skip("Windows has an error of its own for a reset")
			}
			url := rawServer(t, func(c net.Conn, _ <-chan struct{}) {
				readRequest(c)
				_, _ = io.WriteString(c, tt.answer)
				if tt.reset {
					_ = c.(*net.TCPConn).SetLinger(0)
				}
			})
			call := callError(t, fails(t, s.client(t, url), false))
			ended := errors.Is(call, io.EOF) || errors.Is(call, io.ErrUnexpectedEOF)
			if ended == tt.reset || errors.Is(call, syscall.ECONNRESET) != tt.reset {
				t.Errorf("got %v; its end: %v, reset: %v", call, ended, errors.Is(call, syscall.ECONNRESET))
			}
			// A reset may overtake what came before it.
			if call.StatusCode != tt.status && !(tt.reset && call.StatusCode == 0) {
				t.Errorf("status %d, want %d", call.StatusCode, tt.status)
			}
		})
	}
}

// testEarlySuccess: a success that comes before the server has the whole request
// belongs to another one, also if the server then reads on: it gets no more than a
// part.
func (s suite) testEarlySuccess(t *testing.T) {
	text := strings.Repeat("x", 24<<20)
	for name, readsOn := range map[string]bool{"hangs up": false, "reads on": true} {
		s.sub(t, name, func(t *testing.T) {
			returned, got := make(chan struct{}), make(chan int64, 1)
			url := rawServer(t, func(c net.Conn, _ <-chan struct{}) {
				_, _ = io.ReadFull(c, make([]byte, 1000))
				_, _ = io.WriteString(c, withLength(`{"result":"OK"}`))
				<-returned
				if readsOn {
					n, _ := io.Copy(io.Discard, c)
					got <- n
				}
			})
			c := limited(t, s.transport(t, url), url, patience, upstash.WithMaxRequest(32<<20))
			_, err := c.Do(t.Context(), upstash.Cmd("SET", "k", text))
			close(returned)
			if call := callError(t, err); !upstash.SafeToRetry(err) || call.StatusCode != 0 || call.Attempts != 1 {
				t.Errorf("got %v, want an error of a request that was never sent whole", err)
			}
			if readsOn {
				if n := <-got; n >= int64(len(text)) {
					t.Error("the server got the whole request")
				}
			}
		})
	}
}

// testRefusalBeforeTheReset: a server may refuse a request for its size and hang up
// with most of it unread, which resets the connection. Its answer is not lost.
func (s suite) testRefusalBeforeTheReset(t *testing.T) {
	s.wantRefusal(t, rawServer(t, func(c net.Conn, wait <-chan struct{}) {
		closed := make(chan struct{})
		close(closed)
		refuse(c, closed)
	}))
}

// answering1 is a server over TLS that answers each request with 1.
func answering1(t *testing.T, set func(*tls.Config)) (url string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":1}`)
	}))
	s.TLS = &tls.Config{}
	set(s.TLS)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// testTLS: versions below 1.2, a certificate of somebody else, and one that nobody
// vouches for, are refused with the first attempt, before anything is sent.
func (s tlsSuite) testTLS(t *testing.T) {
	versions := func(least, most uint16) func(*tls.Config) {
		return func(c *tls.Config) { c.MinVersion, c.MaxVersion = least, most }
	}
	for name, tt := range map[string]struct {
		set     func(*tls.Config)
		untrust bool
		name    string // in place of 127.0.0.1
		want    string // in the error, "" for none
	}{
		"1.3":               {set: versions(tls.VersionTLS13, tls.VersionTLS13)},
		"1.2":               {set: versions(tls.VersionTLS10, tls.VersionTLS12)},
		"1.1":               {set: versions(tls.VersionTLS10, tls.VersionTLS11), want: "protocol version"},
		"1.0":               {set: versions(tls.VersionTLS10, tls.VersionTLS10), want: "protocol version"},
		"unknown authority": {untrust: true, want: "are root certificates installed here?"},
		"another name":      {name: "localhost", want: "certificate is valid for"},
		"asks for a certificate": {
			set: func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }, want: "certificate required",
		},
	} {
		s.sub(t, name, func(t *testing.T) {
			if tt.set == nil {
				tt.set = func(*tls.Config) {}
			}
			url := answering1(t, tt.set)
			if tt.name != "" {
				url = strings.Replace(url, "127.0.0.1", tt.name, 1)
			}
			tr := s.transport(t, url)
			if tt.untrust {
				tr = s.make(t, url, x509.NewCertPool())
				t.Cleanup(func() { closeTransport(tr) })
			}
			c := clientOf(t, tr, url, upstash.WithBackoff(0, 0), upstash.WithTimeout(patience))
			_, err := c.Do(t.Context(), upstash.Cmd("GET", "k"))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			call := callError(t, err)
			if call.Attempts != 1 || !strings.Contains(err.Error(), tt.want) || !upstash.SafeToRetry(err) {
				t.Errorf("got %v after %d attempts, want one and %q", err, call.Attempts, tt.want)
			}
		})
	}
}

// testNoConnectionIsFree: no more connections are opened than there may be, and a
// call that waits for one ends with its limit, before it has sent anything. When
// one is free again it is used.
func (s suite) testNoConnectionIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := s.newTransport(t, "http://localhost")
		c := limited(t, tr, "http://localhost", time.Minute)
		var mu sync.Mutex
		var ends []net.Conn
		ctx := dialctx.With(t.Context(), func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, far)
			return near, nil
		})
		var holding, waiting sync.WaitGroup
		for range maxConns {
			holding.Go(func() {
				if _, err := c.Do(ctx, upstash.Cmd("GET", "k")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		soon := limited(t, tr, "http://localhost", time.Second)
		for range 10 {
			waiting.Go(func() {
				_, err := soon.Do(ctx, upstash.Cmd("INCR", "k"))
				if !errors.Is(err, context.DeadlineExceeded) || !upstash.SafeToRetry(err) {
					t.Errorf("got %v, want the limit's end of a request that was not sent", err)
				}
			})
		}
		waiting.Wait()
		mu.Lock()
		if len(ends) != maxConns {
			t.Errorf("%d connections, want %d", len(ends), maxConns)
		}
		for _, end := range ends {
			go serveOnes(end)
		}
		mu.Unlock()
		holding.Wait()
		if _, err := soon.Do(ctx, upstash.Cmd("INCR", "k")); err != nil || len(ends) != maxConns {
			t.Errorf("%v, %d connections, want %d", err, len(ends), maxConns)
		}
		closeTransport(tr)
	})
}

func serveOnes(c net.Conn) {
	serve(c, func(*http.Request, string) bool { return say(c, withLength(`{"result":1}`)) })
}
