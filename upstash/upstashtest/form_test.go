package upstashtest

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// TestForms has each form of a request and each encoding of an answer. Before
// each row the keys are s = "foo", n = 5, raw = bytes that are not UTF-8, and a
// list l.
func TestForms(t *testing.T) {
	b64, resp2 := header("Upstash-Encoding", "base64"), header("Upstash-Response-Format", "resp2")
	both := header("Upstash-Encoding", "base64", "Upstash-Response-Format", "resp2")
	enc := base64.StdEncoding.EncodeToString
	const (
		emptyArgument = `{"error":"ERR empty argument in the path"}`
		discarded     = `{"error":"EXECABORT Transaction discarded because of previous errors."}`
	)
	for _, tt := range []struct {
		call call
		want int
		body string
	}{
		{call{body: `["SET","a","b","EX","100"]`}, 200, `{"result":"OK"}`},
		{call{method: "PUT", body: `["GET","s"]`}, 200, `{"result":"foo"}`},
		{call{body: ` [ "get" , "s" ] `}, 200, `{"result":"foo"}`},
		{call{body: `["GET","none"]`}, 200, `{"result":null}`},
		{call{body: `["INCR","n"]`}, 200, `{"result":6}`},
		{call{body: `["INCRBY","n","9007199254740990"]`}, 200, `{"result":9007199254740995}`},
		{call{body: `["BITFIELD","s","GET","u8","0","GET","u1","9"]`}, 200, `{"result":[102,1]}`},
		{call{body: `["BITFIELD","s"]`}, 200, `{"result":[]}`},
		{call{body: `["BITFIELD","s","OVERFLOW","FAIL","INCRBY","u1","1","1"]`}, 200, `{"result":[null]}`},
		{call{body: `["ECHO","\u00e9\"\\\n<&>\ud83d\ude00"]`}, 200, `{"result":"é\"\\\n<&>😀"}`},
		{call{body: `["GET","raw"]`}, 200, `{"result":"a\ufffd\ufffdb"}`},
		{call{body: `["SETBIT","s",1,1]`}, 200, `{"result":1}`},
		{call{body: `["SETBIT","s",1000000,1]`}, 200, `{"result":0}`},
		{call{body: `["ECHO",4294967295]`}, 200, `{"result":"4294967295"}`},
		{call{body: `["ECHO",-1.50e+3]`}, 200, `{"result":"-1.50e+3"}`},
		{call{body: `["BITFIELD","none","GET","u1",4294967295]`}, 200, `{"result":[0]}`},
		{call{body: `["BITFIELD","s","GET","u1","4294967295"]`}, 200, `{"result":[0]}`}, // no int32
		{call{body: `["BITFIELD_RO","none","GET","u63","4294967295"]`}, 200, `{"result":[0]}`},
		{call{body: `["GETBIT","none","4294967295"]`}, 200, `{"result":0}`},
		{call{body: `["ECHO",true]`}, 200, `{"result":"true"}`},
		{call{path: "/pipeline", body: `[["ECHO",false]]`}, 200, `[{"result":"false"}]`},
		{call{body: `["SET","a","b","EX"]`}, 400, `{"error":"ERR syntax error"}`},
		{call{body: `["GET","l"]`}, 400, wrongType},
		{
			call{body: `["ECHO","x"]`, header: header("Authorization", "bearer TOKEN"), token: "-"},
			200, `{"result":"x"}`,
		},

		{call{method: "GET", path: "/GET/s"}, 200, `{"result":"foo"}`},
		{call{path: "/get/s"}, 200, `{"result":"foo"}`},
		{call{method: "GET", path: "/get/s?_token=TOKEN", token: "-"}, 200, `{"result":"foo"}`},
		{call{method: "GET", path: "/echo/a%2Fb%20c+d"}, 200, `{"result":"a/b c+d"}`},
		{call{method: "GET", path: "/echo/"}, 400, emptyArgument},
		{call{method: "GET", path: "/get/"}, 400, emptyArgument},
		{call{method: "GET", path: "/SET/foo/bar?EX=100&NX"}, 200, `{"result":"OK"}`},
		{call{method: "GET", path: "/SET/s/bar?NX="}, 200, `{"result":null}`},
		{call{path: "/setrange/raw/1", body: "\x00\xfe\xff"}, 200, `{"result":4}`},
		{call{path: "/set/raw?GET", body: "x"}, 200, `{"result":"a\ufffd\ufffdb"}`},
		{
			call{method: "GET", path: "/echo/a?x=%zz"},
			400, `{"error":"ERR invalid escape in the path or the query"}`,
		},

		{
			call{path: "/pipeline", body: `[["GET","s"],["INCR","s"],["NOPE"],["INCR","n"]]`},
			200,
			`[{"result":"foo"},{"error":"ERR value is not an integer or out of range"},` +
				`{"error":"ERR Command is not available: 'NOPE'. ` + seeList + `"},{"result":6}]`,
		},
		{
			call{path: "/multi-exec", body: `[["INCR","n"],["INCR","l"],["INCR","n"]]`},
			200, `[{"result":6},` + wrongType + `,{"result":7}]`,
		},
		{call{path: "/multi-exec", body: `[["INCR","n"],["NOPE"]]`}, 400, discarded},
		{call{path: "/multi-exec", body: `[["INCR"],["INCR","n"]]`}, 400, discarded},

		{call{body: `["GET","raw"]`, header: b64}, 200, `{"result":"` + enc([]byte("a\xff\xfeb")) + `"}`},
		{call{body: `["SET","a","b"]`, header: b64}, 200, `{"result":"OK"}`},
		{call{body: `["ECHO","OK"]`, header: b64}, 200, `{"result":"T0s="}`},
		{call{body: `["TYPE","s"]`, header: b64}, 200, `{"result":"` + enc([]byte("string")) + `"}`},
		{
			call{path: "/pipeline", body: `[["GET","none"],["STRLEN","s"],["LRANGE","l","0","-1"]]`, header: b64},
			200, `[{"result":null},{"result":3},{"result":["eA==","eQ=="]}]`,
		},
		{call{body: `["INCR","l"]`, header: b64}, 400, wrongType},
		{call{body: `["ECHO","x"]`, header: header("Upstash-Encoding", "BASE64")}, 200, `{"result":"eA=="}`},

		{call{body: `["LRANGE","l","0","-1"]`, header: resp2}, 200, "*2\r\n$1\r\nx\r\n$1\r\ny\r\n"},
		{call{body: `["GET","raw"]`, header: resp2}, 200, "$4\r\na\xff\xfeb\r\n"},
		{
			call{path: "/pipeline", body: `[["SET","a","b"],["STRLEN","s"],["GET","none"]]`, header: resp2},
			200, "+OK\r\n:3\r\n$-1\r\n",
		},
		{call{body: `["INCR","l"]`, header: resp2}, 400, "-" + string(database.ErrWrongType) + "\r\n"},

		{
			call{body: `["GET","s"]`, header: both},
			400, `{"error":"ERR base64 encoding is not supported with the resp2 response format"}`,
		},
		{
			call{path: "/multi-exec", body: `[["GET","s"]]`, header: resp2},
			400, `{"error":"ERR the resp2 response format is not supported for /multi-exec"}`,
		},
		{
			call{body: `["GET","s"]`, header: header("Upstash-Encoding", "hex")},
			400, `{"error":"ERR unsupported Upstash-Encoding: use base64 or leave it out"}`,
		},
		{
			call{body: `["GET","s"]`, header: header("Upstash-Response-Format", "3")},
			400, `{"error":"ERR unsupported Upstash-Response-Format: use json or resp2"}`,
		},
	} {
		t.Run(tt.call.String(), func(t *testing.T) {
			s := filled(t, WithToken("TOKEN"))
			got := do(t, s, tt.call)
			if got.status != tt.want || got.body != tt.body {
				t.Errorf("got  %d %s\nwant %d %s", got.status, got.body, tt.want, tt.body)
			}
			want := "application/json"
			if tt.call.header.Get(wire.HeaderFormat) == "resp2" && !strings.HasPrefix(tt.body, "{") {
				want = "application/octet-stream"
			}
			if typ := got.header.Get("Content-Type"); typ != want {
				t.Errorf("Content-Type %q, want %q", typ, want)
			}
		})
	}
}

func filled(t *testing.T, opts ...Option) *Server {
	t.Helper()
	s := NewServer(t, opts...)
	for _, cmd := range [][]string{
		{"SET", "s", "foo"}, {"SET", "n", "5"}, {"SET", "raw", "a\xff\xfeb"}, {"RPUSH", "l", "x", "y"},
	} {
		exec(t, s, cmd...)
	}
	return s
}

// FuzzJSONBody sends any body to the three places for JSON.
func FuzzJSONBody(f *testing.F) {
	for _, body := range []string{
		`["SET","foo","bar"]`, `[["SET","foo","bar"],["GET","foo"]]`, `["GET",null]`, `[]`, ``,
		`["GET",1e3,true,{"a":[1,2]}]`, `["BITFIELD","k","SET","u1","#7","1"]`,
	} {
		for path := range uint8(3) {
			f.Add(path, body)
		}
	}
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, path uint8, body string) {
		paths := []string{"/", "/pipeline", "/multi-exec"}
		s.answer(t, http.MethodPost, paths[int(path)%len(paths)], body)
	})
}

// FuzzPath sends any path and query, with any raw body.
func FuzzPath(f *testing.F) {
	f.Add("/SET/foo/bar", "EX=100", "")
	f.Add("/setrange/k/0", "", "\x00\xff")
	f.Add("/set/k", "NX&EX=9", "raw")
	f.Add("/echo/a%2Fb%20c", "_token=x&=&&a", "")
	f.Add("//", "", "")
	f.Add("/get/%zz", "%zz", "")
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, path, query, body string) {
		// The server never gets a request that net/http itself refuses.
		u, err := url.ParseRequestURI("/" + strings.TrimPrefix(path, "/") + "?" + query)
		if err != nil || !strings.HasPrefix(path, "/") || strings.ContainsAny(u.String(), " \r\n") {
			t.Skip()
		}
		s.answer(t, http.MethodPost, u.String(), body)
	})
}

type fuzzed struct{ *Server }

func fuzzServer(f *testing.F) fuzzed {
	f.Helper()
	return fuzzed{NewServer(f, WithMaxRequest(1<<16), WithMaxRecord(1<<16))}
}

// answer sends a request. It fails the test if the answer is incomplete, or
// shows a defect of the server.
func (s fuzzed) answer(t *testing.T, method, target, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+target, strings.NewReader(body))
	if err != nil {
		t.Skip()
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	w := httptest.NewRecorder()
	s.serve(w, r)
	out := w.Body.String()
	switch {
	case w.Code >= 500:
		t.Errorf("status %d: %s, want one below 500", w.Code, out)
	case !hasAnyPrefix(out, `{"result":`, `{"error":`, `[{"result":`, `[{"error":`):
		t.Errorf("answer: %s, want a result or an error, alone or in an array", out)
	case w.Code != http.StatusOK && !strings.HasPrefix(out, `{"error":`):
		t.Errorf("status %d with %s, want an error with it", w.Code, out)
	}
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// TestNoKeyExpiresInATransaction asks for a key again after a script that outlasts
// its time to live.
func TestNoKeyExpiresInATransaction(t *testing.T) {
	s := NewServer(t)
	wantBody(t, s, call{path: "/multi-exec", body: `[["SET","k","v","PX","5"],["EXISTS","k"],` +
		`["EVAL","for i = 1, 1e6 do end return 1","0"],["EXISTS","k"]]`},
		`[{"result":"OK"},{"result":1},{"result":1},{"result":1}]`)
}
