package transporttest

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// Make returns a new transport for the server at url. If it has a Close method,
// it is closed at the end of the test, and must then have no goroutine left.
type Make func(t *testing.T, url string) upstash.Transport

// Exception is a case that a transport cannot pass, for a reason outside of
// it. The test then skips with the reason, or, in the case "odd", asks for less.
type Exception struct {
	Case   string // as under -run, without the outer test: "response forms/after 100"
	Reason string

	met bool
}

type namedCase struct {
	name string
	test func(*testing.T)
}

func (s suite) run(t *testing.T, cases []namedCase) {
	for _, c := range cases {
		s.sub(t, c.name, c.test)
	}
	if flag.Lookup("test.run").Value.String() != "" {
		return // perhaps not all cases ran
	}
	for _, e := range s.exceptions {
		if !e.met {
			t.Errorf("there is no case %q to make an exception of", e.Case)
		}
	}
}

type suite struct {
	newTransport Make
	exceptions   []Exception
	prefix       string // of the names of the cases
}

// sub runs a case, unless it is an exception, and fails it if it leaves a goroutine.
func (s suite) sub(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		if e := s.isException(t); e != nil {
			t.Skip(e.Reason)
		}
		checkLeaks(t)
		test(t)
	})
}

// isException returns the exception that the test is, or nil.
func (s suite) isException(t *testing.T) *Exception {
	name := strings.TrimPrefix(t.Name(), s.prefix)
	for i := range s.exceptions {
		if e := &s.exceptions[i]; strings.ReplaceAll(e.Case, " ", "_") == name {
			e.met = true
			return e
		}
	}
	return nil
}

// patience is how long a call may take before it counts as hung. Nothing here
// needs more than a few milliseconds.
const patience = testenv.Patience

const testLimit = 1 << 20

// checkLeaks fails the test if it leaves a goroutine. It must be called first:
// its check then runs last.
func checkLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { wantNothingLeft(t, before) })
}

// wantNothingLeft wants no goroutine that was not there before. goleak waits for half
// a second at most, so a slow machine gets several checks.
func wantNothingLeft(t *testing.T, before goleak.Option) {
	t.Helper()
	err := goleak.Find(before)
	for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); {
		err = goleak.Find(before)
	}
	if err != nil {
		t.Error("what the calls left behind: ", err)
	}
}

// transport makes a transport and closes it at the end of the test.
func (s suite) transport(t *testing.T, url string) upstash.Transport {
	t.Helper()
	tr := s.newTransport(t, url)
	t.Cleanup(func() { closeTransport(tr) })
	return tr
}

func closeTransport(tr upstash.Transport) {
	if c, ok := tr.(interface{ Close() error }); ok {
		_ = c.Close()
	}
}

// client makes a client of one attempt a call, with its own transport.
func (s suite) client(t *testing.T, url string) *upstash.Client {
	t.Helper()
	return limited(t, s.transport(t, url), url, patience)
}

// limited makes a client of one attempt a call, which ends at a limit.
func limited(t *testing.T, tr upstash.Transport, url string, limit time.Duration,
	opts ...upstash.Option,
) *upstash.Client {
	t.Helper()
	return clientOf(t, tr, url, append(opts, upstash.WithRetry(0), upstash.WithTimeout(limit))...)
}

// clientOf makes a client of a transport.
func clientOf(t *testing.T, tr upstash.Transport, url string, opts ...upstash.Option) *upstash.Client {
	t.Helper()
	c, err := upstash.New(url, "secret-token", append(opts, upstash.WithTransport(tr))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newRequest(url, body string) *upstash.Request {
	return &upstash.Request{
		URL: url,
		Header: []upstash.Header{
			{Name: "Content-Type", Value: "application/json"},
			{Name: "Authorization", Value: "Bearer secret-token"},
			{Name: "Upstash-Sync-Token", Value: ""},
		},
		Body: []byte(body), MaxResponse: testLimit,
	}
}

// send runs one request, and ends the test if it hangs.
func send(t *testing.T, tr upstash.Transport, req *upstash.Request) (upstash.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var resp upstash.Response
	err := tr.RoundTrip(ctx, req, &resp)
	if ctx.Err() != nil {
		t.Fatalf("RoundTrip took over %v: %v, want an answer or an error", patience, err)
	}
	return resp, err
}

// mustSend is send for a request that must succeed.
func mustSend(t *testing.T, tr upstash.Transport, req *upstash.Request) upstash.Response {
	t.Helper()
	resp, err := send(t, tr, req)
	if err != nil {
		t.Fatalf("RoundTrip: %v, want an answer", err)
	}
	return resp
}

// fails makes a call that must fail. Its error says whether a retry is safe, and
// shows nothing that was sent.
func fails(t *testing.T, c *upstash.Client, safe bool) error {
	t.Helper()
	_, err := c.Do(t.Context(), upstash.Cmd("INCR", "secret-key"))
	if err == nil || upstash.SafeToRetry(err) != safe {
		t.Fatalf("got %v, want an error; a retry is safe: %v", err, safe)
	}
	noSecrets(t, err)
	return err
}

// callError ends the test unless err is a *CallError.
func callError(t *testing.T, err error) *upstash.CallError {
	t.Helper()
	var call *upstash.CallError
	if !errors.As(err, &call) {
		t.Fatalf("got %v, want a *CallError", err)
	}
	return call
}
