package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestInRuntime runs the built function as Lambda does, through the Runtime
// API, against a database that fails in between.
func TestInRuntime(t *testing.T) {
	const timeout = testenv.Patience // of an invocation
	db := upstashtest.NewServer(t)
	s := newSandbox(t, build(t, "attemptTime", "lookTime", "recordTime"), db)

	t.Log("a duplicate within the batch, a message whose work fails")
	r := s.invoke("1", timeout, order("a", "Elm St"), order("b", ""), order("a", "Elm St"), order("c", "Oak St"))
	wantIDs(t, "redelivered", failures(t, r), "b")
	wantIDs(t, "shipped", s.shipped(), "a", "c")

	t.Log("a duplicate across batches, the failed message again")
	r = s.invoke("2", timeout, order("a", "Elm St"), order("b", "Ash St"), order("d", "Fir St"))
	wantIDs(t, "redelivered", failures(t, r))
	wantIDs(t, "shipped", s.shipped(), "b", "d")

	t.Log("the database fails")
	db.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.InternalError(upstashtest.BeforeExec)
	})
	r = s.invoke("3", timeout, order("e", "Yew St"), order("a", "Elm St"))
	wantError(t, r, "HTTP status 500", db)

	t.Log("it stalls: the function answers, although the database never does")
	db.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.Stall(upstashtest.BeforeExec)
	})
	r = s.invoke("4", 3*time.Second, order("e", "Yew St"))
	wantError(t, r, "deadline exceeded", db)

	t.Log("it is back: what failed is delivered again")
	db.InjectFunc(nil)
	r = s.invoke("5", timeout, order("e", "Yew St"), order("a", "Elm St"))
	wantIDs(t, "redelivered", failures(t, r))
	wantIDs(t, "shipped", s.shipped(), "e")
}

// TestStalledAddInRuntime lets the look-up through and stalls the Add after it.
// The work is done, so the function must say so long before its deadline: after
// 3 s, its handler.recordTime. If Lambda had to kill the process at the
// deadline, each delivery would do the work again.
func TestStalledAddInRuntime(t *testing.T) {
	const timeout = testenv.Patience // of an invocation
	db := upstashtest.NewServer(t)
	s := newSandbox(t, build(t, "attemptTime", "lookTime"), db)
	db.InjectWrites(upstashtest.Stall(upstashtest.BeforeExec))
	deadline := time.Now().Add(timeout)
	r := s.invoke("stalled", timeout, order("a", "Elm St"), order("b", ""))
	if late := time.Since(deadline); late > 0 {
		t.Errorf("answered %v after the deadline, want before it", late)
	}
	wantIDs(t, "redelivered", failures(t, r), "b")
	wantIDs(t, "shipped", s.shipped(), "a")
	if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "not recorded") {
		t.Errorf("warnings %q, want one that the work is not recorded", s.warnings)
	}
	failures(t, s.invoke("back", timeout, order("a", "Elm St")))
	wantIDs(t, "shipped, not having been recorded", s.shipped(), "a")
}

// TestStartInRuntime looks at the window that a function with a seed made, starts
// one for a real database without a seed, which ends in the init phase, and one
// whose database cannot be reached.
func TestStartInRuntime(t *testing.T) {
	db := upstashtest.NewServer(t)
	path := build(t, "attemptTime", "lookTime", "recordTime")
	s := newSandbox(t, path, db)
	failures(t, s.invoke("1", testenv.Patience, order("a", "Elm St")))
	cfg := windowConfig
	for _, seed := range []uint64{8213, 0} {
		cfg.Seed = seed
		w, err := bloom.NewWindow(db.Client(), "orders:done", cfg)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := w.Exists(t.Context(), "message:a"); found != (seed != 0) {
			t.Errorf("seed %d: found %t, %v", seed, found, err)
		}
	}

	cmd := exec.Command(path)
	cmd.Env = []string{"UPSTASH_REDIS_REST_URL=https://127.0.0.1:1", "UPSTASH_REDIS_REST_TOKEN=x"}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "set UPBLOOM_SEED") {
		t.Errorf("without a seed: %v, %s", err, out)
	}

	db.Close()
	s = newSandbox(t, path, db)
	wantError(t, s.invoke("1", testenv.Patience, order("a", "Elm St")), "the command did not run", db)
}

// order returns a message about an order. Without an address the work on it
// fails.
func order(id, address string) events.SQSMessage {
	return events.SQSMessage{
		MessageId: id,
		Body:      fmt.Sprintf(`{"order":%q,"address":%q}`, id, address),
	}
}

// wantError checks the message of a failed invocation.
func wantError(t *testing.T, r result, want string, db *upstashtest.Server) {
	t.Helper()
	var e struct{ ErrorMessage string }
	if err := json.Unmarshal(r.body, &e); r.kind != "error" || err != nil {
		t.Fatalf("%s: %s", r.kind, r.body)
	}
	for _, part := range []string{want, "which messages are done is not known"} {
		if !strings.Contains(e.ErrorMessage, part) {
			t.Errorf("the function's error does not say %q: %s", part, e.ErrorMessage)
		}
	}
	if strings.Contains(e.ErrorMessage, db.Token) {
		t.Errorf("the function's error shows the token: %s", e.ErrorMessage)
	}
}

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
		"UPBLOOM_SEED=8213", // which a real database has to have
	}
	cmd.Stderr = os.Stderr
	s.logs = testenv.Lines(tb, cmd) // killed at the end, as by Lambda
	return s
}

// build makes the bootstrap of provided.al2023 with README's command, but for
// this machine, which may be slow: the patient constants of main.go are long.
func build(tb testing.TB, patient ...string) string {
	tb.Helper()
	dir := tb.TempDir()
	path, overlay := filepath.Join(dir, "bootstrap"), filepath.Join(dir, "overlay.json")
	text, err := os.ReadFile("main.go")
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range patient {
		value := regexp.MustCompile(`(\t` + name + ` += ).*`)
		if !value.Match(text) {
			tb.Fatalf("main.go has no constant %s", name)
		}
		text = value.ReplaceAll(text, fmt.Appendf(nil, "${1}%d", testenv.Patience))
	}
	from, err := filepath.Abs("main.go")
	if err != nil {
		tb.Fatal(err)
	}
	to := filepath.Join(dir, "main.go")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {from: to}})
	if err := errors.Join(err, os.WriteFile(to, text, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		tb.Fatal(err)
	}
	line := pages.Command(tb, "README.md", "GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build ")
	line.Replace(tb, "bootstrap", path)
	cmd := exec.Command(line.Args[0], append([]string{line.Args[1], "-overlay", overlay}, line.Args[2:]...)...)
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
	case <-time.After(testenv.Patience):
		tb.Fatalf("waited in vain until %s", what)
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
