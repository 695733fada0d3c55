package upstashtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// TestFaults sends a command to each fault. It checks what comes back, and
// whether the command was executed.
func TestFaults(t *testing.T) {
	const (
		incr  = `["INCR","n"]`
		field = `["BITFIELD","n","INCRBY","u8","0","1"]`
		multi = `[["INCR","n"],["INCR","n"]]`

		limited = `{"error":"` + textRateLimit + `"}`
		failed  = `{"error":"ERR internal error"}`
		one     = `{"result":1}`
		twice   = `{"result":[1,1]}`
		nothing = `{"result":[]}`
		noGet   = `{"error":"NOPERM this user has no permissions to run the 'get' command or its subcommand"}`
	)
	headers := map[string][2]string{
		"rate-limit":              {"Retry-After", ""},
		"rate-limit-retry-after":  {"Retry-After", "2"},
		"bad-gateway-before-exec": {"Content-Type", "text/html"},
		"huge-body":               {"Content-Length", ""},
		"redirect":                {"Location", "http://elsewhere.invalid/x"},
	}
	for _, tt := range []struct {
		fault      Fault
		name       string
		path, body string
		status     int // 0: no whole answer
		answer     string
	}{
		{Drop(BeforeExec), "drop-before-exec", "", incr, 0, ""},
		{Drop(AfterExec), "drop-after-exec", "", incr, 0, ""},
		{CutBody(5), "cut-body", "", incr, 0, ""},
		{CutBody(0), "cut-body", "", incr, 0, ""},
		{CutBody(1 << 40), "cut-body", "", incr, 0, ""},
		{RateLimit(0), "rate-limit", "", incr, 429, limited},
		{RateLimit(1500 * time.Millisecond), "rate-limit-retry-after", "", incr, 429, limited},
		{InternalError(BeforeExec), "internal-error-before-exec", "", incr, 500, failed},
		{InternalError(AfterExec), "internal-error-after-exec", "", incr, 500, failed},
		{BadGateway(BeforeExec), "bad-gateway-before-exec", "", incr, 502, pageGateway},
		{BadGateway(AfterExec), "bad-gateway-after-exec", "", incr, 502, pageGateway},
		{ErrorObject("ERR odd"), "error-object", "/multi-exec", multi, 200, `{"error":"ERR odd"}`},
		{NotJSON(BeforeExec), "not-json-before-exec", "", incr, 200, textNotJSON},
		{NotJSON(AfterExec), "not-json-after-exec", "", incr, 200, textNotJSON},
		{WrongType(), "wrong-type", "", incr, 200, `{"result":"1"}`},
		{WrongType(), "wrong-type", "", field, 200, one},
		{WrongType(), "wrong-type", "", `["SET","n","1"]`, 200, `{"result":["OK"]}`},
		{ShortResult(), "short-result", "", field, 200, nothing},
		{ShortResult(), "short-result", "", incr, 200, nothing},
		{
			ShortResult(), "short-result", "/pipeline", `[` + field + `,["STRLEN","n"]]`, 200,
			`[` + nothing + `,` + one + `]`,
		},
		{LongResult(), "long-result", "", field, 200, twice},
		{LongResult(), "long-result", "", incr, 200, twice},
		{ShortBatch(), "short-batch", "/multi-exec", multi, 200, `[` + one + `]`},
		{ShortBatch(), "short-batch", "", field, 200, nothing},
		{LongBatch(), "long-batch", "/pipeline", multi, 200, `[` + one + `,{"result":2},{"result":2}]`},
		{LongBatch(), "long-batch", "", incr, 200, twice},
		{HugeBody(100_000), "huge-body", "", incr, 200, `{"result":"` + strings.Repeat("x", 100_000) + `"}`},
		{Redirect("http://elsewhere.invalid/x"), "redirect", "", incr, 307, ""},
		{Trickle(time.Microsecond), "trickle", "", incr, 200, one},
		{CommandError("OOM odd"), "command-error", "", incr, 400, `{"error":"OOM odd"}`},
		{
			CommandError("OOM odd"), "command-error", "/multi-exec", multi, 200,
			`[{"error":"OOM odd"},{"error":"OOM odd"}]`,
		},
		{lostThenError("OOM odd"), "lost-then-error", "", incr, 0, ""},
		{NoPermission("GET"), "no-permission", "/pipeline", `[` + incr + `,["get","n"]]`, 200, `[` + one + `,` + noGet + `]`},
		{interim(7), "interim", "", incr, 200, one},
		{Twice(0), "twice", "", incr, 200, one},
		{Twice(time.Millisecond), "twice-late", "", incr, 200, one},
		{closes("CLOSE"), "closes", "", incr, 200, one},
		{earlyRefusal(), "early-refusal", "", incr, 413, `{"error":"` + tooLarge(10<<20, 10<<20+1) + `"}`},
		{Late(time.Millisecond), "late", "", incr, 200, one},
		{Evict(), "evict", "", incr, 200, one},
		{Fault{}, "none", "", incr, 200, one},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewServer(t)
			s.Inject(tt.fault)
			if tt.fault.String() != tt.name {
				t.Errorf("String() = %q, want %q", tt.fault, tt.name)
			}
			got, err := try(t, s, call{path: tt.path, body: tt.body})
			if tt.status == 0 && err == nil {
				t.Errorf("got a whole answer: %d %s, want none", got.status, got.body)
			}
			if tt.status != 0 && (err != nil || got.status != tt.status || got.body != tt.answer) {
				t.Errorf("got  %d %.200q %v\nwant %d %.200q", got.status, got.body, err, tt.status, tt.answer)
			}
			if want := headers[tt.name]; want[0] != "" && got.header.Get(want[0]) != want[1] {
				t.Errorf("%s is %q, want %q", want[0], got.header.Get(want[0]), want[1])
			}
			v, err := s.Exec("EXISTS", "n")
			if executed := v == int64(1); err != nil || executed != tt.fault.Executes() {
				t.Errorf("executed: %v, want %v (%v)", executed, tt.fault.Executes(), err)
			}
			if n := s.Injected()[tt.name]; tt.name != "none" && n != 1 {
				t.Errorf("Injected() = %v, want one %s", s.Injected(), tt.name)
			}
		})
	}
}

func TestEveryFaultIsThereOnce(t *testing.T) {
	want := strings.Fields(`bad-gateway-after-exec bad-gateway-before-exec closes command-error cut-body
		drop-after-exec drop-before-exec early-refusal error-object huge-body interim
		internal-error-after-exec internal-error-before-exec late late-exec long-batch long-result
		lost-then-error no-permission not-json-after-exec not-json-before-exec rate-limit
		rate-limit-retry-after redirect short-batch short-result stall-after-exec stall-before-exec
		trickle twice wrong-type`)
	var got []string
	for _, f := range EveryFault() {
		got = append(got, f.String())
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("EveryFault has\n%q, want\n%q", got, want)
	}
}

// TestLostThenError repeats a lost request. The second attempt is refused,
// although the first one ran. Other requests pass.
func TestLostThenError(t *testing.T) {
	for path, body := range map[string]string{"": `["INCR","n"]`, "/pipeline": `[["INCR","n"],["GET","n"]]`} {
		s := NewServer(t)
		s.Inject(lostThenError("OOM odd"))
		if got, err := try(t, s, call{path: path, body: body}); err == nil {
			t.Errorf("%s: got %s, want no answer", path, got.body)
		}
		wantBody(t, s, call{body: `["GET","n"]`}, `{"result":"1"}`)
		if got := do(t, s, call{path: path, body: body}); !strings.Contains(got.body, `{"error":"OOM odd"}`) {
			t.Errorf("%s: tried again: got %s, want the error OOM odd", path, got.body)
		}
		if got := do(t, s, call{path: path, body: body}); !strings.Contains(got.body, `{"result":2}`) {
			t.Errorf("%s: once more: got %s, want the result 2", path, got.body)
		}
		s.Inject(lostThenError("OOM odd"))
		_, err := try(t, s, call{path: path, body: body})
		s.Inject()
		if got := do(t, s, call{path: path, body: body}); err == nil || !strings.Contains(got.body, `{"result":4}`) {
			t.Errorf("%s: taken back: %v, then %s, want the result 4", path, err, got.body)
		}
	}
}

// TestLateExec: the commands run after the connection was closed. Close must
// not wait for them.
func TestLateExec(t *testing.T) {
	s := NewServer(t)
	s.Inject(LateExec(time.Millisecond))
	if got, err := try(t, s, call{body: `["APPEND","n","late"]`}); err == nil {
		t.Errorf("got %s, want no answer", got.body)
	}
	waitFor(t, func() bool { v, _ := s.Exec("GET", "n"); return v == "late" })
	s.Inject(LateExec(time.Hour))
	if got, err := try(t, s, call{body: `["DEL","n"]`}); err == nil {
		t.Errorf("got %s, want no answer", got.body)
	}
	s.Close() // must not wait an hour
}

func TestEvict(t *testing.T) {
	s := NewServer(t)
	for _, tt := range []struct{ path, body, want string }{
		{"", `["INCR","n"]`, `{"result":1}`},
		{"", `["eval","return redis.call('INCR',KEYS[1])","1","n"]`, `{"result":1}`},
		{"/multi-exec", `[["GET","n"],["ECHO","n"]]`, `[{"result":null},{"result":"n"}]`},
		{"", `["COPY","none","n"]`, `{"result":0}`},
		{"", `["MSETNX","m","1","n","1"]`, `{"result":1}`},
	} {
		exec(t, s, "SET", "n", "5")
		s.Inject(Evict())
		wantBody(t, s, call{path: tt.path, body: tt.body}, tt.want)
	}
}

// TestStall has two stalled requests: the client ends one, Close the other.
func TestStall(t *testing.T) {
	for _, when := range []When{BeforeExec, AfterExec} {
		t.Run(when.String(), func(t *testing.T) {
			s, err := Start()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.Inject(Stall(when), Stall(when))

			ctx, cancel := context.WithCancel(t.Context())
			gone := goPost(ctx, t, s)
			waitFor(t, func() bool { return s.Injected()["stall-"+when.String()] == 1 })
			cancel()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("a request canceled while it is held: %v, want context.Canceled", err)
			}
			held := goPost(t.Context(), t, s)
			waitFor(t, func() bool { return s.Injected()["stall-"+when.String()] == 2 })
			if when == AfterExec {
				waitFor(t, func() bool { v, _ := s.Exec("GET", "n"); return v == "2" })
			} else if v, err := s.Exec("GET", "n"); v != nil || err != nil {
				t.Errorf("GET of what was held before it ran: %v, %v, want nil", v, err)
			}
			s.Close()
			if err := <-held; err == nil {
				t.Error("a held request got an answer from a closed server, want an error")
			}
		})
	}
}

// TestCloseEndsATrickle would hang if Close waited for the whole body.
func TestCloseEndsATrickle(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	s.Inject(Trickle(time.Hour))
	done := goPost(t.Context(), t, s)
	waitFor(t, func() bool { return s.Injected()["trickle"] == 1 })
	s.Close()
	if err := <-done; err == nil {
		t.Error("a slow answer was whole after Close, want an error")
	}
	s.Close() // a second Close does nothing
}

func goPost(ctx context.Context, t *testing.T, s *Server) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := tryIn(ctx, t, s, call{body: incrN})
		done <- err
	}()
	return done
}

// waitFor polls until ok reports true.
func waitFor(tb testing.TB, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(testenv.Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("it did not happen within ", testenv.Patience)
		}
	}
}

func TestInjectFunc(t *testing.T) {
	s := NewServer(t)
	var seen []string
	s.InjectFunc(func(n int64, r RequestInfo) Fault {
		seen = append(seen, r.Form+" "+strings.Join(r.Commands, ","))
		if n%2 == 0 {
			return RateLimit(0)
		}
		return Fault{}
	})
	s.Inject(InternalError(BeforeExec)) // comes first, without a call of the function
	var statuses []int
	for _, c := range []call{
		{body: `["get","a"]`},
		{body: `["get","a"]`},
		{body: `["incr","n"]`},
		{body: `nonsense`},
		{path: "/pipeline", body: `[["get","a"],["del","n"]]`},
	} {
		statuses = append(statuses, do(t, s, c).status)
	}
	if want := []int{500, 200, 429, 400, 200}; !slices.Equal(statuses, want) {
		t.Errorf("statuses %v, want %v", statuses, want)
	}
	if want := []string{"command GET", "command INCR", "pipeline GET,DEL"}; !slices.Equal(seen, want) {
		t.Errorf("asked about %q, want %q", seen, want)
	}
	s.InjectFunc(nil)
	if got := do(t, s, call{body: `["GET","n"]`}); got.status != 200 {
		t.Errorf("GET after InjectFunc(nil): status %d, want 200", got.status)
	}
}

// TestInjectTakesBack takes faults out of one queue or the other.
func TestInjectTakesBack(t *testing.T) {
	s := NewServer(t)
	for _, back := range []func(){func() { s.Inject() }, func() { s.InjectWrites() }} {
		s.Inject(RateLimit(0), RateLimit(0))
		s.InjectWrites(InternalError(BeforeExec))
		back()
		read, write := do(t, s, call{body: `["GET","n"]`}).status, do(t, s, call{body: `["INCR","n"]`}).status
		s.Inject()
		s.InjectWrites()
		if read+write != 200+500 && read+write != 429+429 || do(t, s, call{body: `["INCR","n"]`}).status != 200 {
			t.Errorf("statuses %d and %d", read, write)
		}
	}
}

// TestInjectWrites: the faults pass reads by, and stand before those of Inject.
// If one comes too late for a request's body, it waits.
func TestInjectWrites(t *testing.T) {
	s := NewServer(t)
	var info []string
	s.InjectFunc(func(_ int64, r RequestInfo) Fault {
		info = append(info, fmt.Sprint(r.Commands[0], " ", r.Writes))
		return Fault{}
	})
	s.InjectWrites(InternalError(BeforeExec), earlyRefusal())
	s.Inject(RateLimit(0))
	for _, tt := range []struct {
		path, body string
		status     int
	}{
		{"", `["INCR","n"]`, 500},
		{"", `["TIME"]`, 429}, // from Inject
		{"", `["BITFIELD","k","GET","u1","0"]`, 200},
		{"/pipeline", `[["GET","k"],["EVAL_RO","return 1","0"]]`, 200},
		{"/pipeline", `[["GET","n"],["bitfield","k","GET","u1","0","set","u1","1","1"]]`, 200},
		{"", `["GET","n"]`, 413}, // the early-refusal
		{"", `["BITFIELD","k","SET","u1","0","1"]`, 200},
		{"", `["BITFIELD","k","SET","u1","0","1","GET"]`, 400},
		{"", `["EVAL","return 1","0"]`, 200},
	} {
		if got := do(t, s, call{path: tt.path, body: tt.body}); got.status != tt.status {
			t.Errorf("%s: status %d, want %d", tt.body, got.status, tt.status)
		}
	}
	want := []string{
		"BITFIELD false", "GET false", // the rest took its fault from a queue
		"BITFIELD true", "BITFIELD false", "EVAL true",
	}
	if !slices.Equal(info, want) {
		t.Errorf("asked about %q, want %q", info, want)
	}
	if got := s.Injected(); got["internal-error-before-exec"] != 1 || got["early-refusal"] != 1 {
		t.Errorf("injected %v", got)
	}
}

// TestDenyFunc refuses one command for one key.
func TestDenyFunc(t *testing.T) {
	s := NewServer(t)
	s.DenyFunc(func(c []string) bool { return strings.EqualFold(c[0], "INCR") && c[1] == "a" })
	const noPerm = `{"error":"NOPERM this user has no permissions to run the 'incr' command or its subcommand"}`
	for _, tt := range []struct{ path, body, want string }{
		{"", `["incr","a"]`, noPerm},
		{"", `["INCR","b"]`, `{"result":1}`},
		{"/pipeline", `[["INCR","b"],["INCR","a"]]`, `[{"result":2},` + noPerm + `]`},
		{"/multi-exec", `[["INCR","b"],["INCR","a"]]`, `{"error":"` + string(errExecAbort) + `"}`},
	} {
		wantBody(t, s, call{path: tt.path, body: tt.body}, tt.want)
	}
	s.DenyFunc(nil)
	wantBody(t, s, call{body: `["INCR","a"]`}, `{"result":1}`)
}

// The function of InjectFunc may ask for and change the faults.
func TestInjectFuncThatInjects(t *testing.T) {
	s := NewServer(t)
	c := s.Client(upstash.WithRetry(0))
	s.InjectFunc(func(n int64, _ RequestInfo) Fault {
		if s.Injected()["drop-before-exec"] == 2 {
			s.InjectFunc(nil)
			s.Inject(RateLimit(0))
			s.InjectWrites()
			return Fault{}
		}
		return Drop(BeforeExec)
	})
	var got []bool
	for range 5 {
		_, err := c.Do(t.Context(), upstash.Cmd("PING"))
		got = append(got, err == nil)
	}
	if want := []bool{false, false, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("requests went well: %v, want %v", got, want)
	}
}

// A function of the test that panics fails it. The client sees a closed connection.
func TestFunctionThatPanics(t *testing.T) {
	over := faketest.Run(func(tb testing.TB) {
		s := NewServer(tb)
		s.InjectFunc(func(int64, RequestInfo) Fault { panic("mine") })
		for range 2 {
			if _, err := s.Client(upstash.WithRetry(0)).Do(t.Context(), upstash.Cmd("GET", "a")); err == nil {
				t.Error("no error")
			}
			s.InjectFunc(nil)
			s.DenyFunc(func([]string) bool { panic("mine, too") })
		}
		s.DenyFunc(nil)
		if _, err := s.Exec("PING"); err != nil {
			t.Error("the server is stuck: ", err)
		}
	})
	if len(over.Failures) != 2 || !strings.Contains(over.Failures[0], "a request panicked: mine\n") ||
		!strings.Contains(over.Failures[1], "a request panicked: mine, too\n") {
		t.Errorf("failures %q, want both panics", over.Failures)
	}
}
