package upstashtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

const (
	seeList     = "Package upstashtest lists the commands that its database lacks; the service may have them"
	notOverREST = `ERR Command "%s" is not allowed in REST or it has a special context path`
	wrongType   = `{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}`
)

// TestRefusals checks the statuses and texts of commands that are not
// executed.
func TestRefusals(t *testing.T) {
	const (
		noPermission = "NOPERM this user has no permissions to run the '%s' command or its subcommand"
		notThere     = "ERR Command is not available: '%s'. " + seeList
		noJSON       = "ERR the request body is not valid JSON"
		longRecord   = "ERR max single record size exceeded"
		longKey      = "ERR max key size exceeded. Limit: 32768 bytes, Actual: 32769 bytes"
	)
	key, value := strings.Repeat("k", database.MaxKey+1), strings.Repeat("x", 1001)
	s := filled(t, WithMaxRequest(40_000), WithMaxRecord(1000), WithReadOnlyToken("ro"))
	for _, tt := range []struct {
		call   call
		status int
		text   string
	}{
		{call{body: `["PING"]`, token: "-"}, 401, textUnauthorized},
		{call{body: `["PING"]`, token: "nope"}, 401, textUnauthorized},
		{call{path: "/multi-exec", body: `[["PING"]]`, token: "-"}, 401, textUnauthorized},
		{call{path: "/pipeline", body: `[["PING"]]`, token: "nope"}, 401, textUnauthorized},
		{call{method: "GET", path: "/ping?_token=nope", token: "-"}, 401, textUnauthorized},
		{call{method: "DELETE", path: "/del/s"}, 405, "ERR method not allowed: use HEAD, GET, POST or PUT"},

		{call{body: `["SET","a","b"]`, token: "ro"}, 400, fmt.Sprintf(noPermission, "set")},
		{call{body: `["BITFIELD","s","GET","u1","0"]`, token: "ro"}, 400, fmt.Sprintf(noPermission, "bitfield")},
		{call{body: `["EVAL","return 1","0"]`, token: "ro"}, 400, fmt.Sprintf(noPermission, "eval")},

		{call{body: `["GET"]`}, 400, "ERR wrong number of arguments for 'get' command"},
		{call{body: `["BITFIELD"]`}, 400, "ERR wrong number of arguments for 'bitfield' command"},
		{call{body: `["NOPE","x"]`}, 400, fmt.Sprintf(notThere, "NOPE")},
		{call{method: "GET", path: "/nope"}, 400, fmt.Sprintf(notThere, "nope")},
		{call{body: `["MULTI"]`}, 400, fmt.Sprintf(notOverREST, "MULTI")},
		{call{body: `["blpop","l","0"]`}, 400, fmt.Sprintf(notOverREST, "BLPOP")},
		{call{body: `["XREAD","BLOCK","0","STREAMS","x","$"]`}, 400, fmt.Sprintf(notOverREST, "XREAD")},

		{call{body: `["GET",null]`}, 400, "ERR null args are not supported"},
		{call{path: "/pipeline", body: `[["ECHO",null]]`}, 400, "ERR null args are not supported"},
		{call{body: `["GET",["a"]]`}, 400, "ERR unsupported arg type: array"},
		{call{body: `["GET",{"a":"],"}]`}, 400, "ERR unsupported arg type: object"},
		{call{}, 400, "EOF"},
		{call{path: "/multi-exec"}, 400, "EOF"},
		{call{body: `{"a":1}`}, 400, "expected JSON array"},
		{call{path: "/pipeline", body: `["GET","a"]`}, 400, "expected JSON array"},
		{call{body: `["GET",`}, 400, noJSON},
		{call{body: `["PING"]["PING"]`}, 400, noJSON},
		{call{body: `[]`}, 400, "ERR empty command"},
		{call{body: `[""]`}, 400, "ERR empty command"},
		{call{method: "GET", path: "//x"}, 400, "ERR empty command"},
		{call{path: "/pipeline", body: `[["PING"],[]]`}, 400, "ERR empty command"},
		{call{path: "/pipeline", body: `[]`}, 400, "ERR empty pipeline request"},

		{
			call{body: `["SET","a","` + strings.Repeat("x", 40_000) + `"]`},
			413,
			"ERR max request size exceeded. Limit: 40000 bytes, Actual: 40014 bytes. " +
				"See https://upstash.com/docs/redis/troubleshooting/max_request_size_exceeded for details",
		},
		{call{body: `["GET","` + key + `"]`}, 400, longKey},
		{call{body: `["RENAME","s","` + key + `"]`}, 400, longKey},
		{call{path: "/set/a", body: value}, 400, longRecord},
		{call{path: "/setex/a/9", body: value}, 400, longRecord},
		{call{path: "/append/s", body: value[:998]}, 400, longRecord},
		{call{path: "/setrange/s/1000", body: "x"}, 400, longRecord},
		{call{body: `["MSET","a","","b","` + value + `"]`}, 400, longRecord},
		{call{path: "/setbit/s/8000/1"}, 400, longRecord},
		{call{path: "/bitfield/s/set/u2/7999/1"}, 400, longRecord},
		{call{path: "/bitfield/none/set/u1/4294967295/1"}, 400, longRecord}, // no memory is taken
	} {
		want := `{"error":` + quoted(tt.text) + "}"
		if got := do(t, s, tt.call); got.status != tt.status || got.body != want {
			t.Errorf("%v: got  %d %s\nwant %d %s", tt.call, got.status, got.body, tt.status, want)
		}
		if n := s.Stats().Commands; n > 0 {
			t.Fatalf("%v: Stats.Commands is %d, want 0", tt.call, n)
		}
	}
}

// TestReadersScripts runs scripts that look further than a read-only token may,
// or change something.
func TestReadersScripts(t *testing.T) {
	for name, opt := range map[string]Option{"memory": inMemory(t), "redis": withTestRedis(t)} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(t, opt, WithReadOnlyToken("some"))
			exec(t, s, "SET", "hidden", "v")
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

// TestReadOnlyToken: it reads, but does not see the whole database, as the service
// documents.
func TestReadOnlyToken(t *testing.T) {
	s := filled(t)
	for body, want := range map[string]string{
		`["GET","s"]`:                                    `{"result":"foo"}`,
		`["BITFIELD_RO","s","GET","u8","0"]`:             `{"result":[102]}`,
		`["BITCOUNT","s"]`:                               `{"result":16}`,
		`["EVAL_RO","return redis.call('GET','s')","0"]`: `{"result":"foo"}`,
		`["SSCAN","none","0"]`:                           `{"result":["0",[]]}`,
		`["KEYS","*"]`:                                   `{"error":` + quoted(string(database.NoPermission("keys"))) + "}",
		`["SCAN","0"]`:                                   `{"error":` + quoted(string(database.NoPermission("scan"))) + "}",
	} {
		wantBody(t, s, call{body: body, token: s.ReadOnlyToken}, want)
		if got := do(t, s, call{body: body}); got.status != http.StatusOK {
			t.Errorf("%s with all rights: got %d %s, want status 200", body, got.status, got.body)
		}
	}
}
