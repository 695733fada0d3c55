package upstashtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

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

// TestInjectWrites: the faults pass reads by, and stand before those of Inject.
// If one comes too late for a request's body, it waits.
func TestInjectWrites(t *testing.T) {
	s := NewServer(t)
	var info []string
	s.InjectFunc(func(_ int64, r RequestInfo) Fault {
		info = append(info, fmt.Sprint(r.Commands[0], " ", r.Writes))
		return Fault{}
	})
	s.InjectWrites(InternalError(BeforeExec), EarlyRefusal())
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
		{"", `["GET","n"]`, 413}, // the EarlyRefusal
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
		if got := do(t, s, call{path: tt.path, body: tt.body}); got.body != tt.want {
			t.Errorf("%s: %s, want %s", tt.body, got.body, tt.want)
		}
	}
	s.DenyFunc(nil)
	if got := do(t, s, call{body: `["INCR","a"]`}); got.body != `{"result":1}` {
		t.Errorf("INCR after DenyFunc(nil): got %s, want the result 1", got.body)
	}
}
