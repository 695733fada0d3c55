package upstashtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

const textMethod = "ERR method not allowed: use HEAD, GET, POST or PUT"

// drainLimit is how many bytes of a body the server reads beyond its limit.
// Some clients write their whole body before they read the answer.
const drainLimit = 64 << 20

// mostAnnounced is the most bytes of memory a Content-Length alone gets a
// request. The rest is allocated as the body arrives.
const mostAnnounced = 1 << 20

// answer is a whole response.
type answer struct {
	status      int
	contentType string
	syncToken   string
	body        wire.Body
}

// request is a request after all checks.
type request struct {
	wire.Batch
	readOnly bool
	enc      wire.Encoding
	token    string // the sync token, for reading one's own writes
	arrival  string // the address where it arrived
}

// serve answers one request. It checks the method, the token, the size, the
// encoding and the form, in this order. Then it draws the fault and runs the
// commands.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	handle(r.Context().Value(bundleKey{}), true)
	s.count.requests.Add(1)
	allowOrigins(w.Header())
	if r.Method == http.MethodOptions {
		preflight(w, r)
		return
	}
	if s.faults.early() {
		s.refuseEarly(w)
		return
	}
	q, refusal := s.parse(r)
	if refusal != nil {
		s.write(w, *refusal)
		return
	}
	f := s.faults.next(q.Batch, func() RequestInfo { return s.info(q) })
	var a answer
	if f.Executes() {
		a = s.execute(r.Context(), q, f)
	}
	s.reply(w, r, q, f, a)
}

// parse checks a request and reads its commands. If a check fails, it returns
// the refusal.
func (s *Server) parse(r *http.Request) (request, *answer) {
	var q request
	var ok bool
	switch r.Method {
	case http.MethodHead, http.MethodGet, http.MethodPost, http.MethodPut:
	default:
		return q, refuse(q.enc, http.StatusMethodNotAllowed, textMethod)
	}
	if q.readOnly, ok = s.authorize(r); !ok {
		return q, refuse(q.enc, http.StatusUnauthorized, textUnauthorized)
	}
	body, tooLong, err := s.readBody(r)
	if err != nil { // cut short, and the missing bytes could change the command
		return q, refuse(q.enc, http.StatusBadRequest, "ERR the request body ended too early")
	}
	if tooLong > 0 {
		return q, refuse(q.enc, http.StatusRequestEntityTooLarge, tooLarge(s.cfg.maxRequest, tooLong))
	}
	enc, err := wire.ParseEncoding(r.Header)
	if err != nil {
		return q, refuse(q.enc, http.StatusBadRequest, err.Error())
	}
	if q.Batch, err = wire.Parse(r, body, s.cfg.floatNumbers); err != nil {
		return q, refuse(enc, http.StatusBadRequest, err.Error())
	}
	if enc.RESP2 && q.Form == wire.MultiExec {
		return q, refuse(q.enc, http.StatusBadRequest,
			"ERR the resp2 response format is not supported for /multi-exec")
	}
	q.enc, q.token, q.arrival = enc, r.Header.Get(wire.HeaderSyncToken), arrival(r)
	return q, nil
}

// readBody reads the body, or returns its length if it is above the limit.
func (s *Server) readBody(r *http.Request) (body []byte, tooLong int64, err error) {
	var read bytes.Buffer
	read.Grow(int(max(0, min(r.ContentLength, mostAnnounced))) + bytes.MinRead)
	_, err = read.ReadFrom(io.LimitReader(r.Body, s.cfg.maxRequest+1))
	body = read.Bytes()
	s.count.bytesIn.Add(int64(len(body)))
	if err != nil || int64(len(body)) <= s.cfg.maxRequest {
		return body, 0, err
	}
	rest, _ := io.Copy(io.Discard, io.LimitReader(r.Body, drainLimit))
	s.count.bytesIn.Add(rest)
	return nil, max(r.ContentLength, int64(len(body))+rest), nil
}

func tooLarge(limit, actual int64) string {
	return fmt.Sprintf("ERR max request size exceeded. Limit: %d bytes, Actual: %d bytes. "+
		"See https://upstash.com/docs/redis/troubleshooting/max_request_size_exceeded for details",
		limit, actual)
}

func refuse(e wire.Encoding, status int, text string) *answer {
	return &answer{status: status, contentType: e.ContentType(), body: e.Failure(text)}
}

func (s *Server) write(w http.ResponseWriter, a answer) {
	a.body.SendTo(w, func(size int64) { s.writeHeader(w, a, size) })
}

// writeHeader sends all but the body. It counts the body first: a client that
// has read the answer must find it counted.
func (s *Server) writeHeader(w http.ResponseWriter, a answer, size int64) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	if a.syncToken != "" {
		h.Set(wire.HeaderSyncToken, a.syncToken)
	}
	s.count.bytesOut.Add(size)
	w.WriteHeader(a.status)
}
