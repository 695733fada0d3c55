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

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// sent is one request as it was on the wire, and the sync token it got back.
type sent struct {
	method, path, body string
	header             http.Header
	newToken           string
}

// tap puts a proxy before the server that keeps what passes through it.
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

// TestWire holds what the client sends, which our own must not do worse: it
// sends numbers as JSON numbers, names commands in lower case, and gives the
// sync token of each answer back with its next request.
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
			// Two at once have the same token: only the others are in a row.
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

// TestReadYourWrites has a replica that applies no write: the client sees its
// own by the sync token alone.
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
			out := play(t, session{URL: server.URL, Token: server.Token, Options: set, Steps: scripts(steps)})
			for i, s := range steps {
				check(t, s, out[i])
			}
		})
	}
}

// TestBitfieldIsLostInAutoPipelining holds why our own client batches nothing
// by itself, and why these tests call bitfield on a pipeline: on an
// auto-pipelining client bitfield() gives a promise without get and set, and
// counts as a command without being one, so that another write of the same
// turn gets the answer of the one after it.
func TestBitfieldIsLostInAutoPipelining(t *testing.T) {
	server := upstashtest.NewServer(t)
	steps := []step{
		{`((lost) => (lost.catch(() => {}), typeof lost.get))(redis.bitfield("b"))`, `"undefined"`, ``},
		{`redis.get("turn")`, `null`, ``}, // waits for that to be over
		{`Promise.allSettled([redis.bitfield("b"), redis.set("a", "x"), redis.incr("n")])
			.then(([, set]) => set.value)`, `1`, ``}, // which is INCR's
	}
	out := play(t, session{
		URL: server.URL, Token: server.Token, Steps: scripts(steps),
		Options: settings{AutoPipelining: true, Encoding: "base64"},
	})
	for i, s := range steps {
		check(t, s, out[i])
	}
}
