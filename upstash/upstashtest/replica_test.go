package upstashtest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// read returns the answer to a GET of k, and its sync token.
func read(t *testing.T, s *Server, token string) (body, newToken string) {
	t.Helper()
	return ask(t, s, `["GET","k"]`, token)
}

func ask(t *testing.T, s *Server, cmd, token string) (body, newToken string) {
	t.Helper()
	got := do(t, s, call{body: cmd, header: header("Upstash-Sync-Token", token)})
	newToken = got.header.Get("Upstash-Sync-Token")
	if newToken < token {
		t.Errorf("%s with token %q: got the older token %q, want one as new", cmd, token, newToken)
	}
	return got.body, newToken
}

func TestReplicaLags(t *testing.T) {
	s := NewServer(t)
	ask(t, s, `["SET","k","0"]`, "")
	s.SetReplicaLag(2)
	_, first := ask(t, s, `["SET","k","1"]`, "")
	_, second := ask(t, s, `["SET","k","2"]`, first)
	if second <= first {
		t.Errorf("sync tokens of two writes: %q, then %q, want the second newer", first, second)
	}
	for _, tt := range []struct{ name, token, want string }{
		{"no token", "", "0"},
		{"old token", formatToken(0), "0"},
		{"token of a write", first, "2"}, // from the primary: all there is
		{"newest token", second, "2"},
		{"garbled token", "!" + second[1:], "0"},
	} {
		body, token := read(t, s, tt.token)
		if want := `{"result":"` + tt.want + `"}`; body != want {
			t.Errorf("%s: got %s, want %s", tt.name, body, want)
		}
		if tt.want == "2" && token < second {
			t.Errorf("%s: got token %q, want at least %q, which names what was read", tt.name, token, second)
		}
	}
	ask(t, s, `["SET","k","3"]`, "")
	if body, _ := read(t, s, ""); body != `{"result":"1"}` {
		t.Errorf("GET of a replica two writes behind: got %s, want the result \"1\"", body)
	}
	s.CatchUp()
	if body, _ := read(t, s, ""); body != `{"result":"3"}` {
		t.Errorf("GET after CatchUp: got %s, want the result \"3\"", body)
	}
}

func TestReplicaAnswersReadsOnly(t *testing.T) {
	s := NewServer(t)
	s.SetReplicaLag(math.MaxInt)
	ask(t, s, `["SET","k","x"]`, "")
	for _, tt := range []struct{ path, cmd, want string }{
		{"", `["GET","k"]`, `{"result":null}`},
		{"", `["BITFIELD_RO","k","GET","u8","0"]`, `{"result":[0]}`},
		{"", `["BITFIELD","k","GET","u8","0"]`, `{"result":[120]}`},
		{"", `["EVAL_RO","return redis.call('BITFIELD_RO','k','GET','u8','0')","0"]`, `{"result":[0]}`},
		{"", `["EVAL","return redis.call('BITFIELD','k','GET','u8','0')","0"]`, `{"result":[120]}`},
		{"/pipeline", `[["GET","k"],["STRLEN","k"]]`, `[{"result":null},{"result":0}]`},
		{"/pipeline", `[["GET","k"],["EXPIRE","k","100"]]`, `[{"result":"x"},{"result":1}]`},
		{"/multi-exec", `[["GET","k"]]`, `[{"result":null}]`},
	} {
		if got := do(t, s, call{path: tt.path, body: tt.cmd}); got.body != tt.want {
			t.Errorf("%s: got %s, want %s", tt.cmd, got.body, tt.want)
		}
	}
	s.SetReplicaLag(0)
	if body, _ := read(t, s, ""); body != `{"result":"x"}` {
		t.Errorf("GET after SetReplicaLag(0): got %s, want the result \"x\"", body)
	}
}

// TestReplicaStartsAsACopy has keys of several types before there is a region.
// The region has them too, and FastForward and FlushAll affect it.
func TestReplicaStartsAsACopy(t *testing.T) {
	s := filled(t)
	if _, err := s.Exec("EXPIRE", "s", "3600"); err != nil {
		t.Fatal(err)
	}
	s.SetReplicaLag(10)
	for cmd, want := range map[string]string{
		`["LRANGE","l","0","-1"]`: `{"result":["x","y"]}`,
		`["GET","s"]`:             `{"result":"foo"}`,
		// Not the exact time: it runs while the test does.
		`["EVAL_RO","return redis.call('TTL','s') > 0","0"]`: `{"result":1}`,
	} {
		if body, _ := ask(t, s, cmd, ""); body != want {
			t.Errorf("%s: got %s, want %s", cmd, body, want)
		}
	}
	s.FastForward(2 * time.Hour)
	if body, _ := ask(t, s, `["GET","s"]`, ""); body != `{"result":null}` {
		t.Errorf("GET of a key after its time: got %s, want null", body)
	}
	s.FlushAll()
	if body, _ := ask(t, s, `["DBSIZE"]`, ""); body != `{"result":0}` {
		t.Errorf("DBSIZE after FlushAll: got %s, want 0", body)
	}
}

func TestWrongUseEndsTheTest(t *testing.T) {
	s, err := Start(withTestRedis(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, f := range map[string]func(){
		"FastForward":   func() { s.FastForward(time.Second) },
		"SetReplicaLag": func() { s.SetReplicaLag(1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("a replica of a real Redis, without a test: no panic, want one")
				}
			}()
			f()
		})
	}
	if _, err := s.Exec("PING"); err != nil { // no lock was left behind
		t.Error(err)
	}
}

func TestUseAfterCloseSaysSo(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for name, f := range map[string]func(){
		"FlushAll":      s.FlushAll,
		"FastForward":   func() { s.FastForward(time.Second) },
		"SetReplicaLag": func() { s.SetReplicaLag(1) },
		"CatchUp":       s.CatchUp,
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "the server is closed") {
					t.Errorf("a closed server panics with %q, want \"the server is closed\"", text)
				}
			}()
			f()
		})
	}
}

func TestStartReportsErrors(t *testing.T) {
	for name, opt := range map[string]Option{
		"address": WithAddr("256.0.0.1:x"),
		"redis":   WithRedis("127.0.0.1:1"),
		"timeout": WithTimeout(0),
		"request": WithMaxRequest(-1),
		"record":  WithMaxRecord(-1),
	} {
		s, err := Start(opt)
		if err == nil {
			s.Close()
			t.Errorf("%s: Start returned no error, want one", name)
		} else if !strings.HasPrefix(err.Error(), "upstashtest: ") {
			t.Errorf("%s: %v, want the prefix upstashtest", name, err)
		}
	}
}
