package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// replayURL has a host that cannot exist (RFC 2606). No request leaves the
// process.
const (
	replayURL   = "https://recording.invalid"
	replayToken = "replayed"
)

// Replay is upstashtest.Replay. httpmock stands in for the network.
func Replay(tb testing.TB, file string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	rec, err := readRecording(file)
	if err != nil {
		tb.Fatalf("upstashtest: %v", err)
	}
	markDraws(tb)
	p := newPlayer(tb, file, rec)
	mock := httpmock.NewMockTransport()
	mock.RegisterNoResponder(p.respond) // for all methods and URLs alike

	all := []upstash.Option{sameClock(), upstash.WithBackoff(0, 0)} // which opts may change
	all = append(all, opts...)
	all = append(all, upstash.WithTransport(calls{httptransport.New(&http.Client{Transport: mock})}))
	client, err := upstash.New(replayURL, replayToken, all...)
	if err != nil {
		tb.Fatalf("upstashtest: making a client to replay with: %v", err)
	}
	tb.Cleanup(func() {
		_ = client.Close()
		p.finish()
	})
	return client
}

// sameClock stands still at the same moment in each run, so requests depend
// neither on the day nor on how long a run takes. The moment is far from any
// server's clock: if a call needs the time, it asks the server, and the
// recording has the answer.
func sameClock() upstash.Option {
	return door.WithClock(
		func() time.Time { return time.Unix(0, 0) }, func() time.Duration { return 0 }).(upstash.Option)
}

// calls notes in the context of each request which call of the test made it.
type calls struct{ next *httptransport.Transport }

type callKey struct{}

func (c calls) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	return c.next.RoundTrip(context.WithValue(ctx, callKey{}, caller()), req, resp)
}

// caller returns the function of this module that the test called, and where:
// "bloom.Filter.Add at webhook_test.go:12". A goroutine of a batch knows only
// the function.
func caller() string {
	const module = "github.com/upbloom/upbloom/"
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(2, stack[:])])
	function := ""
	for {
		f, more := frames.Next()
		own := strings.HasPrefix(f.Function, module+"upstash") || strings.HasPrefix(f.Function, module+"bloom")
		switch {
		case own && !strings.HasSuffix(f.File, "_test.go"):
			_, function, _ = strings.Cut(f.Function, module)
		case strings.HasPrefix(f.Function, "runtime."), !more:
			return plainName(function)
		default:
			return fmt.Sprintf("%s at %s:%d", plainName(function), filepath.Base(f.File), f.Line)
		}
	}
}

func plainName(function string) string {
	return strings.NewReplacer("(*", "", ")", "").Replace(function[strings.LastIndex(function, "/")+1:])
}

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
	shapes    []string   // of each exchange's request
	drawn     [][]string // by each exchange's request

	mu sync.Mutex
	pairs
	used  []bool
	count int  // requests so far
	fails bool // a request was not recorded
	over  bool // the test has ended: tb must not be called
}

func newPlayer(tb testing.TB, file string, rec recording) *player {
	p := &player{
		tb: tb, file: file, exchanges: rec.Exchanges, used: make([]bool, len(rec.Exchanges)),
		pairs: pairs{make(numbers), make(numbers)},
	}
	for _, x := range rec.Exchanges {
		shape, drawn := x.Request.shape()
		p.shapes, p.drawn = append(p.shapes, shape), append(p.drawn, drawn)
	}
	return p
}

// respond is the httpmock.Responder.
func (p *player) respond(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	call, _ := req.Context().Value(callKey{}).(string)
	x, ok := p.take(requestOf(req, "", body), call)
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
func (p *player) take(q recordedRequest, call string) (exchange, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	shape, ours := q.shape()
	for _, sameForm := range []bool{true, false} { // of the scripts: a NOSCRIPT answers a SHA-1
		for i, x := range p.exchanges {
			if p.used[i] || p.shapes[i] != shape || sameForm && x.Request.hasSums() != q.hasSums() ||
				!p.bind(p.drawn[i], ours) {
				continue
			}
			p.used[i] = true
			x.Response.payload = x.Response.replaced(p.made)
			return x, true
		}
	}
	if !p.over {
		p.fails = true
		p.tb.Errorf("upstashtest: %s: %s", p.file, p.unexpected(q, call))
	}
	return exchange{}, false
}

// finish fails the test if a recorded request was never made. If the test fails
// because of the recording, finish says how to make it anew.
func (p *player) finish() {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.tb.Skipped() {
		return
	}
	if text := p.missing(); text != "" {
		p.fails = true
		p.tb.Errorf("upstashtest: %s: %s", p.file, text)
	}
	if p.fails {
		p.tb.Logf("upstashtest: if the requests should differ, record %s anew: by Record, or in a test of"+
			" Recorded by\n    %s\nand UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN set", p.file, recordCommand(p.tb))
	}
}

// unexpected returns the text for a request that is not in the recording, or
// was made more often than recorded.
func (p *player) unexpected(q recordedRequest, call string) string {
	maker := ""
	if call != "" {
		maker = "\nmade by " + call
	}
	shape, _ := q.shape()
	known, left := false, false
	for i, recorded := range p.shapes {
		known, left = known || recorded == shape, left || recorded == shape && !p.used[i]
	}
	if known && !left { // else the numbers differ
		return fmt.Sprintf("request %d is made once more than recorded:\n%s", p.count, indent(summary(q)+maker))
	}
	closest, ok := p.closest(q)
	if !ok {
		return fmt.Sprintf("request %d is not in the recording, whose %d requests were all made before:\n%s",
			p.count, len(p.exchanges), indent(summary(q)+maker))
	}
	return fmt.Sprintf("request %d is not in the recording; the closest left is number %d:\n%s",
		p.count, closest+1, indent(difference(p.exchanges[closest].Request, p.like(q, closest))+maker))
}

// closest returns the index of the unused recorded request with the longest run
// of leading arguments in common with q, and of several the first. ok is false
// if none is left.
func (p *player) closest(q recordedRequest) (index int, ok bool) {
	best := -1
	for i, x := range p.exchanges {
		if p.used[i] {
			continue
		}
		got := p.like(q, i)
		score := firstDifference(commandsOf(x.Request, got)).before
		if x.Request.line() == got.line() {
			score++
		}
		if score > best {
			best, index = score, i
		}
	}
	return index, best >= 0
}

// missing returns the text for recorded requests that were never made, or "".
func (p *player) missing() string {
	n, first := 0, slices.Index(p.used, false)
	for _, used := range p.used {
		if !used {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d recorded requests were never made, first number %d:\n%s", n, len(p.used),
		first+1, indent(summary(p.exchanges[first].Request)))
}

// summary returns a request on one line.
func summary(q recordedRequest) string {
	commands := parseCommands(q.bytes())
	if len(commands[0]) == 0 {
		return q.line()
	}
	const shown = 5
	first := commands[0]
	text := q.line() + ": " + clip(first[0], 0) + following(first[1:], shown)
	if more := len(commands) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

// recordCommand returns the command that records anew in a test of Recorded.
func recordCommand(tb testing.TB) string {
	return recordVariable + "=1 go test -count=1 -run '^" + tb.Name() + "$'"
}

// recordVariable is the environment variable of Recorded.
const recordVariable = "UPBLOOM_RECORD"

// like is a request that was made, with the numbers of a recorded one, as far
// as they can be partners.
func (p *player) like(made recordedRequest, recorded int) recordedRequest {
	bound, theirs := maps.Clone(p.recorded), p.drawn[recorded]
	_, ours := made.shape()
	for i := range min(len(theirs), len(ours)) {
		if p.free(theirs[i], ours[i]) {
			bound[ours[i]] = theirs[i]
		}
	}
	return made.replaced(bound)
}
