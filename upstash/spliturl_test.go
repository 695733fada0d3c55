package upstash

import (
	"net/url"
	"strings"
	"testing"
)

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
