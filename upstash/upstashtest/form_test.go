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
	enc := base64.StdEncoding.EncodeToString
	for _, tt := range []struct {
		name string
		call call
		want int
		body string
	}{
		{"command", call{path: "/", body: `["SET","a","b","EX","100"]`}, 200, `{"result":"OK"}`},
		{"command without a slash", call{body: `["GET","s"]`}, 200, `{"result":"foo"}`},
		{"command by PUT", call{method: "PUT", path: "/", body: `["GET","s"]`}, 200, `{"result":"foo"}`},
		{"lower case", call{path: "/", body: ` [ "get" , "s" ] `}, 200, `{"result":"foo"}`},
		{"null", call{path: "/", body: `["GET","none"]`}, 200, `{"result":null}`},
		{"integer", call{path: "/", body: `["INCR","n"]`}, 200, `{"result":6}`},
		{
			"int64",
			call{path: "/", body: `["INCRBY","n","9007199254740990"]`},
			200,
			`{"result":9007199254740995}`,
		},
		{
			"array",
			call{path: "/", body: `["BITFIELD","s","GET","u8","0","GET","u1","9"]`},
			200,
			`{"result":[102,1]}`,
		},
		{"empty array", call{path: "/", body: `["BITFIELD","s"]`}, 200, `{"result":[]}`},
		{
			"null in an array",
			call{body: `["BITFIELD","s","OVERFLOW","FAIL","INCRBY","u1","1","1"]`},
			200,
			`{"result":[null]}`,
		},
		{
			"escapes",
			call{path: "/", body: `["ECHO","\u00e9\"\\\n<&>\ud83d\ude00"]`},
			200,
			`{"result":"é\"\\\n<&>😀"}`,
		},
		{"not UTF-8", call{path: "/", body: `["GET","raw"]`}, 200, `{"result":"a\ufffd\ufffdb"}`},
		{"small number", call{path: "/", body: `["SETBIT","s",1,1]`}, 200, `{"result":1}`},
		{"big number", call{path: "/", body: `["ECHO",4294967295]`}, 200, `{"result":"4294967295"}`},
		{"number as it is written", call{path: "/", body: `["ECHO",-1.50e+3]`}, 200, `{"result":"-1.50e+3"}`},
		{"a million", call{path: "/", body: `["SETBIT","s",1000000,1]`}, 200, `{"result":0}`},
		{
			"offset as a number",
			call{path: "/", body: `["BITFIELD","none","GET","u1",4294967295]`},
			200,
			`{"result":[0]}`,
		},
		{"true", call{path: "/", body: `["ECHO",true]`}, 200, `{"result":"true"}`},
		{"false", call{path: "/pipeline", body: `[["ECHO",false]]`}, 200, `[{"result":"false"}]`},
		{
			"offset as a string",
			call{path: "/", body: `["BITFIELD","s","GET","u1","4294967295"]`},
			200,
			`{"result":[0]}`,
		},

		{"path", call{method: "GET", path: "/GET/s"}, 200, `{"result":"foo"}`},
		{"path by POST", call{path: "/get/s"}, 200, `{"result":"foo"}`},
		{
			"path with escapes",
			call{method: "GET", path: "/echo/a%2Fb%20c+d"},
			200,
			`{"result":"a/b c+d"}`,
		},
		{
			"path with an empty argument",
			call{method: "GET", path: "/echo/"},
			400, `{"error":"ERR empty argument in the path"}`,
		},
		{
			"path with an empty key",
			call{method: "GET", path: "/get/"},
			400, `{"error":"ERR empty argument in the path"}`,
		},
		{
			"scheme in lower case",
			call{body: `["ECHO","x"]`, header: header("Authorization", "bearer TOKEN"), token: "-"},
			200, `{"result":"x"}`,
		},
		{
			"encoding in upper case",
			call{body: `["ECHO","x"]`, header: header("Upstash-Encoding", "BASE64")},
			200, `{"result":"eA=="}`,
		},
		{
			"path with options",
			call{method: "GET", path: "/SET/foo/bar?EX=100&NX"},
			200,
			`{"result":"OK"}`,
		},
		{
			"path with an empty option",
			call{method: "GET", path: "/SET/s/bar?NX="},
			200,
			`{"result":null}`,
		},
		{"raw body", call{path: "/setrange/raw/1", body: "\x00\xfe\xff"}, 200, `{"result":4}`},
		{
			"raw body before options",
			call{path: "/set/raw?GET", body: "x"},
			200,
			`{"result":"a\ufffd\ufffdb"}`,
		},
		{
			"bad escape",
			call{method: "GET", path: "/echo/a?x=%zz"},
			400,
			`{"error":"ERR invalid escape in the path or the query"}`,
		},

		{
			"pipeline",
			call{path: "/pipeline", body: `[["GET","s"],["INCR","s"],["NOPE"],["INCR","n"]]`},
			200,
			`[{"result":"foo"},{"error":"ERR value is not an integer or out of range"},` +
				`{"error":"ERR Command is not available: 'NOPE'. ` + seeList + `"},{"result":6}]`,
		},
		{
			"transaction",
			call{path: "/multi-exec", body: `[["INCR","n"],["INCR","l"],["INCR","n"]]`},
			200,
			`[{"result":6},` + wrongType + `,{"result":7}]`,
		},
		{
			"discarded for an unknown command",
			call{path: "/multi-exec", body: `[["INCR","n"],["NOPE"]]`},
			400,
			`{"error":"EXECABORT Transaction discarded because of previous errors."}`,
		},
		{
			"discarded for its arity",
			call{path: "/multi-exec", body: `[["INCR"],["INCR","n"]]`},
			400,
			`{"error":"EXECABORT Transaction discarded because of previous errors."}`,
		},

		{
			"base64",
			call{path: "/", body: `["GET","raw"]`, header: b64},
			200,
			`{"result":"` + enc([]byte("a\xff\xfeb")) + `"}`,
		},
		{
			"base64 leaves OK",
			call{path: "/", body: `["SET","a","b"]`, header: b64},
			200,
			`{"result":"OK"}`,
		},
		{
			"base64 of the string OK",
			call{path: "/", body: `["ECHO","OK"]`, header: b64},
			200,
			`{"result":"T0s="}`,
		},
		{
			"base64 of another status",
			call{path: "/", body: `["TYPE","s"]`, header: b64},
			200,
			`{"result":"` + enc([]byte("string")) + `"}`,
		},
		{"base64 leaves integers and null", call{
			path: "/pipeline", body: `[["GET","none"],["STRLEN","s"],["LRANGE","l","0","-1"]]`,
			header: b64,
		}, 200, `[{"result":null},{"result":3},{"result":["eA==","eQ=="]}]`},
		{"base64 leaves errors", call{path: "/", body: `["INCR","l"]`, header: b64}, 400, wrongType},

		{
			"resp2",
			call{path: "/", body: `["LRANGE","l","0","-1"]`, header: resp2},
			200,
			"*2\r\n$1\r\nx\r\n$1\r\ny\r\n",
		},
		{
			"resp2 bytes",
			call{path: "/", body: `["GET","raw"]`, header: resp2},
			200,
			"$4\r\na\xff\xfeb\r\n",
		},
		{"resp2 status, integer, null", call{
			path: "/pipeline", body: `[["SET","a","b"],["STRLEN","s"],["GET","none"]]`, header: resp2,
		}, 200, "+OK\r\n:3\r\n$-1\r\n"},
		{
			"resp2 error",
			call{path: "/", body: `["INCR","l"]`, header: resp2},
			400,
			"-" + string(database.ErrWrongType) + "\r\n",
		},
		{
			"resp2 with base64",
			call{
				path: "/", body: `["GET","s"]`,
				header: header("Upstash-Encoding", "base64", "Upstash-Response-Format", "resp2"),
			},
			400,
			`{"error":"ERR base64 encoding is not supported with the resp2 response format"}`,
		},
		{
			"resp2 transaction",
			call{path: "/multi-exec", body: `[["GET","s"]]`, header: resp2},
			400,
			`{"error":"ERR the resp2 response format is not supported for /multi-exec"}`,
		},
		{
			"unknown encoding",
			call{body: `["GET","s"]`, header: header("Upstash-Encoding", "hex")},
			400,
			`{"error":"ERR unsupported Upstash-Encoding: use base64 or leave it out"}`,
		},
		{
			"unknown format",
			call{body: `["GET","s"]`, header: header("Upstash-Response-Format", "3")},
			400,
			`{"error":"ERR unsupported Upstash-Response-Format: use json or resp2"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
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
		if _, err := s.Exec(cmd...); err != nil {
			t.Fatal(err)
		}
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
