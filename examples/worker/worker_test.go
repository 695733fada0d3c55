//go:build !js

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestREADME sends the events of README, and gets the answers that stand there.
func TestREADME(t *testing.T) {
	if build := pages.Command(t, "README.md", "./build.sh"); len(build.Args) != 1 {
		t.Errorf("%q, want the name alone, which builds into build", build.Args)
	}
	db := upstashtest.NewServer(t)
	w := serve(t, db.URL, db.Token)
	url := strings.TrimSuffix(w.URL, "/")
	deployed := "curl -X POST -H 'Idempotency-Key: evt_1' https://events.example.workers.dev/"
	var said strings.Builder
	for range 2 {
		r := pages.Request(t, "README.md", "curl -X POST -H 'Idempotency-Key: evt_1' https://", url)
		fmt.Fprintf(&said, "$ %s\n%s\n", deployed, answer(t, r))
	}
	if told := pages.Text(t, "README.md", "$ curl"); said.String() != told {
		t.Errorf("it went\n%s\nwant\n%s", &said, told)
	}
	here := pages.Request(t, "README.md", "curl -X POST -H 'Idempotency-Key: evt_1' http://", url)
	if got := answer(t, here); got != `{"id":"evt_1","new":false}` {
		t.Errorf("a third time it says %s, want seen", got)
	}
}

// answer returns the body of the answer to a request.
func answer(t *testing.T, r *http.Request) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

// TestOnceEach sends every id twice, at the same time or one after the other,
// in 200 requests, 8 at a time.
func TestOnceEach(t *testing.T) {
	db := upstashtest.NewServer(t)
	w := serve(t, db.URL, db.Token)

	first := timed(func() { w.post(t, "Idempotency-Key", "first", "") })
	var seen [100]atomic.Int32
	var news [100]atomic.Int32
	queue := make(chan int)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for i := range queue {
				id := fmt.Sprint("event-", i)
				r := w.post(t, "Idempotency-Key", id, "")
				if r.Status != 200 || r.ID != id || r.New == nil {
					t.Errorf("%s: %+v, want status 200, the id and a verdict", id, r)
					continue
				}
				seen[i].Add(1)
				if *r.New {
					news[i].Add(1)
				}
			}
		})
	}
	for i := range 100 { // at once
		queue <- i / 2
	}
	for range 2 { // one after the other
		for i := range 50 {
			queue <- 50 + i
		}
	}
	close(queue)
	senders.Wait()
	for i := range seen {
		if s, n := seen[i].Load(), news[i].Load(); s != 2 || n != 1 {
			t.Errorf("event-%d: answered %d times, %d times as new, want 2 and 1", i, s, n)
		}
	}
	if n := db.Stats().Commands; n != 201 {
		t.Errorf("Stats.Commands after 201 events: %d, want 201", n)
	}
	logWarm(t, w, first)
}

// logWarm logs how long requests take. No bound would hold on every machine.
func logWarm(t *testing.T, w *worker, first time.Duration) {
	warm := make([]time.Duration, 50)
	for i := range warm {
		warm[i] = timed(func() { w.post(t, "Idempotency-Key", "warm", "") })
	}
	slices.Sort(warm)
	t.Logf("first request %v; warm, one at a time: median %v, slowest of %d %v",
		first.Round(time.Millisecond), warm[len(warm)/2].Round(10*time.Microsecond),
		len(warm), warm[len(warm)-1].Round(10*time.Microsecond))
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func TestWhereTheIDIs(t *testing.T) {
	db := upstashtest.NewServer(t)
	w := serve(t, db.URL, db.Token)
	large := `{"id":"` + strings.Repeat("x", 1<<16) + `"}`
	tests := []struct {
		name, header, id, body string
		status                 int
		isNew                  bool
		want                   string
	}{
		{"Idempotency-Key", "Idempotency-Key", "a", "", 200, true, "a"},
		{"X-Event-Id", "X-Event-Id", "b", "", 200, true, "b"},
		{"body", "", "", `{"id":"ç"}`, 200, true, "ç"},
		{"header over body", "X-Event-Id", "b", `{"id":"c"}`, 200, false, "b"},
		{"seen in a header", "", "", `{"id":"a","new":true}`, 200, false, "a"},
		{"large body beside a header", "X-Event-Id", "b", large, 200, false, "b"},
		{"large body", "", "", large, 413, false, ""},
		{"nowhere", "", "", "", 400, false, ""},
		{"body without id", "", "", `{"name":"a"}`, 400, false, ""},
		{"body not JSON", "", "", `a`, 400, false, ""},
		{"body not an object", "", "", `null`, 400, false, ""},
		{"id not a string", "", "", `{"id":7}`, 400, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := w.post(t, tt.header, tt.id, tt.body)
			if r.Status != tt.status || r.isNew() != tt.isNew || r.ID != tt.want ||
				(r.Error == "") != (r.Status == 200) {
				t.Errorf("%+v, new %t, want status %d, id %q, new %t", r, r.isNew(), tt.status, tt.want, tt.isNew)
			}
		})
	}

	t.Run("empty Idempotency-Key", func(t *testing.T) {
		h := http.Header{"Idempotency-Key": {""}, "X-Event-Id": {"b"}}
		if r := w.send(t, "POST", h, nil); r.Status != 200 || r.ID != "b" || r.isNew() {
			t.Errorf("an empty Idempotency-Key: %+v, new %t, want the id b, seen", r, r.isNew())
		}
	})
	t.Run("body of unknown length", func(t *testing.T) {
		// It does not end: workerd answers at once, and would hang up within it.
		body, sender := io.Pipe()
		defer sender.Close()
		go func() { _, _ = io.WriteString(sender, `{"id":"d"}`) }()
		if r := w.send(t, "POST", http.Header{}, body); r.Status != 413 {
			t.Errorf("a body without a length: %+v, want status 413", r)
		}
	})
	t.Run("refusals say what to send", func(t *testing.T) {
		r := w.post(t, "", "", "")
		for _, want := range []string{"Idempotency-Key", "X-Event-Id", `"id" is a string`} {
			if !strings.Contains(r.Error, want) {
				t.Errorf("%q does not name %s", r.Error, want)
			}
		}
		h := http.Header{"X-Event-Id": {"e"}}
		if r := w.send(t, "PUT", h, nil); r.Status != 405 || r.Allow != "POST" {
			t.Errorf("PUT: %+v, want status 405 and Allow: POST", r)
		}
		if r := w.post(t, "X-Event-Id", "e", ""); !r.isNew() {
			t.Errorf("POST after the PUT: %+v, want new", r)
		}
	})
}

// TestIllFormedIDs: the runtime or Go would turn all ids that are not Unicode
// into the same one, and a new event would count as seen.
func TestIllFormedIDs(t *testing.T) {
	db := upstashtest.NewServer(t)
	w := serve(t, db.URL, db.Token)
	for _, id := range []string{"caf\xe9", "caf\xe8", "\xc3", "\xed\xa0\x80"} {
		if r := w.post(t, "Idempotency-Key", id, ""); r.Status != 400 {
			t.Errorf("header %q: %+v, want status 400", id, r)
		}
	}
	for _, body := range []string{
		`{"id":"\ud800"}`, `{"id":"\udc00\ud800"}`, "{\"id\":\"x\xff\"}", "{\"id\":\"x\xfe\"}",
		"{\"id\":\"x\",\"name\":\"\xff\"}",
	} {
		if r := w.post(t, "", "", body); r.Status != 400 {
			t.Errorf("body %q: %+v, want status 400", body, r)
		}
	}
	for _, id := range []string{"caf\u00e9", "\U0001f600", "\ufffd"} {
		if r := w.post(t, "", "", `{"id":"`+id+`"}`); r.Status != 200 || !r.isNew() || r.ID != id {
			t.Errorf("body with %q: %+v, want status 200, new and the id", id, r)
		}
	}
	if r := w.post(t, "", "", `{"id":"\ud83d\ude00"}`); r.Status != 200 || r.isNew() {
		t.Errorf("the same id, escaped: %+v, want status 200, seen", r)
	}
	for _, isNew := range []bool{true, false} {
		if r := w.post(t, "X-Event-Id", "na\u00efve", ""); r.Status != 200 || r.isNew() != isNew {
			t.Errorf("header in UTF-8: %+v, want new %v", r, isNew)
		}
	}
}

// TestUncertain loses the answer to a new id. The repetition finds the id in
// the filter, but the event must still be new.
func TestUncertain(t *testing.T) {
	db := upstashtest.NewServer(t)
	w := serve(t, db.URL, db.Token)
	if r := w.post(t, "Idempotency-Key", "first", ""); !r.isNew() { // it makes the filter
		t.Fatalf("the first event: %+v, want new", r)
	}
	db.ResetStats()
	db.Inject(upstashtest.Drop(upstashtest.AfterExec))
	for _, want := range []bool{true, false} {
		if r := w.post(t, "Idempotency-Key", "lost", ""); r.Status != 200 || r.isNew() != want {
			t.Errorf("%+v, new %t, want %t", r, r.isNew(), want)
		}
	}
	if n := db.Stats().Requests; n != 3 {
		t.Errorf("%d requests, want 3: the lost one, its repetition, and the second event", n)
	}
}

// TestDeadline has a database that takes connections and never answers.
// According to the log the Worker's own deadline ended the requests. Otherwise
// it would name the client's WithTimeout.
func TestDeadline(t *testing.T) {
	url, _ := stalledDatabase(t)
	w := serve(t, url, "token")
	var senders sync.WaitGroup
	for i := range 8 {
		senders.Go(func() {
			id := fmt.Sprint("event-", i)
			r := w.post(t, "Idempotency-Key", id, "")
			if r.Status != 504 || r.ID != id || !strings.Contains(r.Error, "in time") {
				t.Errorf("%s: %+v, want status 504, \"in time\"", id, r)
			}
		})
	}
	senders.Wait()
	w.Stop()
	checkLog(t, w.Log(), "context deadline exceeded; the command may have run")
	if strings.Contains(w.Log(), "WithTimeout") {
		t.Errorf("the client's timeout came first:\n%s", w.Log())
	}
}

func TestDatabaseUnusable(t *testing.T) {
	db := upstashtest.NewServer(t)
	down := upstashtest.NewServer(t)
	down.Close()
	tests := []struct{ name, url, token, logged string }{
		{"down", down.URL, "token", "host 127.0.0.1"},
		{"wrong token", db.URL, "secret-but-wrong", "401"},
		{"no URL", "", "token", "UPSTASH_REDIS_REST_URL"},
		{"not for REST", "redis://127.0.0.1:6379", "token", "redis://"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(t, tt.url, tt.token)
			r := w.post(t, "Idempotency-Key", "a", "")
			if r.Status != 503 || r.Error == "" {
				t.Errorf("event a: %+v, want status 503 and an error", r)
			}
			w.Stop()
			checkLog(t, w.Log(), tt.logged)
			if strings.Contains(w.Log(), "secret") {
				t.Error("the log shows the token")
			}
		})
	}
}

// checkLog checks that the log names a cause, and no callback into an ended
// program.
func checkLog(t *testing.T, log, want string) {
	t.Helper()
	if !strings.Contains(log, want) {
		t.Errorf("the log lacks %q:\n%s", want, log)
	}
	for _, bad := range []string{"already exited", "released function", "Uncaught", "hung"} {
		if strings.Contains(log, bad) {
			t.Errorf("the log has %q:\n%s", bad, log)
		}
	}
}

// TestSize keeps the whole Worker to about half of the 3 MB after gzip of
// Cloudflare's free plan.
func TestSize(t *testing.T) {
	const limit = 1_600_000 // bytes
	dir := mustBuild(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	raw := 0
	for _, name := range []string{"worker.wasm", "worker.mjs", "wasm_exec.js"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		raw += len(data)
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d after gzip", raw, packed.Len())
	if packed.Len() >= limit {
		t.Errorf("the Worker has %d bytes after gzip; the limit is %d", packed.Len(), limit)
	}
}

// TestNothingLeft runs the Worker in Node, which lives on after each request.
// If an instance left a timer behind, it would end the process with an error 5
// s later. The filter has the seed of the environment: a handle without it finds
// another filter.
func TestNothingLeft(t *testing.T) {
	db := upstashtest.NewServer(t)
	const requests = 10
	cmd := exec.Command(testenv.Need(t, "node", "node"), "testdata/node.mjs",
		filepath.Join(mustBuild(t), "worker.mjs"), fmt.Sprint(requests))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "UPBLOOM_SEED=0x1234567",
		"UPSTASH_REDIS_REST_URL=" + db.URL, "UPSTASH_REDIS_REST_TOKEN=" + db.Token,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("Node: %v\n%s", err, out)
	}
	if n := strings.Count(string(out), `"new":true`); n != requests {
		t.Errorf("%d of %d events were new, want all:\n%s", n, requests, out)
	}
	if _, err := bloom.Open(t.Context(), db.Client(), "worker:events", bloom.Config{Seed: 0x1234567}); err != nil {
		t.Error(err)
	}
}
