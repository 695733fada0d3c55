package upstashtest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

const (
	seeList    = "Package upstashtest lists the commands that its database lacks; the service may have them"
	notAllowed = `is not allowed in REST or it has a special context path`
	wrongType  = `{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}`
)

// TestRefusals checks the statuses and texts of commands that are not
// executed.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("k", database.MaxKey+1)
	for _, tt := range []struct {
		name string
		call call
		want int
		text string
	}{
		{"no token", call{path: "/", body: `["PING"]`, token: "-"}, 401, textUnauthorized},
		{"wrong token", call{path: "/", body: `["PING"]`, token: "nope"}, 401, textUnauthorized},
		{
			"no token, transaction",
			call{path: "/multi-exec", body: `[["PING"]]`, token: "-"},
			401,
			textUnauthorized,
		},
		{
			"wrong token, pipeline",
			call{path: "/pipeline", body: `[["PING"]]`, token: "nope"},
			401,
			textUnauthorized,
		},
		{
			"wrong token in the query",
			call{method: "GET", path: "/ping?_token=nope", token: "-"},
			401,
			textUnauthorized,
		},
		{
			"method",
			call{method: "DELETE", path: "/del/s"},
			405,
			"ERR method not allowed: use HEAD, GET, POST or PUT",
		},
		{
			"read-only SET",
			call{path: "/", body: `["SET","a","b"]`, token: "ro"},
			400,
			"NOPERM this user has no permissions to run the 'set' command or its subcommand",
		},
		{
			"read-only BITFIELD",
			call{path: "/", body: `["BITFIELD","s","GET","u1","0"]`, token: "ro"},
			400,
			"NOPERM this user has no permissions to run the 'bitfield' command or its subcommand",
		},
		{
			"read-only EVAL",
			call{path: "/", body: `["EVAL","return 1","0"]`, token: "ro"},
			400,
			"NOPERM this user has no permissions to run the 'eval' command or its subcommand",
		},
		{
			"arity",
			call{path: "/", body: `["GET"]`},
			400,
			"ERR wrong number of arguments for 'get' command",
		},
		{
			"arity of many",
			call{path: "/", body: `["BITFIELD"]`},
			400,
			"ERR wrong number of arguments for 'bitfield' command",
		},
		{
			"unknown",
			call{path: "/", body: `["NOPE","x"]`},
			400,
			"ERR Command is not available: 'NOPE'. " + seeList,
		},
		{
			"unknown in the path",
			call{method: "GET", path: "/nope"},
			400,
			"ERR Command is not available: 'nope'. " + seeList,
		},
		{"syntax", call{path: "/", body: `["SET","a","b","EX"]`}, 400, "ERR syntax error"},
		{"wrong type", call{path: "/", body: `["GET","l"]`}, 400, string(database.ErrWrongType)},
		{"MULTI", call{path: "/", body: `["MULTI"]`}, 400, `ERR Command "MULTI" ` + notAllowed},
		{
			"blocking",
			call{path: "/", body: `["blpop","l","0"]`},
			400,
			`ERR Command "BLPOP" ` + notAllowed,
		},
		{
			"XREAD that blocks",
			call{path: "/", body: `["XREAD","BLOCK","0","STREAMS","x","$"]`},
			400,
			`ERR Command "XREAD" ` + notAllowed,
		},
		{"null argument", call{path: "/", body: `["GET",null]`}, 400, "ERR null args are not supported"},
		{"nested array", call{path: "/", body: `["GET",["a"]]`}, 400, "ERR unsupported arg type: array"},
		{"object", call{path: "/", body: `["GET",{"a":"],"}]`}, 400, "ERR unsupported arg type: object"},
		{"empty body", call{path: "/"}, 400, "EOF"},
		{"not an array", call{path: "/", body: `{"a":1}`}, 400, "expected JSON array"},
		{"not JSON", call{path: "/", body: `["GET",`}, 400, "ERR the request body is not valid JSON"},
		{
			"two documents",
			call{path: "/", body: `["PING"]["PING"]`},
			400,
			"ERR the request body is not valid JSON",
		},
		{"empty command", call{path: "/", body: `[]`}, 400, "ERR empty command"},
		{"empty name", call{path: "/", body: `[""]`}, 400, "ERR empty command"},
		{"empty path", call{method: "GET", path: "//x"}, 400, "ERR empty command"},
		{"empty pipeline", call{path: "/pipeline", body: `[]`}, 400, "ERR empty pipeline request"},
		{"pipeline of strings", call{path: "/pipeline", body: `["GET","a"]`}, 400, "expected JSON array"},
		{
			"empty command in a pipeline",
			call{path: "/pipeline", body: `[["PING"],[]]`},
			400,
			"ERR empty command",
		},
		{
			"null in a pipeline",
			call{path: "/pipeline", body: `[["ECHO",null]]`},
			400,
			"ERR null args are not supported",
		},
		{"transaction without a body", call{path: "/multi-exec"}, 400, "EOF"},
		{
			"request too large",
			call{path: "/", body: `["SET","a","` + strings.Repeat("x", 40_000) + `"]`},
			413,
			"ERR max request size exceeded. Limit: 40000 bytes, Actual: 40014 bytes. " +
				"See https://upstash.com/docs/redis/troubleshooting/max_request_size_exceeded for details",
		},
		{
			"key too long",
			call{path: "/", body: `["GET","` + long + `"]`},
			400,
			"ERR max key size exceeded. Limit: 32768 bytes, Actual: 32769 bytes",
		},
		{
			"SET too large",
			call{path: "/set/a", body: strings.Repeat("x", 1001)},
			400,
			"ERR max single record size exceeded",
		},
		{
			"SETEX too large",
			call{path: "/setex/a/9", body: strings.Repeat("x", 1001)},
			400,
			"ERR max single record size exceeded",
		},
		{
			"APPEND too large",
			call{path: "/append/s", body: strings.Repeat("x", 998)},
			400,
			"ERR max single record size exceeded",
		},
		{
			"SETRANGE too large",
			call{path: "/setrange/s/1000", body: "x"},
			400,
			"ERR max single record size exceeded",
		},
		{
			"MSET too large",
			call{body: `["MSET","a","","b","` + strings.Repeat("x", 1001) + `"]`},
			400,
			"ERR max single record size exceeded",
		},
		{
			"a second key too long",
			call{body: `["RENAME","s","` + long + `"]`},
			400,
			"ERR max key size exceeded. Limit: 32768 bytes, Actual: 32769 bytes",
		},
		{"SETBIT too large", call{path: "/setbit/s/8000/1"}, 400, "ERR max single record size exceeded"},
		{
			"BITFIELD too large",
			call{path: "/bitfield/s/set/u2/7999/1"},
			400,
			"ERR max single record size exceeded",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := filled(t, WithMaxRequest(40_000), WithMaxRecord(1000), WithReadOnlyToken("ro"))
			got := do(t, s, tt.call)
			want := `{"error":` + quoted(tt.text) + "}"
			if got.status != tt.want || got.body != want {
				t.Errorf("got  %d %s\nwant %d %s", got.status, got.body, tt.want, want)
			}
			if n := s.Stats().Commands; n > 0 && !runs(tt.name) {
				t.Errorf("Stats.Commands after a refusal: %d, want 0", n)
			}
		})
	}
}

// runs reports whether the database itself refuses the command of a row.
func runs(name string) bool { return name == "syntax" || name == "wrong type" }

// TestReadersScripts runs scripts that look further than a read-only token may,
// or change something.
func TestReadersScripts(t *testing.T) {
	for name, opt := range map[string]Option{"memory": inMemory(t), "redis": withTestRedis(t)} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(t, opt, WithReadOnlyToken("some"))
			if _, err := s.Exec("SET", "hidden", "v"); err != nil {
				t.Fatal(err)
			}
			run := func(token, text string) result {
				return do(t, s, call{body: `["EVAL_RO",` + quoted(text) + `,"0"]`, token: token})
			}
			if got := run("some", "return redis.call('GET','hidden')"); got.body != `{"result":"v"}` {
				t.Errorf("GET: got %s, want v", got.body)
			}
			for _, command := range []string{
				"'KEYS','*'", "'SCAN','0'", "'SELECT','1'", "'SLOWLOG','GET'", "'SLOWLOG','RESET'",
				"'SPUBLISH','c','m'", "'PUBLISH','c','m'", "'MEMORY','PURGE'", "'CONFIG','GET','*'", "'SET','a','b'",
			} {
				if got := run("some", "return redis.call("+command+")"); got.status != http.StatusBadRequest {
					t.Errorf("%s with the read-only token: got %d %s, want a refusal", command, got.status, got.body)
				}
			}
			if got := run(s.Token, "return redis.call('KEYS','*')"); got.body != `{"result":["hidden"]}` {
				t.Errorf("KEYS with the token for everything: got %s, want the key", got.body)
			}
			for _, command := range []string{"'SELECT','1'", "'SLOWLOG','RESET'", "'MEMORY','PURGE'"} {
				if got := run(s.Token, "return redis.call("+command+")"); got.status != http.StatusBadRequest {
					t.Errorf("%s with the token for everything: got %d %s, want a refusal", command, got.status, got.body)
				}
			}
			for _, body := range []string{`["SPUBLISH","c","m"]`, `["MEMORY","PURGE"]`} {
				if got := do(t, s, call{body: body, token: "some"}); got.status != http.StatusBadRequest {
					t.Errorf("%s: got %d %s, want a refusal", body, got.status, got.body)
				}
			}
		})
	}
}

// TestReadOnlyTokenSeesNoOtherKeys: a read-only token does not see the whole
// database, as the service documents.
func TestReadOnlyTokenSeesNoOtherKeys(t *testing.T) {
	s := NewServer(t, WithReadOnlyToken("some"))
	for name, body := range map[string]string{"keys": `["KEYS","*"]`, "scan": `["SCAN","0"]`} {
		want := `{"error":` + quoted(string(database.NoPermission(name))) + "}"
		got := do(t, s, call{body: body, token: "some"})
		if got.status != http.StatusBadRequest || got.body != want {
			t.Errorf("%s: got %d %s, want 400 %s", body, got.status, got.body, want)
		}
		if got := do(t, s, call{body: body}); got.status != http.StatusOK {
			t.Errorf("%s with all rights: got %d %s, want status 200", body, got.status, got.body)
		}
	}
	if got := do(t, s, call{body: `["SSCAN","k","0"]`, token: "some"}); got.status != http.StatusOK {
		t.Errorf("SSCAN of one key: got %d %s, want status 200", got.status, got.body)
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
		t.Errorf("GET with _token in the URL: got %d %s, want the result \"foo\"", got.status, got.body)
	}
}
