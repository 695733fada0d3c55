package transporttest

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

func (s suite) testRequest(t *testing.T) {
	type seen struct {
		method, path, host, body string
		length                   int64
		header                   http.Header
	}
	got := make(chan seen, 1)
	url, _ := httpServer(t, anyIPv4, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, r.Host, string(body), r.ContentLength, r.Header}
	})
	const path, body = "/base%20path/pipeline", `[["GET","k"]]`
	mustSend(t, s.transport(t, url), newRequest(url+path, body))
	g := <-got
	if g.method != "POST" || g.path != path || g.host != strings.TrimPrefix(url, "http://") {
		t.Errorf("the server got %s %s of host %s, want POST %s of %s", g.method, g.path, g.host, path, url)
	}
	if g.body != body || g.length != int64(len(body)) {
		t.Errorf("the server got body %q, announced as %d bytes, want %q", g.body, g.length, body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer secret-token", "Upstash-Sync-Token": "",
	} {
		if v := g.header.Values(name); len(v) != 1 || v[0] != want {
			t.Errorf("%s: %q, want one %q", name, v, want)
		}
	}
	if g.header.Get("Cookie") != "" || g.header.Get("Referer") != "" {
		t.Errorf("the server got %v, want no Cookie and no Referer", g.header)
	}
}

func (s suite) testBodies(t *testing.T) {
	url, _ := httpServer(t, anyIPv4, echo)
	s.wantBodies(t, url)
}

// wantBodies wants bodies back that fit into one TLS record, and longer ones.
func (s suite) wantBodies(t *testing.T, url string) {
	t.Helper()
	tr := s.transport(t, url)
	for _, body := range []string{
		"[]",
		`["SET","ключ","\u0000 日本語 🙂"]`,
		strings.Repeat("4", 4096),
		strings.Repeat("x", 100_000),
		strings.Repeat("0123456789abcdef", 900_000/16),
		"[]",
	} {
		resp := mustSend(t, tr, newRequest(url+"/", body))
		if resp.StatusCode != 200 || string(resp.Body) != body {
			t.Errorf("status %d, %d bytes, want 200 and the %d of the request back",
				resp.StatusCode, len(resp.Body), len(body))
		}
	}
}

func (s suite) testHosts(t *testing.T) {
	for _, addr := range []string{anyIPv4, "[::1]:0"} {
		s.sub(t, addr, func(t *testing.T) {
			url, _ := httpServer(t, addr, echo)
			resp := mustSend(t, s.transport(t, url), newRequest(url+"/", "hello"))
			if string(resp.Body) != "hello" {
				t.Errorf("got %q, want \"hello\" back", resp.Body)
			}
		})
	}
}

func (s suite) testResponseHeaders(t *testing.T) {
	sent := make(chan string, 2)
	url, _ := httpServer(t, anyIPv4, func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Upstash-Sync-Token")
		w.Header().Set("upstash-sync-token", "state-7")
		w.Header().Set("Retry-After", "12")
		w.WriteHeader(http.StatusTooManyRequests)
		if r.Header.Get("Upstash-Sync-Token") != "" { // the second answer has chunks
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, `{"error":"ERR max requests limit exceeded"}`)
	})
	c := s.client(t, url)
	for range 2 {
		_, err := c.Do(t.Context(), upstash.Cmd("PING"))
		var server *upstash.Error
		if !errors.As(err, &server) || server.StatusCode != 429 || server.RetryAfter != 12*time.Second {
			t.Fatalf("got %v, want status 429 and Retry-After 12 s", err)
		}
	}
	if first, second := <-sent, <-sent; first != "" || second != "state-7" {
		t.Errorf("sync tokens sent: %q, then %q, want none, then state-7", first, second)
	}
}

func (s suite) testResponseForms(t *testing.T) {
	const interim = "HTTP/1.1 100 Continue\r\n\r\n"
	long := "X: " + strings.Repeat("x", 8000) + "\r\n"
	for name, tt := range map[string]struct{ answer, want string }{
		"length":            {withLength(`{"result":1}`), `{"result":1}`},
		"empty":             {withLength(""), ""},
		"no content":        {"HTTP/1.1 204 No Content\r\n\r\n", ""},
		"one chunk":         {chunked(`{"result":1}`), `{"result":1}`},
		"chunks":            {chunked(`{"resu`, `lt":1`, `}`), `{"result":1}`},
		"chunk extension":   {strings.Replace(chunked("abc"), "3\r\n", "3;x=y\r\n", 1), "abc"},
		"until close":       {untilClose(`{"result":1}`), `{"result":1}`},
		"HTTP/1.0":          {"HTTP/1.0 200 OK\r\n\r\nold", "old"},
		"after 103":         {strings.Replace(interim, "100", "103", 1) + interim + withLength("abc"), "abc"},
		"after 100":         {interim + withLength("abc"), "abc"},
		"long header":       {strings.Replace(withLength("ok"), "Content", long+"Content", 1), "ok"},
		"lower-case header": {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "ok"},
	} {
		s.sub(t, name, func(t *testing.T) {
			url := answering(t, tt.answer)
			resp := mustSend(t, s.transport(t, url), newRequest(url+"/", "[]"))
			if string(resp.Body) != tt.want {
				t.Errorf("body %q, want %q", resp.Body, tt.want)
			}
			if resp.StatusCode/100 != 2 {
				t.Errorf("status %d, want 2xx", resp.StatusCode)
			}
		})
	}
}

func (s suite) testKeepAlive(t *testing.T) {
	url, conns := httpServer(t, anyIPv4, echo)
	tr := s.transport(t, url)
	for i := range 5 {
		body := strconv.Itoa(i)
		if resp := mustSend(t, tr, newRequest(url+"/", body)); string(resp.Body) != body {
			t.Errorf("call %d: got %q, want its own number back", i, resp.Body)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for 5 calls in a row, want 1", n)
	}
}
