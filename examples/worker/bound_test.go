//go:build !js

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// stalledDatabase starts a database that takes connections and never answers.
// The channel has one value for each request.
func stalledDatabase(t *testing.T) (url string, asked <-chan struct{}) {
	t.Helper()
	came := make(chan struct{}, 1000)
	addr := testenv.Serve(t, func(c net.Conn) {
		if n, _ := c.Read(make([]byte, 1)); n > 0 {
			came <- struct{}{}
		}
		_, _ = io.Copy(io.Discard, c)
	})
	return "http://" + addr, came
}

// TestInstancesAreBounded: requests beyond the bound are refused at once, while
// those within it wait for the database and give up after 5 s. If one of them
// has given up before the refusals came, because the machine is slow, it proves
// nothing, and the test begins again.
func TestInstancesAreBounded(t *testing.T) {
	const bound = 16 // maxInstances
	url, asked := stalledDatabase(t)
	w := serve(t, url, "token")
	for round := range 5 {
		var ended atomic.Int32
		var senders sync.WaitGroup
		for i := range bound {
			senders.Go(func() {
				r := w.post(t, "Idempotency-Key", fmt.Sprint("event-", i), "")
				if ended.Add(1); r.Status != 504 {
					t.Errorf("a request within the bound: %+v, want status 504", r)
				}
			})
		}
		for range bound {
			await(t, asked)
		}
		var over [4]reply
		for i := range over {
			over[i] = w.post(t, "Idempotency-Key", fmt.Sprint("more-", i), "")
		}
		early := ended.Load()
		senders.Wait()
		if early > 0 {
			t.Logf("round %d: %d requests had ended before the refusals came", round, early)
			continue
		}
		for i, r := range over {
			if r.Status != 503 || r.ID != fmt.Sprint("more-", i) || r.RetryAfter == "" ||
				!strings.Contains(r.Error, "at once") {
				t.Errorf("a request over the bound: %+v, want status 503, its id and a Retry-After", r)
			}
		}
		if r := w.post(t, "Idempotency-Key", "after", ""); r.Status != 504 {
			t.Errorf("a request after the others: %+v, want status 504", r)
		}
		return
	}
	t.Errorf("%d requests were under way: no refusal came, want one", bound)
}

// TestBodiesAreBounded: a body gets its slot before it is read, and must arrive
// in time. Of 32 senders who hold their bodies back, 16 have a slot. On a slow
// machine they may come one after another and all get one, which proves
// nothing, and the test begins again.
func TestBodiesAreBounded(t *testing.T) {
	db := upstashtest.NewServer(t)
	w := serve(t, db.URL, db.Token)
	for range 5 {
		var late, refused atomic.Int32
		var senders sync.WaitGroup
		for range 32 {
			senders.Go(func() {
				switch status := stalledBody(t, w); status {
				case "408":
					late.Add(1)
				case "503":
					refused.Add(1)
				default:
					t.Errorf("a body that does not arrive: status %s, want 408 or 503", status)
				}
			})
		}
		senders.Wait()
		if t.Failed() {
			return
		}
		if r := w.post(t, "Idempotency-Key", "after", ""); r.Status != 200 {
			t.Errorf("a request after the others: %+v, want status 200", r)
		}
		if late.Load() == 0 {
			t.Error("no body was given up for being late, want one")
		}
		if refused.Load() > 0 {
			return
		}
	}
	t.Error("more than 16 bodies were on their way: no event was refused, want one")
}

// stalledBody sends a part of a body, waits, and returns the answer's status.
func stalledBody(t *testing.T, w *worker) (status string) {
	t.Helper()
	host := strings.Trim(strings.TrimPrefix(w.URL, "http://"), "/")
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testenv.Patience))
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 12\r\n\r\n{", host)
	head := make([]byte, len("HTTP/1.1 408"))
	if _, err := io.ReadFull(c, head); err != nil {
		t.Errorf("a body that does not arrive: %v, want an answer", err)
		return ""
	}
	return string(head[len("HTTP/1.1 "):])
}

// await waits for a request to arrive at the database.
func await(t *testing.T, asked <-chan struct{}) {
	t.Helper()
	select {
	case <-asked:
	case <-time.After(testenv.Patience):
		t.Fatal("no request came to the database")
	}
}

// TestLostSendersFreeTheirInstances: after senders hung up, their slots become
// free when an instance's longest life is over.
func TestLostSendersFreeTheirInstances(t *testing.T) {
	url, asked := stalledDatabase(t)
	w := serve(t, url, "token")
	ctx, cancel := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for i := range 16 {
		senders.Go(func() {
			req, err := http.NewRequestWithContext(ctx, "POST", w.URL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Idempotency-Key", fmt.Sprint("event-", i))
			if resp, err := w.client.Do(req); err == nil {
				_ = resp.Body.Close()
				t.Errorf("event-%d: status %d, want no answer", i, resp.StatusCode)
			}
		})
	}
	for range 16 {
		await(t, asked)
	}
	cancel()
	senders.Wait()
	for range 300 { // seconds; a slot lives for 8 at most
		if r := w.post(t, "Idempotency-Key", "after", ""); r.Status == 504 {
			return // an instance was started for it, and the database stalls
		}
		time.Sleep(time.Second)
	}
	t.Error("no instance became free")
}
