package recording

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/jarcoal/httpmock"

	"github.com/upbloom/upbloom/upstash"
)

var (
	errReplayNotSent  = errors.New("the recorded attempt was not sent")
	errReplayNoAnswer = errors.New("the recorded attempt had no answer")
)

// player answers requests from a recording, each exchange once. It is safe for
// concurrent use.
type player struct {
	tb        testing.TB
	file      string
	exchanges []exchange

	mu             sync.Mutex
	left           map[string][]int // indexes of unused exchanges, by the shape of the request
	made, recorded numbers          // this run's drawn numbers by those of the file, and the reverse
	settled        map[string]bool  // see settledIn
	used           []bool
	count          int  // requests so far
	over           bool // the test has ended: tb must not be called
}

func newPlayer(tb testing.TB, file string, rec recording) *player {
	p := &player{
		tb: tb, file: file, exchanges: rec.Exchanges,
		left: make(map[string][]int), used: make([]bool, len(rec.Exchanges)),
		made: make(numbers), recorded: make(numbers), settled: settledIn(rec.Exchanges),
	}
	for i, x := range rec.Exchanges {
		k := x.Request.shape(p.isSettled)
		p.left[k] = append(p.left[k], i)
	}
	return p
}

// key returns a string that differs for different requests: a method, a path
// and an encoding contain no space.
func (q recordedRequest) key() string {
	return q.line() + " " + string(bySum(q.bytes()))
}

// line returns the request without its body.
func (q recordedRequest) line() string {
	if q.Encoding == "" {
		return q.Method + " " + q.Path
	}
	return q.Method + " " + q.Path + " (" + q.Encoding + ")"
}

// respond is the httpmock.Responder.
func (p *player) respond(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	x, ok := p.take(requestOf(req, "", body))
	switch {
	case !ok:
		return refusal(), nil
	case x.Response.Failure == failureNotSent:
		return nil, upstash.NotSent(errReplayNotSent)
	case x.Response.Failure == failureNoAnswer:
		return nil, errReplayNoAnswer
	}
	return x.Response.http(), nil
}

func (a recordedResponse) http() *http.Response {
	resp := httpmock.NewBytesResponse(a.Status, a.bytes())
	for name, value := range map[string]string{"Content-Type": a.ContentType, "Retry-After": a.RetryAfter} {
		if value != "" {
			resp.Header.Set(name, value)
		}
	}
	return resp
}

// refusal returns a 400. A client does not retry it, and knows that the request
// did not run.
func refusal() *http.Response {
	return recordedResponse{
		Status:      http.StatusBadRequest,
		ContentType: "application/json",
		payload:     newPayload([]byte(`{"error":"ERR not in the recording: see the test's log"}`)),
	}.http()
}

// take returns the exchange of a request and marks it as used. If there is
// none, it fails the test.
func (p *player) take(q recordedRequest) (exchange, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	shape, sums := q.shape(isDrawn), hasSums(q.bytes())
	for _, sameForm := range []bool{true, false} { // of the scripts: a NOSCRIPT answers a SHA-1
		for i, n := range p.left[shape] {
			x := p.exchanges[n]
			if sameForm && hasSums(x.Request.bytes()) != sums || !p.bind(x.Request, q) {
				continue
			}
			p.left[shape] = slices.Delete(p.left[shape], i, i+1)
			p.used[n] = true
			x.Response.payload = x.Response.replaced(p.made)
			return x, true
		}
	}
	if !p.over {
		p.tb.Errorf("upstashtest: %s: %s", p.file, p.unexpected(q))
	}
	return exchange{}, false
}

// finish fails the test if a recorded request was never made.
func (p *player) finish() {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if text := p.missing(); text != "" && !p.tb.Skipped() {
		p.tb.Errorf("upstashtest: %s: %s", p.file, text)
	}
}
