package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// sandbox is a function's view of Lambda: a Runtime API on loopback, and the
// function's process.
type sandbox struct {
	tb     testing.TB
	api    *httptest.Server
	next   chan invocation
	result chan result
	asked  chan struct{} // one for each request for the next invocation
	logs   <-chan string // the function's lines

	warnings []string // lines read by shipped
}

type invocation struct {
	id       string
	deadline time.Time
	payload  []byte
}

// result is the function's answer: kind is "response" or "error".
type result struct {
	id, kind string
	body     []byte
}

const runtimePath = "/2018-06-01/runtime/invocation/"

// newSandbox starts the function at path against db.
func newSandbox(tb testing.TB, path string, db *upstashtest.Server) *sandbox {
	tb.Helper()
	s := &sandbox{
		tb: tb, next: make(chan invocation), result: make(chan result, 1),
		asked: make(chan struct{}, 1),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+runtimePath+"next", s.serveNext)
	mux.HandleFunc("POST "+runtimePath+"{id}/{kind}", s.serveResult)
	s.api = httptest.NewServer(mux)
	tb.Cleanup(s.api.Close)
	cmd := exec.Command(path)
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + s.api.Listener.Addr().String(),
		"UPSTASH_REDIS_REST_URL=" + db.URL, "UPSTASH_REDIS_REST_TOKEN=" + db.Token,
	}
	cmd.Stderr = os.Stderr
	s.logs = testenv.Lines(tb, cmd) // killed at the end, as by Lambda
	return s
}

// build makes the bootstrap of provided.al2023 with README's command, but for
// this machine.
func build(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "bootstrap")
	line := pages.Command(tb, "README.md", "GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build ")
	line.Replace(tb, "bootstrap", path)
	cmd := exec.Command(line.Args[0], line.Args[1:]...)
	cmd.Env = append(append(os.Environ(), line.Env...), "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

func (s *sandbox) serveNext(w http.ResponseWriter, r *http.Request) {
	s.asked <- struct{}{}
	select {
	case <-r.Context().Done():
	case inv := <-s.next:
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
		_, _ = w.Write(inv.payload)
	}
}

func (s *sandbox) serveResult(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.WriteHeader(http.StatusAccepted)
	s.result <- result{r.PathValue("id"), r.PathValue("kind"), body}
}

// invoke gives the batch to the function when it asks for work, and returns its
// answer.
func (s *sandbox) invoke(id string, timeout time.Duration, batch ...events.SQSMessage) result {
	s.tb.Helper()
	payload, err := json.Marshal(events.SQSEvent{Records: batch})
	if err != nil {
		s.tb.Fatal(err)
	}
	await(s.tb, s.asked, "the function asks for the next invocation")
	s.next <- invocation{id, time.Now().Add(timeout), payload}
	r := await(s.tb, s.result, "the function answers")
	if r.id != id {
		s.tb.Fatalf("an answer to invocation %q, want %q", r.id, id)
	}
	return r
}

// shipped reads the log up to the end of a batch, and returns the orders whose
// work was done.
func (s *sandbox) shipped() (orders []string) {
	s.tb.Helper()
	for {
		text := await(s.tb, s.logs, "the function logs the end of the batch")
		var line struct{ Level, Msg, Order string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			s.tb.Fatalf("a log line that is not JSON: %s", text)
		}
		switch {
		case line.Level == "WARN":
			s.warnings = append(s.warnings, line.Msg)
		case line.Msg == "shipped":
			orders = append(orders, line.Order)
		case line.Msg == "batch":
			return orders
		}
	}
}

// await returns the next value of c. The guard is longer than any machine
// needs.
func await[T any](tb testing.TB, c <-chan T, what string) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		tb.Fatalf("waited 30 s until %s", what)
		panic("unreachable")
	}
}

// failures returns the message ids of a partial batch response.
func failures(tb testing.TB, r result) []string {
	tb.Helper()
	var resp events.SQSEventResponse
	if err := json.Unmarshal(r.body, &resp); r.kind != "response" || err != nil {
		tb.Fatalf("%s: %s", r.kind, r.body)
	}
	return failedIDs(resp)
}

// functionError returns the message of a failed invocation.
func functionError(tb testing.TB, r result) string {
	tb.Helper()
	var e struct{ ErrorMessage, ErrorType string }
	if err := json.Unmarshal(r.body, &e); r.kind != "error" || err != nil || e.ErrorMessage == "" {
		tb.Fatalf("%s: %s", r.kind, r.body)
	}
	return e.ErrorMessage
}
