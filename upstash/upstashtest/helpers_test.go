package upstashtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/goccy/go-json"
	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is one HTTP request to a Server, with its Token unless told otherwise.
type call struct {
	method string // POST if empty
	url    string // if empty, the server's
	path   string
	body   string
	header http.Header
	token  string // the header's value after "Bearer "; "-" for none
}

// String names a call in a failure.
func (c call) String() string { return fmt.Sprintf("%s %s %.60s", c.method, c.path, c.body) }

// result is what came back.
type result struct {
	status int
	body   string
	header http.Header
}

func do(tb testing.TB, s *Server, c call) result {
	tb.Helper()
	resp, err := try(tb, s, c)
	if err != nil {
		tb.Fatal(err)
	}
	return resp
}

// wantBody makes a call, and checks the body of its answer.
func wantBody(t *testing.T, s *Server, c call, want string) {
	t.Helper()
	if got := do(t, s, c); got.body != want {
		t.Errorf("%v: got %d %s, want %s", c, got.status, got.body, want)
	}
}

// exec runs a command on the database itself.
func exec(tb testing.TB, s *Server, args ...string) any {
	tb.Helper()
	v, err := s.Exec(args...)
	if err != nil {
		tb.Fatalf("%s: %v", args[0], err)
	}
	return v
}

func wantExec(t *testing.T, s *Server, want any, args ...string) {
	t.Helper()
	if got := exec(t, s, args...); got != want {
		t.Errorf("%.60q: got %v, want %v", args, got, want)
	}
}

func try(tb testing.TB, s *Server, c call) (result, error) {
	tb.Helper()
	return tryIn(tb.Context(), tb, s, c)
}

func tryIn(ctx context.Context, tb testing.TB, s *Server, c call) (result, error) {
	tb.Helper()
	if c.method == "" {
		c.method = http.MethodPost
	}
	if c.url == "" {
		c.url = s.URL
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url+c.path, strings.NewReader(c.body))
	if err != nil {
		tb.Fatal(err)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	switch c.token {
	case "-":
	case "":
		req.Header.Set("Authorization", "Bearer "+s.Token)
	default:
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	// A new transport, because no connection may outlive the call.
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: s.CertPool()}}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr, CheckRedirect: noRedirect}
	resp, err := client.Do(req)
	if err != nil {
		return result{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return result{resp.StatusCode, string(body), resp.Header}, err
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func header(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func withTestRedis(tb testing.TB) Option {
	tb.Helper()
	return WithRedis(testenv.Redis(tb))
}

// quoted returns s as JSON.
func quoted(s string) string {
	text, _ := json.MarshalWithOption(s, json.DisableHTMLEscape()) // no string fails
	return string(text)
}
