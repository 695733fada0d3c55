//go:build !wasm

package jstest

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// The sizes of bodies, in bytes. The guest's tests have the same maxBody.
const (
	hugeBody = 64 << 20
	maxBody  = 1 << 20
)

// server misbehaves as a database or a proxy might. The path, which is part of
// the guest's URL for upstash.New, says how.
type server struct {
	*httptest.Server

	noticed  chan struct{} // a request began to stall, or its client left an endless body
	dropped  atomic.Int32  // stalled requests whose client went away
	followed atomic.Int32  // requests that came through a redirect
	written  atomic.Int64  // bytes of endless bodies taken by the guest
}

func newServer(tb testing.TB) *server {
	s := &server{noticed: make(chan struct{}, 16)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /echo/", s.echo)
	mux.HandleFunc("POST /noticed/", s.notice)
	mux.HandleFunc("POST /stall/", s.stall)
	mux.HandleFunc("POST /half/", s.half)
	mux.HandleFunc("POST /announced/", s.announced)
	mux.HandleFunc("POST /endless/", s.endless)
	mux.HandleFunc("POST /bomb/", s.bomb)
	mux.HandleFunc("POST /gzip/", s.gzip)
	mux.HandleFunc("POST /redirect/", s.redirect)
	mux.HandleFunc("POST /target", func(http.ResponseWriter, *http.Request) { s.followed.Add(1) })
	mux.HandleFunc("POST /reset/", s.reset)
	mux.HandleFunc("POST /cut/", s.cut)
	mux.HandleFunc("POST /busy/", s.busy)
	mux.HandleFunc("POST /later/", s.later)
	s.Server = httptest.NewServer(mux)
	tb.Cleanup(s.Close)
	return s
}

// echo answers with the body, the token and the sync token of the request.
func (s *server) echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Upstash-Sync-Token", "next")
	fmt.Fprintf(w, `{"result":[%q,%q,%q]}`, body,
		r.Header.Get("Authorization"), r.Header.Get("Upstash-Sync-Token"))
}

// notice answers once one of the events for which the guest waits has happened.
func (s *server) notice(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.noticed:
		io.WriteString(w, `{"result":"OK"}`)
	case <-r.Context().Done():
	}
}

func (s *server) stall(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // net/http notices a lost client only after this
	s.noticed <- struct{}{}
	<-r.Context().Done()
	s.dropped.Add(1)
}

// half stalls in the middle of its body.
func (s *server) half(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, `{"result":`)
	http.NewResponseController(w).Flush()
	s.stall(w, r)
}

func (s *server) announced(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", strconv.Itoa(hugeBody))
	s.pour(w)
}

func (s *server) endless(w http.ResponseWriter, _ *http.Request) { s.pour(w) }

func (s *server) pour(w io.Writer) {
	piece := []byte(strings.Repeat("x", 64<<10))
	for range hugeBody / len(piece) {
		n, err := w.Write(piece)
		s.written.Add(int64(n))
		if err != nil {
			s.noticed <- struct{}{}
			return
		}
	}
}

// bomb answers with a body that is short when compressed and too long when
// inflated.
func (s *server) bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	for range 64 {
		z.Write(make([]byte, maxBody))
	}
	z.Close()
}

func (s *server) gzip(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	io.WriteString(z, `{"result":"`+strings.Repeat("y", 10_000)+`"}`)
	z.Close()
}

func (s *server) redirect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/target", http.StatusTemporaryRedirect)
}

func (s *server) reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

func (s *server) cut(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "100")
	io.WriteString(w, `{"result":1}`)
	http.NewResponseController(w).Flush()
	s.reset(w, r)
}

func (s *server) busy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(http.StatusTooManyRequests)
	io.WriteString(w, `{"error":"ERR max requests limit exceeded"}`)
}

// later asks the client to wait before it tries again.
func (s *server) later(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(http.StatusServiceUnavailable)
}
