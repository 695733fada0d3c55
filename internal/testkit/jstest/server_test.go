//go:build !wasm

package jstest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// hugeBody is the length of bodies over the guest's limit, in bytes.
const hugeBody = 64 << 20

// server misbehaves as a database or a proxy might. The path, which is part of
// the guest's URL for upstash.New, says how.
type server struct {
	*httptest.Server

	noticed chan struct{} // a request began to stall, or its client left an endless body
	dropped atomic.Int32  // stalled requests whose client went away
	written atomic.Int64  // bytes of endless bodies taken by the guest
}

func newServer(tb testing.TB) *server {
	s := &server{noticed: make(chan struct{}, 16)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /answer/", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"result":1}`) })
	mux.HandleFunc("POST /noticed/", s.notice)
	mux.HandleFunc("POST /stall/", s.stall)
	mux.HandleFunc("POST /half/", s.half)
	mux.HandleFunc("POST /announced/", s.announced)
	mux.HandleFunc("POST /endless/", s.endless)
	mux.HandleFunc("POST /bomb/", compressed(strings.Repeat("x", hugeBody))) // inflated it is too long
	mux.HandleFunc("POST /gzip/", compressed(`{"result":"`+strings.Repeat("y", 10_000)+`"}`))
	mux.HandleFunc("POST /later/", s.later)
	s.Server = httptest.NewServer(mux)
	tb.Cleanup(s.Close)
	return s
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

// compressed answers with a body that is short on its way.
func compressed(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, body)
		z.Close()
	}
}

// later asks the client to wait before it tries again.
func (s *server) later(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(http.StatusServiceUnavailable)
}
