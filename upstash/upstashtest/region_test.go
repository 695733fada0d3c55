package upstashtest

import (
	"crypto/sha1"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// ask sends a command with a sync token to a URL, "" for the server's own, and
// returns the answer and its token.
func ask(t *testing.T, s *Server, url, body, token string) (answer, newToken string) {
	t.Helper()
	got := do(t, s, call{url: url, body: body, header: header("Upstash-Sync-Token", token)})
	newToken = got.header.Get("Upstash-Sync-Token")
	if newToken < token {
		t.Errorf("%s with token %q: got the older token %q, want one as new", body, token, newToken)
	}
	return got.body, newToken
}

// TestRegions makes two writes and reads them in three regions, with and
// without a sync token.
func TestRegions(t *testing.T) {
	s := NewServer(t, WithRegions(Region{Name: "near"}, Region{Name: "far", Lag: 1},
		Region{Name: "frozen", Lag: math.MaxInt}))
	ask(t, s, s.RegionURL("far"), `["SET","k","1"]`, "") // the primary runs it, wherever it arrives
	_, token := ask(t, s, s.RegionURL("near"), `["SET","k","2"]`, "")
	for region, want := range map[string]string{"near": `"2"`, "far": `"1"`, "frozen": "null"} {
		want = `{"result":` + want + `}`
		wantBody(t, s, call{url: s.RegionURL(region), body: `["GET","k"]`}, want)
		if got, _ := ask(t, s, s.RegionURL(region), `["GET","k"]`, token); got != `{"result":"2"}` {
			t.Errorf("%s, own writes: got %s, want the result \"2\"", region, got)
		}
	}
	wantBody(t, s, call{body: `["GET","k"]`}, `{"result":"2"}`)
	wantBody(t, s, call{url: s.RegionURL("frozen"), body: `["BITFIELD","k","GET","u8","0"]`}, `{"result":[50]}`)
	s.CatchUp()
	wantBody(t, s, call{url: s.RegionURL("frozen"), body: `["GET","k"]`}, `{"result":"2"}`)
	s.FlushAll()
	wantBody(t, s, call{url: s.RegionURL("frozen"), body: `["GET","k"]`}, `{"result":null}`)
}

// TestScriptsOfRegions: a region that lags repeats the writes of scripts. Neither that
// nor its primary's SCRIPT FLUSH changes what the other knows.
func TestScriptsOfRegions(t *testing.T) {
	s := NewServer(t, WithRegions(Region{Name: "far", Lag: 2}))
	const text = `return redis.call('INCR', KEYS[1])`
	sum := fmt.Sprintf("%x", sha1.Sum([]byte(text)))
	eval, again := `["EVAL","`+text+`","1","k"]`, `["EVALSHA","`+sum+`","1","k"]`
	wantBody(t, s, call{body: eval}, `{"result":1}`)
	wantBody(t, s, call{body: again}, `{"result":2}`)
	wantBody(t, s, call{body: `["SCRIPT","FLUSH"]`}, `{"result":"OK"}`)
	wantBody(t, s, call{body: `["SET","x","1"]`}, `{"result":"OK"}`) // the region repeats the first
	wantBody(t, s, call{body: `["SCRIPT","EXISTS","` + sum + `"]`}, `{"result":[0]}`)
	ask(t, s, s.URL, again, "") // nobody runs it
	wantBody(t, s, call{body: eval}, `{"result":3}`)
	s.CatchUp()
	wantBody(t, s, call{body: again}, `{"result":4}`)
	s.CatchUp()
	wantBody(t, s, call{url: s.RegionURL("far"), body: `["GET","k"]`}, `{"result":"4"}`)
}

// TestRegionLatency: only the primary's answers take longer.
func TestRegionLatency(t *testing.T) {
	const latency, step = 50 * time.Millisecond, 16 * time.Millisecond // step of a clock on Windows
	s := NewServer(t, WithRegions(
		Region{Name: "far", Latency: latency}, Region{Name: "hours away", Latency: time.Hour},
	))
	start := time.Now()
	ask(t, s, s.RegionURL("far"), `["SET","k","1"]`, "")
	if took := time.Since(start); took < latency-step {
		t.Errorf("a write in a far region took %v, want at least %v", took, latency-step)
	}
	wantBody(t, s, call{url: s.RegionURL("hours away"), body: `["GET","k"]`}, `{"result":"1"}`)
	wantBody(t, s, call{body: `["SET","k","2"]`}, `{"result":"OK"}`)
}

func TestRegionClient(t *testing.T) {
	s := NewServer(t, WithTLS(), WithRegions(Region{Name: "far", Lag: math.MaxInt}))
	for name, c := range map[string]*upstash.Client{
		"Client": s.Client(), "ReadOnlyClient": s.ReadOnlyClient(), "RegionClient": s.RegionClient("far"),
	} {
		if _, err := c.Do(t.Context(), upstash.Cmd("GET", "k")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if url := s.RegionURL("far"); !strings.HasPrefix(url, "https://") || url == s.URL {
		t.Errorf("RegionURL with TLS: %s, want https:// and another than %s", url, s.URL)
	}
	plain := NewServer(t, WithRegions(Region{Name: "far", Lag: math.MaxInt}))
	c := plain.RegionClient("far")
	if _, err := plain.Exec("SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Do(t.Context(), upstash.Cmd("GET", "k")); err != nil || !r.IsNil() {
		t.Errorf("GET = %v, %v, want null", r, err)
	}
}

// TestBilled checks what the service bills: a write once for each copy, a
// script, and each command of the script.
func TestBilled(t *testing.T) {
	t.Run("memory", func(t *testing.T) { testBilled(t, NewServer(t)) })
	t.Run("regions", func(t *testing.T) {
		testBilled(t, NewServer(t, WithRegions(Region{Name: "a"}, Region{Name: "b"})))
	})
	t.Run("redis", func(t *testing.T) { testBilled(t, NewServer(t, withTestRedis(t))) })
}

func testBilled(t *testing.T, s *Server) {
	for _, tt := range []struct {
		path, body     string
		called, billed int64
		withRegions    int64
	}{
		{"", `["GET","k"]`, 0, 1, 1},
		{"", `["SET","k","v"]`, 0, 1, 3},
		{"", `["BITFIELD","k","GET","u8","0"]`, 0, 1, 3},
		{"", `["BITFIELD_RO","k","GET","u8","0"]`, 0, 1, 1},
		{"/pipeline", `[["GET","k"],["SET","k","v"],["NOPE"]]`, 0, 2, 4},
		{"/multi-exec", `[["INCR","n"],["EXPIRE","n","9"],["GET","n"]]`, 0, 3, 7},
		{"", `["EVAL","return 1","0"]`, 0, 1, 1},
		{"", `["EVAL","redis.call('GET','k') return redis.call('SETBIT','b',1,1)","0"]`, 2, 3, 5},
		{
			"/multi-exec",
			`[["EVAL","return redis.call('INCR','n')","0"],["EVAL","return redis.call('GET','n')","0"]]`,
			2, 4, 6,
		},
	} {
		s.FlushAll()
		s.ResetStats()
		want := tt.billed
		if len(s.regions) > 0 {
			want = tt.withRegions
		}
		got := do(t, s, call{path: tt.path, body: tt.body})
		if n := s.Stats(); got.status != 200 || n.Called != tt.called || n.Billed != want {
			t.Errorf("%s: %s: called %d, billed %d; want %d, %d",
				tt.body, got.body, n.Called, n.Billed, tt.called, want)
		}
	}
}

func TestReplicaLags(t *testing.T) {
	s := NewServer(t)
	ask(t, s, "", `["SET","k","0"]`, "")
	s.SetReplicaLag(2)
	_, first := ask(t, s, "", `["SET","k","1"]`, "")
	_, second := ask(t, s, "", `["SET","k","2"]`, first)
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
		body, token := ask(t, s, "", `["GET","k"]`, tt.token)
		if want := `{"result":"` + tt.want + `"}`; body != want {
			t.Errorf("%s: got %s, want %s", tt.name, body, want)
		}
		if tt.want == "2" && token < second {
			t.Errorf("%s: got token %q, want at least %q, which names what was read", tt.name, token, second)
		}
	}
	ask(t, s, "", `["SET","k","3"]`, "")
	wantBody(t, s, call{body: `["GET","k"]`}, `{"result":"1"}`)
	s.SetReplicaLag(1)
	wantBody(t, s, call{body: `["GET","k"]`}, `{"result":"2"}`)
	s.CatchUp()
	wantBody(t, s, call{body: `["GET","k"]`}, `{"result":"3"}`)
}

func TestReplicaAnswersReadsOnly(t *testing.T) {
	s := NewServer(t)
	s.SetReplicaLag(math.MaxInt)
	ask(t, s, "", `["SET","k","x"]`, "")
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
		wantBody(t, s, call{path: tt.path, body: tt.cmd}, tt.want)
	}
	s.SetReplicaLag(0)
	wantBody(t, s, call{body: `["GET","k"]`}, `{"result":"x"}`)
}

// TestReplicaStartsAsACopy has keys of several types before there is a region.
// The region has them too, and FastForward and FlushAll affect it.
func TestReplicaStartsAsACopy(t *testing.T) {
	s := filled(t)
	exec(t, s, "EXPIRE", "s", "3600")
	s.SetReplicaLag(10)
	for cmd, want := range map[string]string{
		`["LRANGE","l","0","-1"]`: `{"result":["x","y"]}`,
		`["GET","s"]`:             `{"result":"foo"}`,
		// Not the exact time: it runs while the test does.
		`["EVAL_RO","return redis.call('TTL','s') > 0","0"]`: `{"result":1}`,
	} {
		wantBody(t, s, call{body: cmd}, want)
	}
	s.FastForward(2 * time.Hour)
	wantBody(t, s, call{body: `["GET","s"]`}, `{"result":null}`)
	s.FlushAll()
	wantBody(t, s, call{body: `["DBSIZE"]`}, `{"result":0}`)
}
