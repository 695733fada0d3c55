package recording

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/upbloom/upbloom/upstash"
)

// maxRecorded is the longest answer to record, in bytes. The recorder holds all
// answers in memory, and the file is for people to read.
const maxRecorded = 64 << 20

var errTooLongToRecord = errors.New("an answer above 64 MiB is not recorded: ask for less at once")

// recorder is an http.RoundTripper that records requests and answers. It is
// safe for concurrent use.
type recorder struct {
	next http.RoundTripper
	base string // the path of the database's URL, without a slash at its end

	mu        sync.Mutex
	exchanges []*exchange
	secrets   secrets
	stopped   bool
}

// RoundTrip sends the request once, and reads its whole answer.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	x := r.begin(req, body)

	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	out := req.Clone(ctx)
	out.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := r.next.RoundTrip(out)
	if err != nil {
		if !connected.Load() {
			r.end(x, recordedResponse{Failure: failureNotSent})
			err = upstash.NotSent(err) // only this recorder has read the body
		}
		return nil, err
	}
	answer, err := readAnswer(resp)
	if err != nil {
		return nil, err
	}
	r.end(x, recordedResponse{
		Status:      resp.StatusCode,
		ContentType: resp.Header.Get("Content-Type"),
		RetryAfter:  resp.Header.Get("Retry-After"),
		payload:     newPayload(answer),
	})
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}

func readAnswer(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxRecorded+1))
	if err == nil && len(answer) > maxRecorded {
		err = errTooLongToRecord
	}
	return answer, err
}

// begin adds an exchange to the recording. Until end is called, the exchange
// says that no answer came.
func (r *recorder) begin(req *http.Request, body []byte) *exchange {
	x := &exchange{
		Request:  requestOf(req, r.base, body),
		Response: recordedResponse{Failure: failureNoAnswer},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.exchanges = append(r.exchanges, x)
		r.secrets.learn(req)
	}
	return x
}

func (r *recorder) end(x *exchange, a recordedResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.Response = a
}

// stop ends the recording and returns it. Requests still under way are not
// recorded any further.
func (r *recorder) stop() (recording, secrets) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	rec := recording{Version: recordingVersion}
	for _, x := range r.exchanges {
		rec.Exchanges = append(rec.Exchanges, *x)
	}
	rec.settle()
	return rec, r.secrets
}

// requestOf returns the part of a request by which it is recognized. base is
// the path of the database's URL.
func requestOf(req *http.Request, base string, body []byte) recordedRequest {
	path := strings.TrimPrefix(req.URL.EscapedPath(), base)
	q := recordedRequest{Method: req.Method, Path: path, payload: newPayload(body)}
	switch {
	case strings.EqualFold(req.Header.Get("Upstash-Response-Format"), encodingRESP2):
		q.Encoding = encodingRESP2
	case strings.EqualFold(req.Header.Get("Upstash-Encoding"), encodingBase64):
		q.Encoding = encodingBase64
	}
	return q
}

// basePath returns the path of a database's URL, without slashes at its end.
// For a URL that cannot be parsed it returns "": no client is made for it.
func basePath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.TrimRight(u.EscapedPath(), "/")
}
