package upstash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/errtext"
)

func TestSafeToRetry(t *testing.T) {
	for want, errs := range map[bool][]error{
		true: {
			ErrArgument, ErrReadOnly, ErrClosed, ErrNoTransport,
			&Error{StatusCode: 400}, &Error{StatusCode: 200}, &Error{StatusCode: 401}, &Error{StatusCode: 429},
			&Error{StatusCode: 500, outcome: outcomeRead},
			&CallError{outcome: outcomeNotSent}, &CallError{outcome: outcomeRefused},
		},
		false: {
			io.EOF, context.Canceled, ErrNil, ErrBadResponse, ErrMaybeRepeated, ErrResponseTooLarge,
			&Error{StatusCode: 408}, &Error{StatusCode: 500}, &Error{StatusCode: 307}, &Error{StatusCode: 103},
			&Error{StatusCode: 400, outcome: outcomeUnknown},
			&CallError{outcome: outcomeUnknown}, &CallError{outcome: outcomeUnknown, Err: &Error{StatusCode: 400}},
		},
	} {
		for _, err := range errs {
			wrapped := fmt.Errorf("app: %w", err)
			if SafeToRetry(err) != want || SafeToRetry(wrapped) != want {
				t.Errorf("SafeToRetry(%v) = %v, and %v of %v; want %v", err, SafeToRetry(err), SafeToRetry(wrapped), wrapped, want)
			}
		}
	}
	if SafeToRetry(nil) {
		t.Error("SafeToRetry(nil) is true")
	}
}

// batchError stands for an error of another package that knows more.
type batchError struct {
	error
	safe bool
}

func (e batchError) SafeToRetry() bool { return e.safe }
func (e batchError) Unwrap() error     { return e.error }

func TestSafeToRetryAsksTheErrorItself(t *testing.T) {
	refused := &Error{StatusCode: 400}
	for safe, inner := range map[bool]error{false: refused, true: io.EOF} {
		err := fmt.Errorf("app: %w", batchError{inner, safe})
		if got := SafeToRetry(err); got != safe {
			t.Errorf("SafeToRetry(%v) = %v, want its own answer", err, got)
		}
	}
	ran := &CallError{Err: io.EOF, outcome: outcomeUnknown}
	for _, err := range []error{errors.Join(ran, refused), errors.Join(refused, ran), errors.Join(io.EOF)} {
		if SafeToRetry(err) {
			t.Errorf("SafeToRetry(%v) is true: not all of them are safe", err)
		}
	}
	for _, err := range []error{errors.Join(refused, io.EOF, ErrReadOnly), errors.Join(ErrReadOnly, io.EOF)} {
		if !SafeToRetry(err) {
			t.Errorf("SafeToRetry(%v) is false: what answers is safe", err)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	server := func(status int, message string, after time.Duration) error {
		return &Error{StatusCode: status, Message: message, Command: "GET", RetryAfter: after}
	}
	call := func(attempts, status int, cause error, o outcome) error {
		return &CallError{Command: "GET", Attempts: attempts, StatusCode: status, Err: cause, outcome: o}
	}
	const slow = "ERR max (HTTP status 429): send fewer at a time; try again in "
	for want, err := range map[string]error{
		"WRONGTYPE no (HTTP status 400)": server(400, "WRONGTYPE no", 0),
		slow + "7s":                      server(429, "ERR max", 7*time.Second),
		"ERR x (HTTP status 503); try again in 7s; the command may have run": server(503, "ERR x", 7*time.Second),
		// Whole seconds, and no fewer than one must wait.
		slow + "1m0s": server(429, "ERR max", 59995366844*time.Nanosecond),
		slow + "1s":   server(429, "ERR max", time.Millisecond),

		"unexpected EOF; the command may have run":                        call(1, 0, io.ErrUnexpectedEOF, outcomeUnknown),
		"no route, after 5 attempts; the command did not run":             call(5, 0, errors.New("no route"), outcomeNotSent),
		"unexpected response (HTTP status 200); the command may have run": call(1, 200, ErrBadResponse, outcomeUnknown),
		// The prefix is there once.
		strings.TrimPrefix(ErrNoTransport.Error(), "upstash: "): call(0, 0, ErrNoTransport, outcomeUnjudged),
	} {
		if want = "upstash: GET: " + want; err.Error() != want {
			t.Errorf("got  %q\nwant %q", err, want)
		}
	}
}

// Each fact is said once, whatever the attempts ended in. After one of unknown
// outcome the command may have run, though a later one is refused or not sent.
func TestErrorsAfterSeveralAttempts(t *testing.T) {
	set, lost, unsent := Cmd("SET", "k", "v"), answer{err: dropped}, answer{err: notSent}
	failed, slow := answer{status: 500, body: `{"error":"ERR x"}`}, answer{status: 429, body: `{"error":"ERR slow"}`}
	refused, silent := answer{status: 400, body: `{"error":"ERR no"}`}, answer{err: errors.New("")}
	const mayHaveRun = "; the command may have run"
	for _, tt := range []struct {
		answers []answer
		cmd     Command
		want    string
	}{
		{[]answer{failed, failed}, Cmd("INCR", "k"), "INCR: ERR x (HTTP status 500)" + mayHaveRun},
		{[]answer{failed, failed}, set, "SET: ERR x (HTTP status 500), after 2 attempts" + mayHaveRun},
		{[]answer{failed, failed}, Cmd("GET", "k"), "GET: ERR x (HTTP status 500), after 2 attempts"},
		{
			[]answer{failed, slow},
			set,
			"SET: ERR slow (HTTP status 429): send fewer at a time, after 2 attempts" + mayHaveRun,
		},
		{[]answer{refused, refused}, Cmd("GET", "k"), "GET: ERR no (HTTP status 400)"},
		{[]answer{silent, silent}, set, "SET: , after 2 attempts" + mayHaveRun},
		{[]answer{lost, refused}, set, "SET: ERR no (HTTP status 400), after 2 attempts" + mayHaveRun},
		{[]answer{lost, unsent}, set, "SET: dial failed, after 2 attempts" + mayHaveRun},
		{[]answer{lost, unsent, refused}, set, "SET: ERR no (HTTP status 400), after 3 attempts" + mayHaveRun},
		{
			[]answer{lost, {status: 429, body: slow.body, retryAfter: "60"}, slow},
			set,
			"SET: ERR slow (HTTP status 429): send fewer at a time; try again in 1m0s, after 2 attempts" + mayHaveRun,
		},
	} {
		c, _ := newFake(t, tt.answers, WithRetry(len(tt.answers)-1))
		_, err := c.Do(t.Context(), tt.cmd)
		if err == nil || err.Error() != "upstash: "+tt.want || SafeToRetry(err) == strings.HasSuffix(tt.want, mayHaveRun) {
			t.Errorf("got %v, SafeToRetry %v\nwant %s", err, SafeToRetry(err), tt.want)
		}
	}
}

// TestNoPrefixInForeignWords: the prefix of this module or package bloom begins an
// error, and stands nowhere else, whatever the server, the transport or the cause
// of a context says.
func TestNoPrefixInForeignWords(t *testing.T) {
	for _, words := range []string{
		"upstash: x", "bloom: Add: x", "ERR bloom: x", "ERR a upstash: b bloom: ", "mybloom: x", "bloom:  x",
		"ERR a: upstash: bloom: upstash: b", "upstaupstash: sh: ", "bloom: upstash: x\nbloom: y",
	} {
		body := fmt.Sprintf(`{"error":%q}`, words)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New(words))
		_, ended := func() (Reply, error) {
			c, _ := newFake(t, always(`{"result":1}`))
			return c.Do(ctx, Cmd("GET", "k"))
		}()
		errs := []error{ended}
		for _, a := range []answer{{status: 400, body: body}, {status: 500, body: body}, {err: errors.New(words)}} {
			c, _ := newFake(t, []answer{a}, WithRetry(1))
			_, err := c.Do(t.Context(), Cmd("GET", "k"))
			errs = append(errs, err)
		}
		inArray := "*1\r\n-" + strings.ReplaceAll(words, "\n", " ") + "\r\n"
		c, _ := newFake(t, []answer{{body: "[" + body + "]"}, {body: inArray}})
		replies, err := c.Pipeline(t.Context(), Cmd("GET", "k"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = replies[0].Array()
		errs = append(errs, replies[0].Err(), err)
		r, err := c.Do(t.Context(), Cmd("GET", "k").Binary())
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.Array()
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		errs = append(errs, list[0].Err())
		for i, err := range errs {
			if wrong := errtext.Wrong(err); err == nil || wrong != "" {
				t.Errorf("%q, %d: %s", words, i, wrong)
			}
		}
	}
}

// TestKindsOfErrors checks each error: it matches at most one sentinel, and its
// text says what to do.
func TestKindsOfErrors(t *testing.T) {
	kinds := map[string]error{
		"unauthorized": ErrUnauthorized, "permission": ErrNoPermission, "rate": ErrRateLimited, "quota": ErrQuota,
		"request": ErrRequestTooLarge, "record": ErrRecordTooLarge, "memory": ErrOutOfMemory,
		"aborted": ErrAborted,
	}
	for _, tt := range []struct {
		status  int
		message string
		kind    string
		says    string
	}{
		{401, "WRONGPASS invalid or missing auth token", "unauthorized", "UPSTASH_REDIS_REST_TOKEN"},
		{401, "Unauthorized", "unauthorized", "UPSTASH_REDIS_REST_TOKEN"},
		{403, "ERR x", "", ""},
		{
			400, "NOPERM this user has no permissions to run the 'bitfield' command", "permission",
			"use a full token; a client with WithReadOnly looks up with a read-only one",
		},
		{
			400, "NOPERM ACL failure in script: User app has no permissions to run the 'set' command script: 0, on @user_script:1.",
			"permission", "use a full token",
		},
		{
			400, "ERR The user executing the script can't run this command or subcommand script: 0, on @user_script:1.",
			"permission", "use a full token",
		},
		{
			200, "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments" +
				" script: 0, on @user_script:1.", "permission", "use a full token",
		},
		{429, "ERR x", "rate", "send fewer at a time"},
		{429, "ERR max requests limit exceeded. Limit: 500000, Usage: 500007", "quota", "larger plan"},
		{200, "ERR max daily request limit exceeded. Limit: 10000, Usage: 10000", "quota", "larger plan"},
		{413, "ERR x", "request", "send less at once"},
		{200, "ERR max request size exceeded. Limit: 10 bytes, Actual: 11 bytes", "request", "send less"},
		{400, "ERR max single record size exceeded", "record", ""},
		{400, "ERR string exceeds maximum allowed size (proto-max-bulk-len)", "record", ""},
		{400, "ERR DB capacity quota exceeded", "memory", "delete keys"},
		{200, "OOM command not allowed when used memory > 'maxmemory'.", "memory", "delete keys"},
		{400, "EXECABORT Transaction discarded because of previous errors.", "aborted", "the database is full"},
		{400, "ERR max key size exceeded. Limit: 32768 bytes, Actual: 40000 bytes", "", ""},
		{400, "WRONGTYPE x", "", ""},
	} {
		err := &Error{StatusCode: tt.status, Message: tt.message, Command: "SET"}
		for name, kind := range kinds {
			if errors.Is(err, kind) != (name == tt.kind) {
				t.Errorf("%d %s: matches %s: %v", tt.status, tt.message, name, name != tt.kind)
			}
		}
		if !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q does not say %q", err, tt.says)
		}
	}
}

func TestErrorCode(t *testing.T) {
	for message, want := range map[string]string{
		"WRONGTYPE no": "WRONGTYPE", "ERR x": "ERR", "NOPERM": "NOPERM",
		"Unauthorized": "", "": "", "max 1": "", "EOF1 x": "",
	} {
		if got := (&Error{Message: message}).Code(); got != want {
			t.Errorf("Code of %q is %q, want %q", message, got, want)
		}
	}
}

func TestNotSent(t *testing.T) {
	if NotSent(nil) != nil {
		t.Error("NotSent(nil) is an error")
	}
	err := NotSent(io.EOF)
	if !errors.Is(err, io.EOF) || err.Error() != io.EOF.Error() || !isNotSent(err) || isNotSent(fmt.Errorf("x: %w", err)) {
		t.Errorf("got %v", err)
	}
}

func TestServerErrorsOfAnyShape(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		want   string
	}{
		{400, `{"error":"ERR syntax"}`, "ERR syntax"},
		{404, "not found", "no message from the REST API (9 bytes of something else)"},
		{418, "", "(0 bytes of something else)"},
		{500, "<html>" + secretItem, "(23 bytes of something else)"},
		{429, `{"result":1}`, "(12 bytes of something else)"}, // a result does not count under a failing status
		{302, `{"result":1}`, "redirects are not followed"},
		{304, "", "a proxy may have answered"},
		{200, `{"error":"ERR x"}`, "ERR x"},
		{200, `{"error":""}`, "no message from the REST API (12 bytes of something else)"},
		{400, "", "(0 bytes of something else)"},
	} {
		c, _ := newFake(t, []answer{{status: tt.status, body: tt.body}}, WithRetry(0))
		_, err := c.Do(t.Context(), Cmd("GET", secretKey))
		var server *Error
		if !errors.As(err, &server) || server.StatusCode != tt.status || server.Command != "GET" ||
			!strings.Contains(server.Message, tt.want) || strings.Contains(err.Error(), "https://?") { // it has that
			t.Errorf("%d %s: got %v", tt.status, tt.body, err)
		}
	}
}

// One reply was lost: each command of the batch may have run. An error in the
// answer to the repetition does not change that.
func TestBatchErrorAfterALostReply(t *testing.T) {
	const oom = `[{"error":"OOM command not allowed"},{"error":"OOM command not allowed"},{"result":1}]`
	for _, first := range []answer{{err: dropped}, {status: 500}, {body: `[{"result":`}} {
		c, f := newFake(t, []answer{first, {body: oom}})
		replies, err := c.MultiExec(t.Context(), Cmd("SET", "k", "v"), Cmd("GET", "k"), Cmd("SADD", "s", "m"))
		if err != nil || f.count() != 2 {
			t.Fatalf("%v after %d attempts", err, f.count())
		}
		write, read := replies[0].Err(), replies[1].Err()
		if SafeToRetry(write) || !strings.Contains(write.Error(), "may have run") {
			t.Errorf("a write after a lost reply: SafeToRetry(%v) = %v", write, SafeToRetry(write))
		}
		if !SafeToRetry(read) || strings.Contains(read.Error(), "may have run") {
			t.Errorf("a read after a lost reply: SafeToRetry(%v) = %v", read, SafeToRetry(read))
		}
		if !replies[2].MaybeRepeated() {
			t.Error("MaybeRepeated is false after a lost reply")
		}
	}

	c, _ := newFake(t, []answer{{err: notSent}, {body: oom}})
	replies, err := c.Pipeline(t.Context(), Cmd("SET", "k", "v"), Cmd("GET", "k"), Cmd("SADD", "s", "m"))
	if err != nil || !SafeToRetry(replies[0].Err()) {
		t.Errorf("nothing was lost: %v, %v", replies, err)
	}
}

// A read changes nothing, however its attempts ended.
func TestAReadIsAlwaysSafeToRetry(t *testing.T) {
	for name, a := range map[string]answer{
		"dropped": {err: dropped}, "500": {status: 500}, "not JSON": {body: "<html>"},
		"wrong type": {body: `{"result":"text"}`}, "too large": {err: ErrResponseTooLarge},
	} {
		c, _ := newFake(t, []answer{a})
		_, counted := c.BitCount(t.Context(), "k")
		_, bits := c.BitField(t.Context(), NewBitField("k").Get("u1", 0))
		for _, err := range []error{counted, bits} {
			if err == nil || !SafeToRetry(err) || strings.Contains(err.Error(), "may have run") {
				t.Errorf("%s: SafeToRetry(%v) = %v", name, err, SafeToRetry(err))
			}
		}
	}
}

// An observer may keep the error of an attempt. The call must return another
// one.
func TestAnErrorIsNotChangedAfterwards(t *testing.T) {
	var texts []string
	var events []error
	c, _ := newFake(t, []answer{
		{status: 500, body: `{"error":"ERR a"}`}, {status: 502, body: `{"error":"ERR b"}`},
	}, WithRetry(1), observing(func(e Event) {
		texts, events = append(texts, e.Err.Error()), append(events, e.Err)
	}))
	_, err := c.Do(t.Context(), Cmd("SET", "k", "v"))
	var server *Error
	if !errors.As(err, &server) || SafeToRetry(err) {
		t.Errorf("SafeToRetry(%v) = %v", err, SafeToRetry(err))
	}
	for i, e := range events {
		if e.Error() != texts[i] {
			t.Errorf("event %d said %q, and now %q", i, texts[i], e)
		}
	}
}

// claimingError is a foreign error that says yes to everything.
type claimingError struct{}

func (claimingError) Error() string     { return "of another package" }
func (claimingError) SafeToRetry() bool { return true }
func (claimingError) Is(error) bool     { return true }
func (claimingError) As(target any) bool {
	switch t := target.(type) {
	case **Error:
		*t = &Error{StatusCode: 429, RetryAfter: time.Hour, outcome: outcomeRefused}
	case **CallError:
		*t = &CallError{outcome: outcomeNotSent}
	case **notSentError:
		*t = &notSentError{os.ErrNotExist}
	default:
		return false
	}
	return true
}

// othersErrors are errors of another call. Each says that its own command did
// not run.
func othersErrors() []error {
	refused := &Error{
		StatusCode: 429, Message: "ERR max", Command: "GET", RetryAfter: time.Hour,
		outcome: outcomeRefused,
	}
	all := []error{
		refused, &Error{StatusCode: 400, Message: "ERR", Command: "GET"},
		&CallError{Command: "GET", Attempts: 1, Err: os.ErrNotExist, outcome: outcomeNotSent},
		&CallError{Command: "GET", Attempts: 1, Err: refused, outcome: outcomeRefused},
		&CallError{Command: "GET", Attempts: 1, Err: os.ErrNotExist, outcome: outcomeRead},
		claimingError{},
		ErrNoTransport, ErrResponseTooLarge, ErrBadResponse, ErrReadOnly, ErrMaybeRepeated, ErrNil,
		ErrArgument, ErrClosed, ErrUnauthorized, ErrNoPermission, ErrRateLimited, ErrQuota,
		ErrRequestTooLarge, ErrRecordTooLarge, ErrOutOfMemory, ErrAborted,
	}
	for _, err := range all[:len(all):len(all)] {
		if err != (claimingError{}) {
			texts.Add(err)
		}
		all = append(all, fmt.Errorf("app: %w", err), errors.Join(context.Canceled, err))
	}
	return append(all, fmt.Errorf("a RoundTripper: %w", NotSent(os.ErrNotExist)))
}

// TestAnotherCallsErrorDecidesNothing: if a command's answer was lost, it may
// have run, whatever errors of other calls turn up on the way.
func TestAnotherCallsErrorDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i, other := range othersErrors() {
			for _, tt := range []struct {
				way       string
				returned  error  // by the transport
				cancelled string // by whom, with the other error for a cause; "" for nobody
			}{
				{"the cause of the context", os.ErrDeadlineExceeded, "transport"},
				{"the cause, which the transport returns", other, "transport"},
				{"returned by the transport", other, ""},
				{"the cause, after the attempt", dropped, "observer"},
				{"the cause, in the pause", dropped, "timer"},
			} {
				ctx, cancel := context.WithCancelCause(t.Context())
				lost := answer{err: tt.returned}
				if tt.cancelled == "transport" {
					lost.hook = func(context.Context) { cancel(other) }
				}
				mayHaveRun := 0
				c, _ := newFake(t, []answer{lost}, WithBackoff(time.Hour, time.Hour), observing(func(e Event) {
					mayHaveRun += e.MayHaveRun
					switch {
					case tt.cancelled == "observer":
						cancel(other)
					case tt.cancelled == "timer" && e.Attempt == 1:
						time.AfterFunc(0, func() { cancel(other) })
					}
				}))
				cmd := Cmd("INCR", "k").Repeatable(tt.cancelled == "timer") // so that there is a pause
				_, err := c.Do(ctx, cmd)
				call, ok := err.(*CallError)
				if !ok || SafeToRetry(err) || mayHaveRun != 1 || call.outcome != outcomeUnknown {
					t.Errorf("%s, error %d (%v): got %T %v; SafeToRetry %v, %d may have run",
						tt.way, i, other, err, err, SafeToRetry(err), mayHaveRun)
				}
				if tt.cancelled == "transport" && !errors.Is(err, other) && !errors.Is(err, context.Canceled) {
					t.Errorf("%s: the cause is not visible in %v", tt.way, err)
				}
				cancel(nil)
			}
		}
	})
}
