package upstashtest

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

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
	for _, head := range []string{
		"GET /get/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /get/k HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
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
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400 Bad Request\r\n") ||
			!strings.Contains(string(got), "\r\nContent-Type: application/json\r\n") ||
			!strings.Contains(string(got), "\r\n\r\n"+`{"error":"ERR the request is no valid HTTP`) {
			t.Errorf("%q: got %q, %v, want a JSON error", head, got, err)
		}
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
