package upstash

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/errtext"
)

func TestNewRefusesURL(t *testing.T) {
	for _, tt := range []struct{ name, url, want string }{
		{"empty", "", "UPSTASH_REDIS_REST_URL"},
		{"redis", "redis://default:hunter2@x.upstash.io:6379", "redis:// is the address for Redis clients"},
		{"rediss", "rediss://default:hunter2@x.upstash.io:6379", "rediss:// is the address for Redis clients"},
		{"no scheme", "hunter2.upstash.io", "no https:// before the host: use the REST URL of the database, e.g. https://"},
		{"no scheme but port", "hunter2.upstash.io:443", "no https:// before the host"},
		{"another scheme", "ftp://hunter2.upstash.io", "https://"},
		{"no host", "https://", "no host"},
		{"no host but path", "https:///hunter2", "no host"},
		{"port alone", "https://:443", "no host"},
		{"user info", "https://default:hunter2@x.upstash.io", "pass the token by itself"},
		{"user alone", "https://hunter2@x.upstash.io", "pass the token by itself"},
		{"http elsewhere", "http://hunter2.upstash.io", "clear text"},
		{"http to a private address", "http://10.0.0.1", "clear text"},
		{"http to what looks like loopback", "http://127.0.0.1.example.test", "clear text"},
		{"http to a name below localhost", "http://hunter2.localhost", "clear text"},
		{"http to localhost with a dot", "http://localhost.", "clear text"},
		{"http to a name of digits", "http://127.000.000.001", "clear text"},
		{"query", "https://x.upstash.io?_token=hunter2", "query"},
		{"fragment", "https://x.upstash.io#hunter2", "query or fragment"},
		{"quotes", `"https://hunter2.upstash.io"`, "shell's quotes"},
		{"line break", "https://hunter2.upstash.io\n", "line break"},
		{"space", "https://hunter2.upstash.io ", "white space"},
		{"bad port", "https://hunter2.upstash.io:x", "cannot be parsed"},
		{"no port", "https://hunter2.upstash.io:", "cannot be parsed"},
		{"port 0", "https://hunter2.upstash.io:0", "1 to 65535"},
		{"port too large", "https://hunter2.upstash.io:99999", "1 to 65535"},
		{"half a bracket", "https://[::1", "cannot be parsed"},
		{"text after a bracket", "https://[::1]hunter2", "cannot be parsed"},
		{"a name in brackets", "https://[fade.cafe]/hunter2", "cannot be parsed"},
		{"two colons", "https://hunter2:1:2", "cannot be parsed"},
		{"not a host", "https://hunter2%2f.upstash.io", "cannot be parsed"},
		{"not ASCII", "https://hunter2é.upstash.io", "cannot be parsed"},
		{"half an escape", "https://x.upstash.io/%2", "cannot be parsed"},
		{"loopback of another kind", "http://127.0.0.256", "clear text"},
		{"the second address", "http://[0:0:0:0:0:0:0:2]", "clear text"},
		{"an address that ends in 0", "http://[::10]", "clear text"},
		{"an address that begins with 1", "http://[1::]", "clear text"},
		{"another private address", "http://[::ffff:10.0.0.1]", "clear text"},
		{"user before loopback", "http://127.0.0.1@hunter2.upstash.io", "pass the token by itself"},
		{"dots", "https://hunter2.upstash.io/a/../b", "without them"},
		{"a dot", "https://hunter2.upstash.io/.", "without them"},
		{"escaped dots", "https://hunter2.upstash.io/a/.%2E/b", "without them"},
		{"pipeline", "https://hunter2.upstash.io/pipeline", "leave that out"},
		{"transaction", "https://hunter2.upstash.io/db/multi-exec/", "leave that out"},
		{"a page of the console", "https://console.upstash.com/redis/hunter2", "a page of the console"},
		{"Redis' own port", "https://hunter2.upstash.io:6379", "port 6379"},
		{"a line of a file", "UPSTASH_REDIS_REST_URL=https://hunter2.upstash.io", "name of a variable"},
		{"a whole line", "UPSTASH_REDIS_REST_URL=\"https://hunter2.upstash.io\"\n", "name of a variable"},
		{"a command's path", "https://eu1.upstash.io/set/hunter2", "leave out what follows the host"},
		{"a path after a whole name", "https://eu1.upstash.io./set/hunter2", "leave out what follows the host"},
		{"any path at the service", "https://EU1.upstash.io:443/hunter2/", "leave out what follows the host"},
		{"backslash", "http://127.0.0.1\\@hunter2.upstash.io", "cannot be parsed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.url, testToken)
			checkRefusal(t, err, tt.want, "hunter2")
		})
	}
}

func TestNewRefusesToken(t *testing.T) {
	for _, tt := range []struct{ name, token, want string }{
		{"empty", "", "UPSTASH_REDIS_REST_TOKEN"},
		{"space", "hunter2 hunter2", "white space"},
		{"line break", "hunter2\n", "line break"},
		{"carriage return", "hunter2\r\nX: y", "line break"},
		{"tab", "\thunter2", "white space"},
		{"a header field", "Bearer hunter2", "begins with Bearer"},
		{"a header field in lower case", "bearer  hunter2", "begins with Bearer"},
		{"the URL", "https://hunter2.upstash.io", "it is a URL"},
		{"the URL of Redis", "rediss://default:hunter2@x.upstash.io", "it is a URL"},
		{"a line of a file", "KV_REST_API_TOKEN=hunter2", "name of a variable"},
		{"a line with quotes", `UPSTASH_REDIS_REST_TOKEN="hunter2="`, "name of a variable"},
		{"double quotes", `"hunter2"`, "quote"},
		{"single quotes", `'hunter2'`, "quote"},
		{"not ASCII", "hunter2ß", "printable ASCII"},
		{"NUL", "hunter2\x00", "printable ASCII"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(testURL, tt.token)
			checkRefusal(t, err, tt.want, "hunter2")
		})
	}
}

// TestNewAcceptsTokens: base64 ends in =, and a proxy's token may be any text.
func TestNewAcceptsTokens(t *testing.T) {
	for _, token := range []string{"AXASQ_b-4==", "ABC_DEF=", "LEVEL_1=x", "A=B", "token=1"} {
		if _, err := New(testURL, token); err != nil {
			t.Errorf("%s: %v", token, err)
		}
	}
}

func TestNewRefusesOptions(t *testing.T) {
	for want, opt := range map[string]Option{
		"WithTimeout":     WithTimeout(-1),
		"WithRetry":       WithRetry(-1),
		"WithBackoff":     WithBackoff(time.Second, time.Millisecond),
		"WithMaxRequest":  WithMaxRequest(1023),
		"WithMaxResponse": WithMaxResponse(0),
		"WithMaxConns":    WithMaxConns(0),
	} {
		_, err := New(testURL, testToken, opt)
		checkRefusal(t, err, want, testToken)
	}
	if strconv.IntSize == 64 { // else no int is too large
		_, err := New(testURL, testToken, WithMaxResponse(1<<(strconv.IntSize/2)))
		checkRefusal(t, err, "WithMaxResponse", testToken)
	}
}

func checkRefusal(t *testing.T, err error, want, secret string) {
	t.Helper()
	switch {
	case !errors.Is(err, ErrArgument):
		t.Errorf("got %v, want ErrArgument", err)
	case errtext.Wrong(err) != "" || !strings.Contains(err.Error(), want):
		t.Errorf("got %q, want %q in it", err, want)
	case strings.Contains(err.Error(), secret):
		t.Errorf("the error quotes its argument: %q", err)
	case !SafeToRetry(err):
		t.Errorf("%q counts as sent", err)
	}
}

func TestNewAccepts(t *testing.T) {
	for url, want := range map[string]endpoint{
		"https://x.upstash.io":          {"https://x.upstash.io", true, "x.upstash.io", "443", ""},
		"HTTPS://x.upstash.io/":         {"https://x.upstash.io", true, "x.upstash.io", "443", ""},
		"https://x.upstash.io:8443/":    {"https://x.upstash.io:8443", true, "x.upstash.io", "8443", ""},
		"https://proxy.test/db%201//":   {"https://proxy.test/db%201", true, "proxy.test", "443", "/db%201"},
		"https://proxy.test/a%2Fb//c":   {"https://proxy.test/a%2Fb//c", true, "proxy.test", "443", "/a%2Fb//c"},
		"https://x.test/.a/..b/...":     {"https://x.test/.a/..b/...", true, "x.test", "443", "/.a/..b/..."},
		"https://upstash.io.test/get":   {"https://upstash.io.test/get", true, "upstash.io.test", "443", "/get"},
		"https://x.test/my-pipeline":    {"https://x.test/my-pipeline", true, "x.test", "443", "/my-pipeline"},
		"http://localhost:8079":         {"http://localhost:8079", false, "localhost", "8079", ""},
		"http://127.0.0.1:1":            {"http://127.0.0.1:1", false, "127.0.0.1", "1", ""},
		"http://127.9.9.9":              {"http://127.9.9.9", false, "127.9.9.9", "80", ""},
		"http://[::1]:8079":             {"http://[::1]:8079", false, "::1", "8079", ""},
		"http://[0:0:0:0:0:0:0:1]":      {"http://[0:0:0:0:0:0:0:1]", false, "0:0:0:0:0:0:0:1", "80", ""},
		"http://[0000::0001]:1":         {"http://[0000::0001]:1", false, "0000::0001", "1", ""},
		"http://[0::ffff:127.0.0.1]":    {"http://[0::ffff:127.0.0.1]", false, "0::ffff:127.0.0.1", "80", ""},
		"http://[::ffff:127.0.0.1]:879": {"http://[::ffff:127.0.0.1]:879", false, "::ffff:127.0.0.1", "879", ""},
	} {
		c, err := New(url, testToken)
		if err != nil {
			t.Errorf("New(%q): %v", url, err)
			continue
		}
		if c.endpoint != want {
			t.Errorf("New(%q): %+v, want %+v", url, c.endpoint, want)
		}
		_ = c.Close()
	}
	if _, err := New("http://10.0.0.1", testToken, WithInsecureHTTP()); err != nil {
		t.Errorf("WithInsecureHTTP: %v", err)
	}
}

func TestFromEnv(t *testing.T) {
	const other = "https://kv.example.test"
	for _, tt := range []struct {
		name                        string
		url, token, kvURL, kvToken  string
		wantBase, wantToken, errHas string
	}{
		{"first pair", testURL, "a", other, "b", testURL, "a", ""},
		{"second pair", "", "", other, "b", other, "b", ""},
		{
			"nothing", "", "", "", "", "", "",
			"UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or KV_REST_API_URL and KV_REST_API_TOKEN",
		},
		{
			"URL alone", testURL, "", other, "b", "", "",
			": UPSTASH_REDIS_REST_TOKEN is empty, and UPSTASH_REDIS_REST_URL is set",
		},
		{
			"token alone", "", "a", other, "b", "", "",
			": UPSTASH_REDIS_REST_URL is empty, and UPSTASH_REDIS_REST_TOKEN is set",
		},
		{
			"second URL alone", "", "", other, "", "", "",
			": KV_REST_API_TOKEN is empty, and KV_REST_API_URL is set",
		},
		{
			"second token alone", "", "", "", "b", "", "",
			": KV_REST_API_URL is empty, and KV_REST_API_TOKEN is set",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("UPSTASH_REDIS_REST_URL", tt.url)
			t.Setenv("UPSTASH_REDIS_REST_TOKEN", tt.token)
			t.Setenv("KV_REST_API_URL", tt.kvURL)
			t.Setenv("KV_REST_API_TOKEN", tt.kvToken)
			c, err := FromEnv()
			if tt.errHas != "" {
				checkRefusal(t, err, tt.errHas, "example.test")
				return
			}
			if err != nil || c.endpoint.base != tt.wantBase || (*c.auth).v.token != tt.wantToken {
				t.Errorf("got %v, %v", c, err)
			}
		})
	}
}

// The transports use net/url: it must read the same in an accepted URL. No URL
// may lead to another host than the checked one.
func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{
		"https://x.upstash.io", "http://127.0.0.1:8079/a%20b/", "https://[::1]:443", "https://a@b",
		"https://a:1@b/", "https://a/?q", "https://a#f", "http://localhost@evil.test",
		"https://a:99999", "HTTPS://A_b.-c", "https:///x",
		"https://[::ffff:127.0.0.1]", "http://127.1", "https://a/..//b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e, err := parseEndpoint(raw, true)
		if err != nil {
			return
		}
		for _, s := range []string{raw, e.base + "/pipeline"} {
			u, err := url.Parse(s)
			if err != nil && strings.Contains(s, "[") {
				return // not an address: a dial will say so
			}
			if err != nil {
				t.Fatalf("net/url refuses %q: %v", s, err)
			}
			if strings.ToLower(u.Hostname()) != e.host || u.Port() != "" && u.Port() != e.port || u.User != nil ||
				u.RawQuery != "" || u.Fragment != "" || (u.Scheme == "https") != e.tls {
				t.Fatalf("%q: %+v, net/url has %+v", s, e, u)
			}
		}
	})
}
