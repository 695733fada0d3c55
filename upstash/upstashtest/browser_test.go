package upstashtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// TestBrowsers checks what a browser needs to call the server from a page of
// another origin: an answer to its OPTIONS without a token, and a header that
// lets the page read any answer, even a refusal.
func TestBrowsers(t *testing.T) {
	s := NewServer(t)
	got := do(t, s, call{method: http.MethodOptions, path: "/pipeline", token: "-", header: header(
		"Origin", "https://example.com", "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization,content-type",
	)})
	if got.status != http.StatusNoContent || got.body != "" ||
		got.header.Get("Access-Control-Allow-Origin") != "*" ||
		got.header.Get("Access-Control-Allow-Headers") != "authorization,content-type" ||
		!strings.Contains(got.header.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("OPTIONS: got %d %q %v, want no body, and the headers and methods of a client allowed",
			got.status, got.body, got.header)
	}
	for _, c := range []call{{body: `["PING"]`}, {body: `["NOPE"]`}, {body: `["PING"]`, token: "nope"}} {
		got := do(t, s, c)
		if got.header.Get("Access-Control-Allow-Origin") != "*" ||
			!strings.Contains(got.header.Get("Access-Control-Expose-Headers"), wire.HeaderSyncToken) {
			t.Errorf("%s: header %v, want any origin and the sync token exposed", c.body, got.header)
		}
	}
}

// TestMalformedRequest sends requests refused by net/http itself. The answers
// are JSON like all others.
func TestMalformedRequest(t *testing.T) {
	s := NewServer(t)
	const most = 1<<20 + 4096 // bytes of a header that net/http reads
	long := "GET /get/k HTTP/1.1\r\nHost: x\r\nLong: "
	for head, want := range map[string]string{
		"GET /get/%zz HTTP/1.1\r\nHost: x\r\n\r\n":                          "400 Bad Request",
		"GET /get/k HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n":                 "400 Bad Request",
		"GET /get/k HTTP/1.1\r\nHost: x\r\nBad name: y\r\n\r\n":             "400 Bad Request",
		"GET /get/k HTTP/1.1\r\nHost: x\r\nName: \x01\r\n\r\n":              "400 Bad Request",
		"GET /get/k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n": "501 Not Implemented",
		"GET /get/k HTTP/3.0\r\nHost: x\r\n\r\n":                            "505 HTTP Version Not Supported",
		long + strings.Repeat("x", most-len(long)):                          "431 Request Header Fields Too Large",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, head); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		_ = conn.Close()
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 "+want) ||
			!strings.Contains(string(got), "\r\nContent-Type: application/json\r\n") ||
			!strings.Contains(string(got), "\r\n\r\n"+`{"error":"ERR the request is no valid HTTP`) {
			t.Errorf("%.80q: got %q, %v, want %s and a JSON error", head, got, err, want)
		}
	}
}

// TestValueLikeARefusal stores what net/http sends to a malformed request.
func TestValueLikeARefusal(t *testing.T) {
	const refusal = "HTTP/1.1 400 Bad Request" + refusedByHTTP + "400 Bad Request"
	const beforeIt = 4096 // net/http writes so many bytes of an answer at once
	s := NewServer(t)
	_, conn := dial(t, s)
	r := bufio.NewReader(conn)
	for n := range beforeIt {
		value := strings.Repeat("x", n) + refusal
		if _, err := s.Exec("SET", "k", value); err != nil {
			t.Fatal(err)
		}
		_, err := fmt.Fprintf(conn, "POST /get/k HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Upstash-Response-Format: resp2\r\nContent-Length: 0\r\n\r\n", s.Token)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%d bytes before it: %v", n, err)
		}
		got, err := io.ReadAll(resp.Body)
		if want := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value); string(got) != want || err != nil {
			t.Fatalf("%d bytes before it: got %d %.80q, %v, want the value", n, resp.StatusCode, got, err)
		}
	}
}

// TestHeaderLimit sends the beginning of a header, and nothing more.
func TestHeaderLimit(t *testing.T) {
	s := NewServer(t, func(c *config) { c.headerLimit = 20 * time.Millisecond })
	_, conn := dial(t, s)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nLong: "); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
		t.Errorf("half a header: got %q, %v, want the end of the connection alone", got, err)
	}
}

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

// TestRESTToken asks for a token with the name and the password of a user.
func TestRESTToken(t *testing.T) {
	for name, opt := range map[string]Option{"memory": inMemory(t), "redis": withTestRedis(t)} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(t, opt, WithToken("all"), WithReadOnlyToken("some"))
			for _, tt := range []struct {
				call   call
				status int
				want   string
			}{
				{call{body: `["ACL","RESTTOKEN","default","all"]`}, 200, `{"result":"all"}`},
				{call{body: `["acl","resttoken","default","some"]`}, 200, `{"result":"some"}`},
				{
					call{body: `["ACL","RESTTOKEN","default","none"]`},
					400,
					`{"error":"ERR Wrong password or user \"default\" does not exist"}`,
				},
				{
					call{body: `["ACL","RESTTOKEN","eve","all"]`},
					400,
					`{"error":"ERR Wrong password or user \"eve\" does not exist"}`,
				},
				{
					call{body: `["ACL","RESTTOKEN","default"]`},
					400,
					`{"error":"ERR wrong number of arguments for 'acl|resttoken' command"}`,
				},
				{
					call{body: `["ACL","RESTTOKEN","default","all"]`, token: "some"},
					400,
					`{"error":"NOPERM this user has no permissions to run the 'acl' command or its subcommand"}`,
				},
				{
					call{path: "/multi-exec", body: `[["ECHO","x"],["ACL","RESTTOKEN","default","all"]]`},
					200,
					`[{"result":"x"},{"result":"all"}]`,
				},
			} {
				if got := do(t, s, tt.call); got.status != tt.status || got.body != tt.want {
					t.Errorf("%s: got %d %s, want %d %s", tt.call.body, got.status, got.body, tt.status, tt.want)
				}
			}
			if got := do(t, s, call{body: `["ACL","LIST"]`}); got.status != http.StatusBadRequest {
				t.Errorf("ACL LIST: got %d %s, want status 400", got.status, got.body)
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

// TestNothingWaits tries the blocking commands, in every spelling.
func TestNothingWaits(t *testing.T) {
	for name, opt := range map[string]Option{"memory": inMemory(t), "redis": withTestRedis(t)} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(t, opt)
			exec(t, s, "XGROUP", "CREATE", "x", "streams", "0", "MKSTREAM")
			for _, line := range []string{
				"XREAD BLOCK 0 STREAMS x $", "xread count 1 block 0 streams x $",
				"XREADGROUP GROUP streams c BLOCK 0 STREAMS x >",
				"XREADGROUP GROUP streams streams COUNT 1 NOACK block 0 STREAMS x >",
				"XREADGROUP GROUP streams count BLOCK 0 STREAMS x >",
				"XREADGROUP COUNT 1 BLOCK 0 GROUP streams c STREAMS x >",
				"WAIT 1 0", "wait 1 100000", "BLPOP l 0", "bzpopmin z 0", "BLMOVE a b LEFT RIGHT 0",
			} {
				words := `"` + strings.Join(strings.Fields(line), `","`) + `"`
				got := do(t, s, call{body: "[" + words + "]"})
				if got.status != http.StatusBadRequest || !strings.Contains(got.body, "not a") {
					t.Errorf("%s: got %d %s, want a refusal", line, got.status, got.body)
				}
				// In a script nothing waits. The answer or an error comes at
				// once.
				script := "return redis.pcall(" + words + ")"
				if got := do(t, s, call{body: `["EVAL",` + quoted(script) + `,"0"]`}); got.status >= 500 {
					t.Errorf("%s: got %d %s, want an answer or an error of the script",
						script, got.status, got.body)
				}
			}
			got := do(t, s, call{body: `["XREADGROUP","GROUP","streams","block","STREAMS","x",">"]`})
			if got.status != http.StatusOK {
				t.Errorf("XREADGROUP of a consumer called block: got %d %s, want status 200", got.status, got.body)
			}
		})
	}
}
