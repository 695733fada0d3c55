//go:build !wasm

package upstash_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestAdvice: if no connection was made, the error asks its reader one
// question, the same over any transport.
func TestAdvice(t *testing.T) {
	closed := "http://" + testenv.ClosedAddr(t)
	redis, hangsUp := saysNothing(t), "https://"+hangsUp(t)
	const noREST = "is the URL that of a REST API, and not of Redis itself?"
	const allows = "is the URL right, does a firewall allow this host?"
	const runs, exists = "is the URL right, does the server run?", "is the URL right, does the database still exist?"
	noHost := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	returning := func(err error) upstash.Option {
		return upstash.WithTransport(httptransport.New(&http.Client{Transport: fails{err}}))
	}
	for _, tt := range []struct {
		name, url string
		transport upstash.Option
		want      string // "" for none
	}{
		{"default, refused", closed, upstash.WithRetry(0), runs},
		{"httptransport, refused", closed, upstash.WithTransport(httptransport.New(nil)), runs},
		{"httptransport, a client, refused", closed, upstash.WithTransport(httptransport.New(&http.Client{})), runs},
		{"default, closed in the handshake", hangsUp, nil, allows},
		{"httptransport, closed in the handshake", hangsUp, upstash.WithTransport(httptransport.New(nil)), allows},
		{"default, Redis itself", redis, nil, noREST},
		{"httptransport, Redis itself", redis, upstash.WithTransport(httptransport.New(nil)), noREST},
		{"httptransport, no host", "https://db.test", returning(noHost), exists},
		{"httptransport, a read failed", "https://db.test", returning(&net.OpError{Op: "read", Err: refused.Err}), ""},
		{"own transport, no host", "https://db.test", upstash.WithTransport(sendsNothing(noHost)), exists},
		{"own transport, refused", "https://db.test", upstash.WithTransport(sendsNothing(refused)), runs},
	} {
		c, err := upstash.New(tt.url, "token", tt.transport, upstash.WithRetry(2), upstash.WithBackoff(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(t.Context(), upstash.Cmd("INCR", "k"))
		if err == nil || strings.Count(err.Error(), "?") != strings.Count(tt.want, "?") ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want the question %q alone", tt.name, err, tt.want)
		}
	}
}

// A server of TLS answers plain HTTP with a status 400 and words of its own.
func TestAdviceOfPlainHTTP(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	for name, transport := range overAnyTransport() {
		c, err := upstash.New(strings.Replace(s.URL, "https", "http", 1), "token", transport)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(t.Context(), upstash.Cmd("GET", "k"))
		if err == nil || !strings.Contains(err.Error(), ": should the URL begin with https://?") {
			t.Errorf("%s: got %v, want a question about https", name, err)
		}
	}
}

// Redis takes a TLS handshake for the beginning of a command, and waits for its
// end.
func TestAdviceOfASilentHandshake(t *testing.T) {
	for name := range overAnyTransport() {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close() // net/http goes on with a handshake that nobody waits for
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			silent := func(context.Context, string, string) (net.Conn, error) { return ours, nil }
			var over upstash.Option
			if name != "default" {
				over = upstash.WithTransport(httptransport.New(&http.Client{
					Transport: &http.Transport{DialContext: silent},
				}))
			}
			c, err := upstash.New("https://db.test:6379", "token", over, upstash.WithRetry(0))
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Do(dialctx.With(t.Context(), silent), upstash.Cmd("INCR", "k"))
			if err == nil || !strings.Contains(err.Error(), ": is it Redis' own port, and not that of its REST API?") ||
				!errors.Is(err, context.DeadlineExceeded) || !upstash.SafeToRetry(err) {
				t.Errorf("%s: got %v, want a deadline, a question about Redis, and nothing sent", name, err)
			}
		})
	}
}

func overAnyTransport() map[string]upstash.Option {
	return map[string]upstash.Option{
		"default": nil, "httptransport": upstash.WithTransport(httptransport.New(nil)),
	}
}

// TestNoAdviceAfterAnAnswer: a server that has answered speaks HTTP.
func TestNoAdviceAfterAnAnswer(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	if _, err := c.Do(t.Context(), upstash.Cmd("INCR", "k")); err != nil {
		t.Fatal(err)
	}
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	if _, err := c.Do(t.Context(), upstash.Cmd("INCR", "k")); err == nil || strings.Contains(err.Error(), "?") {
		t.Errorf("got %v, want an error without a question", err)
	}
}

// TestAdviceOfAnEndedContext: if the context ended a dial, the error asks
// nothing.
func TestAdviceOfAnEndedContext(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(refused)
	for _, tt := range []struct {
		name      string
		ctx       context.Context
		transport upstash.Transport
	}{
		{"an ended context", ended, sendsNothing(refused)},
		{"an ended attempt", t.Context(), own(waits)},
	} {
		c, err := upstash.New("https://db.test", "token", upstash.WithTransport(tt.transport),
			upstash.WithTimeout(time.Millisecond), upstash.WithRetry(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.Do(tt.ctx, upstash.Cmd("INCR", "k")); err == nil || strings.Contains(err.Error(), "?") {
			t.Errorf("%s: got %v, want no question", tt.name, err)
		}
	}
}

// hangsUp is the address of a server that closes a connection once it has read
// something.
func hangsUp(t *testing.T) (addr string) {
	t.Helper()
	return testenv.Serve(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 16<<10)) // all of it, or the close would be a reset
	})
}

// saysNothing is the URL of a server that closes the connection when it has read
// a request.
func saysNothing(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // all of it, or the close would be a reset
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// fails is a RoundTripper without a network.
type fails struct{ err error }

func (f fails) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// own is a transport without a network.
type own func(ctx context.Context, resp *upstash.Response) error

func (f own) RoundTrip(ctx context.Context, _ *upstash.Request, resp *upstash.Response) error {
	return f(ctx, resp)
}

func sendsNothing(err error) own {
	return func(context.Context, *upstash.Response) error { return upstash.NotSent(err) }
}

// waits dials until its context ends.
func waits(ctx context.Context, _ *upstash.Response) error {
	<-ctx.Done()
	return upstash.NotSent(&net.OpError{Op: "dial", Err: ctx.Err()})
}

const pathQuestion = "the URL has a path, /get/foo: is it right?"

// TestPathIsAskedAbout: if the URL has a path by mistake, the error asks about
// it, over any transport and in any form of request.
func TestPathIsAskedAbout(t *testing.T) {
	s := upstashtest.NewServer(t)
	for name, opts := range map[string][]upstash.Option{
		"default":       nil,
		"httptransport": {upstash.WithTransport(httptransport.New(nil))},
	} {
		c, err := upstash.New(s.URL+"/get/foo/", s.Token, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		get := upstash.Cmd("GET", "k")
		_, one := c.Do(t.Context(), get)
		_, batch := c.Pipeline(t.Context(), get, get)
		_, all := c.MultiExec(t.Context(), get, get)
		for form, err := range map[string]error{"Do": one, "Pipeline": batch, "MultiExec": all} {
			if err == nil || strings.Count(err.Error(), pathQuestion) != 1 {
				t.Errorf("%s, %s: got %v, want the question %q", name, form, err, pathQuestion)
			}
		}
	}
}

// TestPathIsNotAskedAbout: with the right path, the database's own errors raise
// no question, and without a path none does.
func TestPathIsNotAskedAbout(t *testing.T) {
	for _, tt := range []struct {
		path, body string
		status     int
		want       bool
	}{
		{"/get/foo", `{"error":"ERR no such command"}`, 400, true},
		{"/get/foo", "<html>", 404, true},
		{"/get/foo", `{"result":"OK"}`, 200, true}, // one result, where an array was due
		{"/get/foo", `{"error":"WRONGTYPE another kind"}`, 400, false},
		{"/get/foo", `{"error":"ERR max request size exceeded"}`, 400, false},
		{"/get/foo", `{"error":"Unauthorized"}`, 401, false},
		{"/get/foo", `{"error":"ERR busy"}`, 500, false},
		{"/", `{"error":"ERR no such command"}`, 400, false},
	} {
		answer := func(_ context.Context, resp *upstash.Response) error {
			resp.StatusCode, resp.Body = tt.status, []byte(tt.body)
			return nil
		}
		c, err := upstash.New("https://db.test"+tt.path, "token", upstash.WithTransport(own(answer)), upstash.WithRetry(0))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Pipeline(context.Background(), upstash.Cmd("GET", "k"))
		if err == nil || strings.Contains(err.Error(), "is it right?") != tt.want {
			t.Errorf("%s, %d %s: %v, want a question: %v", tt.path, tt.status, tt.body, err, tt.want)
		}
	}
}
