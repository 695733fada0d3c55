package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// bench is a service with a database of its own. It records the work.
type bench struct {
	*service
	server *upstashtest.Server
	mu     sync.Mutex // of worked
	worked []string   // bodies, in order
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	b := &bench{server: upstashtest.NewServer(tb)}
	// The client has no timeout. The service itself ends a stalled request.
	client := b.server.Client(upstash.WithTimeout(0), upstash.WithRetry(1), upstash.WithBackoff(0, 0))
	var err error
	b.service, err = newService(client, "handled", smallWindow(), func(_ context.Context, body []byte) error {
		switch string(body) {
		case "fails":
			return errors.New("the work's own fault")
		case "panics":
			panic("the work's own fault")
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.worked = append(b.worked, string(body))
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	b.patience, b.recordTime = testenv.Patience, testenv.Patience // the machine may be slow
	return b
}

func smallWindow() bloom.WindowConfig {
	cfg := windowConfig
	cfg.Capacity = 1000
	return cfg
}

// post sends a webhook whose body is its id.
func (b *bench) post(ctx context.Context, id string) *httptest.ResponseRecorder {
	return b.send(ctx, id, id)
}

func (b *bench) send(ctx context.Context, id, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/webhook", strings.NewReader(body))
	if id != "" {
		r.Header.Set("Webhook-Id", id)
	}
	w := httptest.NewRecorder()
	b.routes().ServeHTTP(w, r)
	return w
}

// deliver sends a webhook until the answer is 200, as senders do, and returns
// all answers.
func (b *bench) deliver(t *testing.T, id string) (answers []string) {
	t.Helper()
	for range 10 {
		w := b.post(t.Context(), id)
		if w.Code == http.StatusOK {
			return append(answers, strings.TrimSpace(w.Body.String()))
		}
		answers = append(answers, http.StatusText(w.Code))
	}
	t.Fatalf("%s was never answered with 200: %q", id, answers)
	return nil
}

func wantAll(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestForgetsEachIDByItself: a window has no end at which it forgets everything.
// An id is found for a day after its own Add, however old the window is, and
// forgotten after three.
func TestForgetsEachIDByItself(t *testing.T) {
	b := newBench(t)
	for _, step := range []struct {
		id   string
		wait time.Duration // before
		want string
	}{
		{"a", 0, "new"},
		{"b", 23 * time.Hour, "new"},
		{"a", 30 * time.Minute, "duplicate"},
		{"b", 23 * time.Hour, "duplicate"},
		{"c", 20 * time.Hour, "new"},
		{"a", 7 * time.Hour, "new"}, // 73 h 30 min
		{"c", 16 * time.Hour, "duplicate"},
		{"c", 100 * time.Hour, "new"}, // the window itself has expired
	} {
		b.server.FastForward(step.wait)
		wantAll(t, fmt.Sprint(step.id, " after ", step.wait), b.deliver(t, step.id), step.want)
	}
	wantAll(t, "worked", b.worked, "a", "b", "c", "a", "c")
}

// TestFaults checks the cases of the README's table: the answers to a sender,
// and how often the work was done after a duplicate arrived as well.
func TestFaults(t *testing.T) {
	type faults []upstashtest.Fault
	down := upstashtest.BadGateway(upstashtest.BeforeExec)
	lost := upstashtest.Drop(upstashtest.AfterExec)
	const busy = "Service Unavailable"
	for _, tt := range []struct {
		name        string
		lookUp, add faults // each has one retry
		answers     []string
		worked      int
	}{
		{"look-up fails", faults{down, down}, nil, []string{busy, "new"}, 1},
		{"look-up retried", faults{lost}, nil, []string{"new"}, 1},
		{"Add fails", nil, faults{down, down}, []string{"new"}, 2},
		{"Add retried, not executed before", nil, faults{down}, []string{"new"}, 1},
		{"Add uncertain", nil, faults{lost}, []string{"new"}, 1},
		{"Add executed, never answered", nil, faults{lost, lost}, []string{"new"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.server.Inject(tt.lookUp...)
			b.server.InjectWrites(tt.add...) // passes the TIME of the first Add by
			wantAll(t, "answers", b.deliver(t, "a"), tt.answers...)
			b.deliver(t, "a")
			if len(b.worked) != tt.worked {
				t.Errorf("the work was done %d times, want %d", len(b.worked), tt.worked)
			}
		})
	}
}

// After work that fails or panics the sender gets an answer and tries again, and the
// log line has a severity.
func TestFailedWorkIsTriedAgain(t *testing.T) {
	b := newBench(t)
	for _, outcome := range []string{"fails", "panics"} {
		log := captureLog(t)
		if w := b.send(t.Context(), outcome, outcome); w.Code != http.StatusInternalServerError {
			t.Errorf("work that %s: status %d, want 500", outcome, w.Code)
		}
		if s := log.String(); !strings.Contains(s, "level=ERROR") || !strings.Contains(s, "the work's own fault") {
			t.Errorf("work that %s: the log is %q, want level=ERROR and the work's own fault", outcome, s)
		}
		w := b.send(t.Context(), outcome, "succeeds")
		wantAll(t, "answer", []string{w.Body.String()}, "new\n")
	}
	wantAll(t, "worked", b.worked, "succeeds", "succeeds")
}

// TestSenderGoesAway ends the request during the work, which would stop if its
// context ended. The work is finished all the same, and the sender's next
// attempt is a duplicate.
func TestSenderGoesAway(t *testing.T) {
	b := newBench(t)
	ctx, gone := context.WithCancel(t.Context())
	work := b.process
	b.process = func(ctx context.Context, body []byte) error {
		gone()
		if err := ctx.Err(); err != nil {
			return err
		}
		return work(ctx, body)
	}
	b.post(ctx, "a")
	b.process = work
	wantAll(t, "answers", b.deliver(t, "a"), "duplicate")
	wantAll(t, "worked", b.worked, "a")
}

// TestConcurrent sends webhooks at once, each twice. Both attempts may do the
// work, because a window is no lock. No webhook is left out, and all are
// recorded.
func TestConcurrent(t *testing.T) {
	b := newBench(t)
	const ids = 20
	var wg sync.WaitGroup
	for i := range 2 * ids {
		wg.Go(func() {
			if w := b.post(t.Context(), fmt.Sprint(i%ids)); w.Code != http.StatusOK {
				t.Errorf("%d: status %d, want 200", i%ids, w.Code)
			}
		})
	}
	wg.Wait()
	slices.Sort(b.worked)
	if n := len(slices.Compact(b.worked)); n != ids {
		t.Errorf("the work was done for %d webhooks, want %d", n, ids)
	}
	for i := range ids {
		wantAll(t, "answers", b.deliver(t, fmt.Sprint(i)), "duplicate")
	}
}

func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault upstashtest.Fault
		want  string
	}{
		{"the database's own", upstashtest.RateLimit(40 * time.Second), "40"},
		{"a second", upstashtest.ErrorObject("ERR max requests limit exceeded"), "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.server.Inject(tt.fault)
			w := b.post(t.Context(), "a")
			if got := w.Header().Get("Retry-After"); w.Code != 503 || got != tt.want {
				t.Errorf("status %d, Retry-After %q, want 503 and %q", w.Code, got, tt.want)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	b := newBench(t)
	if w := b.post(t.Context(), ""); w.Code != http.StatusBadRequest {
		t.Errorf("no id: status %d, want 400", w.Code)
	}
	if w := b.post(t.Context(), strings.Repeat("x", maxBody+1)); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body over the limit: status %d, want 413", w.Code)
	}
	if n := b.server.Stats().Requests; n != 0 || len(b.worked) != 0 {
		t.Errorf("%d requests to the database, %d times worked, want none", n, len(b.worked))
	}
}

func TestProbes(t *testing.T) {
	b := newBench(t)
	get := func(path string) int {
		w := httptest.NewRecorder()
		b.routes().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code
	}
	if alive, ready := get("/alive"), get("/ready"); alive != 200 || ready != 200 {
		t.Errorf("up: alive %d, ready %d, want 200 and 200", alive, ready)
	}
	b.server.Close()
	if alive, ready := get("/alive"), get("/ready"); alive != 200 || ready != 503 {
		t.Errorf("database gone: alive %d, ready %d, want 200 and 503", alive, ready)
	}
}

// The window gets ten times as many ids as it is sized for, most of them from others.
// Still no new webhook is lost.
func TestOverCapacityNothingIsDropped(t *testing.T) {
	b := newBench(t)
	log := captureLog(t)
	postNew := func(name string, n int) {
		t.Helper()
		for i := range n {
			if w := b.post(t.Context(), fmt.Sprint(name, i)); w.Body.String() != "new\n" {
				t.Fatalf("%s webhook %d: got %q, want new", name, i, w.Body)
			}
		}
	}
	postNew("first", 1200)
	if !b.full.Load() || !strings.Contains(log.String(), "over its capacity") {
		t.Error("neither the service nor its log says that the window is over its capacity, want both")
	}
	ids := make([]string, 9000)
	for i := range ids {
		ids[i] = fmt.Sprint("other", i)
	}
	if _, err := b.handled.AddAll(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	postNew("last", 100)
	other, err := newService(b.server.Client(), "handled", smallWindow(), b.process)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	other.routes().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
	if w.Code != http.StatusOK || !other.full.Load() {
		t.Errorf("an instance that starts with an overfull window is ready: %d, full: %v",
			w.Code, other.full.Load())
	}
}

func captureLog(t *testing.T) *bytes.Buffer {
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(old) })
	return &log
}
