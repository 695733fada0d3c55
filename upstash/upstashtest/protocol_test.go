package upstashtest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	seeCompat  = "See https://upstash.com/docs/redis/overall/rediscompatibility for details"
	notAllowed = `is not allowed in REST or it has a special context path`
	wrongType  = `{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}`
)

// TestForms goes through the request forms and the answers' encodings. Each row
// starts with the keys s = "foo", n = 5, raw = bytes that are not UTF-8, and a
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
		{"int64", call{path: "/", body: `["INCRBY","n","9007199254740990"]`}, 200, `{"result":9007199254740995}`},
		{"array", call{path: "/", body: `["BITFIELD","s","GET","u8","0","GET","u1","9"]`}, 200, `{"result":[102,1]}`},
		{"empty array", call{path: "/", body: `["BITFIELD","s"]`}, 200, `{"result":[]}`},
		{"null in an array", call{path: "/", body: `["BITFIELD","s","OVERFLOW","FAIL","INCRBY","u1","1","1"]`}, 200,
			`{"result":[null]}`},
		{"escapes", call{path: "/", body: `["ECHO","\u00e9\"\\\n<&>\ud83d\ude00"]`}, 200, `{"result":"é\"\\\n<&>😀"}`},
		{"not UTF-8", call{path: "/", body: `["GET","raw"]`}, 200, `{"result":"a\ufffd\ufffdb"}`},
		{"small number", call{path: "/", body: `["SETBIT","s",1,1]`}, 200, `{"result":1}`},
		{"big number", call{path: "/", body: `["ECHO",4294967295]`}, 200, `{"result":"4.294967295e+09"}`},
		{"offset as a number", call{path: "/", body: `["BITFIELD","s","GET","u1",4294967295]`}, 400,
			`{"error":"ERR bit offset is not an integer or out of range"}`},
		{"offset as a string", call{path: "/", body: `["BITFIELD","s","GET","u1","4294967295"]`}, 200, `{"result":[0]}`},

		{"path", call{method: "GET", path: "/GET/s"}, 200, `{"result":"foo"}`},
		{"path by POST", call{path: "/get/s"}, 200, `{"result":"foo"}`},
		{"path with escapes", call{method: "GET", path: "/echo/a%2Fb%20c+d"}, 200, `{"result":"a/b c+d"}`},
		{"path with an empty argument", call{method: "GET", path: "/echo/"}, 200, `{"result":""}`},
		{"path with options", call{method: "GET", path: "/SET/foo/bar?EX=100&NX"}, 200, `{"result":"OK"}`},
		{"path with an empty option", call{method: "GET", path: "/SET/s/bar?NX="}, 200, `{"result":null}`},
		{"raw body", call{path: "/setrange/raw/1", body: "\x00\xfe\xff"}, 200, `{"result":4}`},
		{"raw body before options", call{path: "/set/raw?GET", body: "x"}, 200, `{"result":"a\ufffd\ufffdb"}`},
		{"bad escape", call{method: "GET", path: "/echo/a?x=%zz"}, 400,
			`{"error":"ERR invalid escape in the path or the query"}`},

		{"pipeline", call{path: "/pipeline", body: `[["GET","s"],["INCR","s"],["NOPE"],["INCR","n"]]`}, 200,
			`[{"result":"foo"},{"error":"ERR value is not an integer or out of range"},` +
				`{"error":"ERR Command is not available: 'NOPE'. ` + seeCompat + `"},{"result":6}]`},
		{"transaction", call{path: "/multi-exec", body: `[["INCR","n"],["INCR","l"],["INCR","n"]]`}, 200,
			`[{"result":6},` + wrongType + `,{"result":7}]`},
		{"discarded for an unknown command", call{path: "/multi-exec", body: `[["INCR","n"],["NOPE"]]`}, 400,
			`{"error":"EXECABORT Transaction discarded because of previous errors."}`},
		{"discarded for its arity", call{path: "/multi-exec", body: `[["INCR"],["INCR","n"]]`}, 400,
			`{"error":"EXECABORT Transaction discarded because of previous errors."}`},

		{"base64", call{path: "/", body: `["GET","raw"]`, header: b64}, 200,
			`{"result":"` + enc([]byte("a\xff\xfeb")) + `"}`},
		{"base64 leaves OK", call{path: "/", body: `["SET","a","b"]`, header: b64}, 200, `{"result":"OK"}`},
		{"base64 of the string OK", call{path: "/", body: `["ECHO","OK"]`, header: b64}, 200, `{"result":"T0s="}`},
		{"base64 of another status", call{path: "/", body: `["TYPE","s"]`, header: b64}, 200,
			`{"result":"` + enc([]byte("string")) + `"}`},
		{"base64 leaves integers and null", call{path: "/pipeline", body: `[["GET","none"],["STRLEN","s"],["LRANGE","l","0","-1"]]`,
			header: b64}, 200, `[{"result":null},{"result":3},{"result":["eA==","eQ=="]}]`},
		{"base64 leaves errors", call{path: "/", body: `["INCR","l"]`, header: b64}, 400, wrongType},

		{"resp2", call{path: "/", body: `["LRANGE","l","0","-1"]`, header: resp2}, 200, "*2\r\n$1\r\nx\r\n$1\r\ny\r\n"},
		{"resp2 bytes", call{path: "/", body: `["GET","raw"]`, header: resp2}, 200, "$4\r\na\xff\xfeb\r\n"},
		{"resp2 status, integer, null", call{path: "/pipeline", body: `[["SET","a","b"],["STRLEN","s"],["GET","none"]]`,
			header: resp2}, 200, "+OK\r\n:3\r\n$-1\r\n"},
		{"resp2 error", call{path: "/", body: `["INCR","l"]`, header: resp2}, 400, "-" + string(errWrongType) + "\r\n"},
		{"resp2 with base64", call{path: "/", body: `["GET","s"]`,
			header: header("Upstash-Encoding", "base64", "Upstash-Response-Format", "resp2")}, 400,
			`{"error":"ERR base64 encoding is not supported with the resp2 response format"}`},
		{"resp2 transaction", call{path: "/multi-exec", body: `[["GET","s"]]`, header: resp2}, 400,
			`{"error":"ERR the resp2 response format is not supported for /multi-exec"}`},
		{"unknown encoding", call{path: "/", body: `["GET","s"]`, header: header("Upstash-Encoding", "hex")}, 400,
			`{"error":"ERR unsupported Upstash-Encoding: use base64 or leave it out"}`},
		{"unknown format", call{path: "/", body: `["GET","s"]`, header: header("Upstash-Response-Format", "resp3")}, 400,
			`{"error":"ERR unsupported Upstash-Response-Format: use json or resp2"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := filled(t)
			got := do(t, s, tt.call)
			if got.status != tt.want || got.body != tt.body {
				t.Errorf("got  %d %s\nwant %d %s", got.status, got.body, tt.want, tt.body)
			}
			if typ := got.header.Get("Content-Type"); strings.HasPrefix(tt.body, "{") != (typ == "application/json") &&
				!strings.HasPrefix(tt.body, "[") {
				t.Errorf("Content-Type %q", typ)
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

// TestRefusals goes through the statuses and the texts of what is not executed.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("k", maxKey+1)
	for _, tt := range []struct {
		name string
		call call
		want int
		text string
	}{
		{"no token", call{path: "/", body: `["PING"]`, token: "-"}, 401, textUnauthorized},
		{"wrong token", call{path: "/", body: `["PING"]`, token: "nope"}, 401, textUnauthorized},
		{"wrong token in the query", call{method: "GET", path: "/ping?_token=nope", token: "-"}, 401, textUnauthorized},
		{"method", call{method: "DELETE", path: "/del/s"}, 405, "ERR method not allowed: use HEAD, GET, POST or PUT"},
		{"read-only SET", call{path: "/", body: `["SET","a","b"]`, token: "ro"}, 400,
			"NOPERM this user has no permissions to run the 'set' command or its subcommand"},
		{"read-only BITFIELD", call{path: "/", body: `["BITFIELD","s","GET","u1","0"]`, token: "ro"}, 400,
			"NOPERM this user has no permissions to run the 'bitfield' command or its subcommand"},
		{"read-only EVAL", call{path: "/", body: `["EVAL","return 1","0"]`, token: "ro"}, 400,
			"NOPERM this user has no permissions to run the 'eval' command or its subcommand"},
		{"arity", call{path: "/", body: `["GET"]`}, 400, "ERR wrong number of arguments for 'get' command"},
		{"arity of many", call{path: "/", body: `["BITFIELD"]`}, 400, "ERR wrong number of arguments for 'bitfield' command"},
		{"unknown", call{path: "/", body: `["NOPE","x"]`}, 400, "ERR Command is not available: 'NOPE'. " + seeCompat},
		{"unknown in the path", call{method: "GET", path: "/nope"}, 400, "ERR Command is not available: 'nope'. " + seeCompat},
		{"syntax", call{path: "/", body: `["SET","a","b","EX"]`}, 400, "ERR syntax error"},
		{"wrong type", call{path: "/", body: `["GET","l"]`}, 400, string(errWrongType)},
		{"MULTI", call{path: "/", body: `["MULTI"]`}, 400, `ERR Command "MULTI" ` + notAllowed},
		{"blocking", call{path: "/", body: `["blpop","l","0"]`}, 400, `ERR Command "BLPOP" ` + notAllowed},
		{"XREAD that blocks", call{path: "/", body: `["XREAD","BLOCK","0","STREAMS","x","$"]`}, 400,
			`ERR Command "XREAD" ` + notAllowed},
		{"null argument", call{path: "/", body: `["GET",null]`}, 400, "ERR null args are not supported"},
		{"nested array", call{path: "/", body: `["GET",["a"]]`}, 400, "ERR unsupported arg type: array"},
		{"object", call{path: "/", body: `["GET",{"a":"],"}]`}, 400, "ERR unsupported arg type: object"},
		{"bool", call{path: "/", body: `["GET",true]`}, 400, "ERR unsupported arg type: bool"},
		{"empty body", call{path: "/"}, 400, "EOF"},
		{"not an array", call{path: "/", body: `{"a":1}`}, 400, "expected JSON array"},
		{"not JSON", call{path: "/", body: `["GET",`}, 400, "ERR the request body is not valid JSON"},
		{"two documents", call{path: "/", body: `["PING"]["PING"]`}, 400, "ERR the request body is not valid JSON"},
		{"number out of range", call{path: "/", body: `["ECHO",1e999]`}, 400, "ERR a number is out of range"},
		{"empty command", call{path: "/", body: `[]`}, 400, "ERR empty command"},
		{"empty name", call{path: "/", body: `[""]`}, 400, "ERR empty command"},
		{"empty path", call{method: "GET", path: "//x"}, 400, "ERR empty command"},
		{"empty pipeline", call{path: "/pipeline", body: `[]`}, 400, "ERR empty pipeline request"},
		{"pipeline of strings", call{path: "/pipeline", body: `["GET","a"]`}, 400, "expected JSON array"},
		{"empty command in a pipeline", call{path: "/pipeline", body: `[["PING"],[]]`}, 400, "ERR empty command"},
		{"null in a pipeline", call{path: "/pipeline", body: `[["ECHO",null]]`}, 400, "ERR null args are not supported"},
		{"transaction without a body", call{path: "/multi-exec"}, 400, "EOF"},
		{"request too large", call{path: "/", body: `["SET","a","` + strings.Repeat("x", 40_000) + `"]`}, 413,
			"ERR max request size exceeded. Limit: 40000 bytes, Actual: 40014 bytes. " +
				"See https://upstash.com/docs/redis/troubleshooting/max_request_size_exceeded for details"},
		{"key too long", call{path: "/", body: `["GET","` + long + `"]`}, 400,
			"ERR max key size exceeded. Limit: 32768 bytes, Actual: 32769 bytes"},
		{"SET too large", call{path: "/set/a", body: strings.Repeat("x", 1001)}, 400, "ERR max single record size exceeded"},
		{"SETEX too large", call{path: "/setex/a/9", body: strings.Repeat("x", 1001)}, 400, "ERR max single record size exceeded"},
		{"APPEND too large", call{path: "/append/s", body: strings.Repeat("x", 998)}, 400, "ERR max single record size exceeded"},
		{"SETRANGE too large", call{path: "/setrange/s/1000", body: "x"}, 400, "ERR max single record size exceeded"},
		{"SETBIT too large", call{path: "/setbit/s/8000/1"}, 400, "ERR max single record size exceeded"},
		{"BITFIELD too large", call{path: "/bitfield/s/set/u2/7999/1"}, 400, "ERR max single record size exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := filled(t, WithMaxRequest(40_000), WithMaxRecord(1000), WithReadOnlyToken("ro"))
			got := do(t, s, tt.call)
			want := string(appendString([]byte(`{"error":`), tt.text)) + "}"
			if got.status != tt.want || got.body != want {
				t.Errorf("got  %d %s\nwant %d %s", got.status, got.body, tt.want, want)
			}
			if n := s.Stats().Commands; n > 0 && !runs(tt.name) {
				t.Errorf("%d commands were executed", n)
			}
		})
	}
}

// runs names the rows in which the database itself refuses.
func runs(name string) bool { return name == "syntax" || name == "wrong type" }

func TestLimitsAreInclusive(t *testing.T) {
	s := filled(t, WithMaxRequest(1000), WithMaxRecord(1000))
	for _, c := range []call{
		{path: "/set/a", body: strings.Repeat("x", 1000)},
		{path: "/setrange/b/999", body: "x"},
		{path: "/bitfield/c/set/u1/7999/1"},
		{path: "/setbit/d/7999/1"},
	} {
		if got := do(t, s, c); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", c.path, got.status, got.body)
		}
	}
}

func TestReadOnlyTokenReads(t *testing.T) {
	s := filled(t)
	for cmd, want := range map[string]string{
		`["GET","s"]`:                                    `{"result":"foo"}`,
		`["BITFIELD_RO","s","GET","u8","0"]`:             `{"result":[102]}`,
		`["BITCOUNT","s"]`:                               `{"result":16}`,
		`["EVAL_RO","return redis.call('GET','s')","0"]`: `{"result":"foo"}`,
	} {
		if got := do(t, s, call{path: "/", body: cmd, token: s.ReadOnlyToken}); got.body != want {
			t.Errorf("%s: got %s, want %s", cmd, got.body, want)
		}
	}
}

func TestTokenInQuery(t *testing.T) {
	s := filled(t)
	got := do(t, s, call{method: "GET", path: "/get/s?_token=" + s.Token, token: "-"})
	if got.body != `{"result":"foo"}` {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestHeadExecutes(t *testing.T) {
	s := filled(t)
	got := do(t, s, call{method: "HEAD", path: "/incr/n"})
	if got.status != http.StatusOK || got.body != "" {
		t.Errorf("got %d %q", got.status, got.body)
	}
	if v, err := s.Exec("GET", "n"); v != "6" || err != nil {
		t.Errorf("n = %v, %v", v, err)
	}
}

func TestStats(t *testing.T) {
	s := NewServer(t)
	body := `[["SET","a","1"],["INCR","a"],["NOPE"],["LPUSH","a","x"]]`
	got := do(t, s, call{path: "/pipeline", body: body})
	do(t, s, call{path: "/", body: "x", token: "-"})
	want := Stats{Requests: 2, Commands: 3, BytesIn: int64(len(body)), BytesOut: int64(len(got.body)) +
		int64(len(`{"error":"`+textUnauthorized+`"}`))}
	if s.Stats() != want {
		t.Errorf("got %+v, want %+v", s.Stats(), want)
	}
	s.ResetStats()
	if s.Stats() != (Stats{}) {
		t.Errorf("after ResetStats: %+v", s.Stats())
	}
	if _, err := s.Exec("GET", "a"); err != nil || s.Stats() != (Stats{}) {
		t.Errorf("Exec is counted: %+v, %v", s.Stats(), err)
	}
	do(t, s, call{path: "/multi-exec", body: `[["INCR","a"],["EXPIRE","a","9","NX"]]`})
	if n := s.Stats().Commands; n != 2 {
		t.Errorf("a transaction of two is %d commands", n)
	}
}

// TestRealRedisBehind runs the same requests against both backends.
func TestRealRedisBehind(t *testing.T) {
	requests := []call{
		{path: "/", body: `["SET","a","b","EX","100"]`},
		{path: "/", body: `["BITFIELD","f","SET","u8","#0","200","OVERFLOW","FAIL","INCRBY","u8","#0","100"]`},
		{path: "/pipeline", body: `[["GET","f"],["LPUSH","a","x"],["NOPE"],["GET","none"]]`},
		{path: "/multi-exec", body: `[["INCR","n"],["INCR","a"],["BITCOUNT","f","0","3","BIT"]]`},
		{path: "/multi-exec", body: `[["INCR","n"],["GET"]]`},
		{path: "/", body: `["GET","n"]`},
		{path: "/", body: `["EVAL","return {1,redis.call('GET',KEYS[1]),'x'}","1","a"]`},
		{path: "/setrange/r/2", body: "\xff\x00"},
		{path: "/get/r", method: "GET", header: header("Upstash-Encoding", "base64")},
	}
	ours, real := NewServer(t), NewServer(t, withTestRedis(t))
	for _, c := range requests {
		a, b := do(t, ours, c), do(t, real, c)
		if fmt.Sprint(a.status, a.body) != fmt.Sprint(b.status, b.body) {
			t.Errorf("%s %s:\n ours  %d %s\n redis %d %s", c.path, c.body, a.status, a.body, b.status, b.body)
		}
	}
	if _, err := real.Exec("SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	real.FlushAll()
	if v, err := real.Exec("DBSIZE"); v != int64(0) || err != nil {
		t.Errorf("after FlushAll: %v, %v", v, err)
	}
}
