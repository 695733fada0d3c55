package peertest

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// sent is a request as it was on the wire, and the sync token of its answer.
type sent struct {
	method, path, body string
	header             http.Header
	newToken           string
}

// tap starts a proxy in front of the server, which records the requests.
func tap(t *testing.T, server *upstashtest.Server) (address string, requests func() []sent) {
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []sent
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		s := sent{r.Method, r.URL.Path, string(body), r.Header.Clone(), ""}
		proxy.ServeHTTP(w, r)
		s.newToken = w.Header().Get("Upstash-Sync-Token")
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
	}))
	t.Cleanup(front.Close)
	return front.URL, func() []sent {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// TestWire lists what a server must understand to serve this client. Numbers
// come as JSON numbers, and commands in lower case. The header of the sync
// token is there from the first request on. An auto-pipelining client sends
// every command in a pipeline.
func TestWire(t *testing.T) {
	steps := []string{
		`redis.set("k", "ж", {ex: 100})`,
		`redis.setbit("b", 999999, 1)`,
		`redis.bitcount("b", 0, 8)`,
		`Promise.all([redis.incr("n"), redis.incr("n")])`,
		`redis.multi().get("k").ttl("k").exec()`,
	}
	alone := []string{
		`/ ["set","k","ж","ex",100]`,
		`/ ["setbit","b",999999,1]`,
		`/ ["bitcount","b",0,8]`,
		`/ ["incr","n"]`,
		`/ ["incr","n"]`,
		`/multi-exec [["get","k"],["ttl","k"]]`,
	}
	piped := []string{
		`/pipeline [["set","k","ж","ex",100]]`,
		`/pipeline [["setbit","b",999999,1]]`,
		`/pipeline [["bitcount","b",0,8]]`,
		`/pipeline [["incr","n"],["incr","n"]]`,
		`/multi-exec [["get","k"],["ttl","k"]]`,
	}
	install(t)
	for _, set := range allSettings {
		t.Run(set.String(), func(t *testing.T) {
			server := upstashtest.NewServer(t)
			address, requests := tap(t, server)
			for i, o := range play(t, session{URL: address, Token: server.Token, Options: set, Steps: steps}) {
				if o.Error != nil {
					t.Errorf("%s: threw %q", steps[i], *o.Error)
				}
			}
			want := alone
			if set.AutoPipelining {
				want = piped
			}
			got := requests()
			for i, r := range got {
				if line := r.path + " " + r.body; i >= len(want) || line != want[i] {
					t.Errorf("request %d: %s", i, line)
				}
				checkHeaders(t, r, server.Token, set)
			}
			if len(got) != len(want) {
				t.Fatalf("%d requests, want %d", len(got), len(want))
			}
			// Simultaneous requests have the same token. The first four were
			// sent one after the other.
			for i := 1; i < 4; i++ {
				if token := got[i].header.Get("Upstash-Sync-Token"); token == "" || token != got[i-1].newToken {
					t.Errorf("request %d has the sync token %q, want %q", i, token, got[i-1].newToken)
				}
			}
			if v := got[0].header.Values("Upstash-Sync-Token"); len(v) != 1 || v[0] != "" {
				t.Errorf("the first request has the sync token %q, want an empty one", v)
			}
		})
	}
}

func checkHeaders(t *testing.T, r sent, token string, set settings) {
	t.Helper()
	encoding, _ := set.Encoding.(string) // none for false
	for name, want := range map[string]string{
		"Authorization":           "Bearer " + token,
		"Content-Type":            "application/json",
		"Upstash-Encoding":        encoding,
		"Upstash-Response-Format": "",
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s %s: %s is %q, want %q", r.method, r.path, name, got, want)
		}
	}
	if r.method != http.MethodPost {
		t.Errorf("%s %s, want POST", r.method, r.path)
	}
	for name := range r.header {
		if strings.HasPrefix(name, "Upstash-Telemetry") {
			t.Errorf("telemetry was switched off, and %s was sent", name)
		}
	}
}

// headerFields splits a header word into its fields in JavaScript.
const headerFields = `redis.pipeline().bitfield("headed").get("u53", 0).exec().exec().then(([[word]]) => {
	const field = (from, bits) => Number(BigInt.asUintN(bits, BigInt(word) >> BigInt(53 - from - bits)));
	return {
		set: field(0, 1), kind: field(1, 2), version: field(3, 2), scheme: field(5, 3),
		hashes: field(8, 6), seedTag: field(14, 7), bits: field(21, 32),
	};
})`

// TestHeaderReadsExactly reads the header of a filter from JavaScript, whose
// numbers represent 53 bits exactly.
func TestHeaderReadsExactly(t *testing.T) {
	install(t)
	server := upstashtest.NewServer(t)
	f := bloomtest.HandleAt(t, server.Client(), "headed", bloom.Config{Bits: 10_746_333, Hashes: 4})
	bloomtest.Create(t, f, true)
	const want = `{"set":1,"kind":0,"version":1,"scheme":0,"hashes":4,"seedTag":0,"bits":10746333}`
	for _, set := range allSettings {
		t.Run(set.String(), func(t *testing.T) {
			checkAll(t, server, set, []step{{headerFields, want, ""}})
		})
	}
}

// TestReadYourWrites has a replica that applies no write. The client sees its
// own writes only because of the sync token.
func TestReadYourWrites(t *testing.T) {
	install(t)
	steps := []step{
		{`redis.set("k", "new")`, `"OK"`, ``},
		{`redis.get("k")`, `"new"`, ``},
		{`redis.pipeline().strlen("k").exec()`, `[3]`, ``},
		{`connect(token).get("k")`, `null`, ``}, // another client, with no token yet
		{`connect(token, {readYourWrites: false}).get("k")`, `null`, ``},
	}
	for _, set := range allSettings {
		t.Run(set.String(), func(t *testing.T) {
			server := upstashtest.NewServer(t)
			server.SetReplicaLag(math.MaxInt)
			checkAll(t, server, set, steps)
		})
	}
}
