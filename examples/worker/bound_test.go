//go:build !js

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stalledDatabase takes connections and never answers. It says when a request
// has come.
func stalledDatabase(t *testing.T) (url string, asked <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	came := make(chan struct{}, 1000)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if n, _ := c.Read(make([]byte, 1)); n > 0 {
					came <- struct{}{}
				}
				for buf := make([]byte, 4096); ; {
					if _, err := c.Read(buf); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), came
}

// TestInstancesAreBounded: what is too much for the memory of an isolate is
// refused at once, while what is under way waits for its database.
func TestInstancesAreBounded(t *testing.T) {
	const bound = 16 // maxInstances
	url, asked := stalledDatabase(t)
	w := serve(t, url, "token")
	var waited atomic.Int32
	var senders sync.WaitGroup
	for i := range bound {
		senders.Go(func() {
			r := w.post(t, "Idempotency-Key", fmt.Sprint("event-", i), "")
			if waited.Add(1); r.Status != 504 {
				t.Errorf("within the bound: %+v", r)
			}
		})
	}
	for range bound {
		<-asked
	}
	for i := range 4 {
		id := fmt.Sprint("more-", i)
		r := w.post(t, "Idempotency-Key", id, "")
		if r.Status != 503 || r.ID != id || r.RetryAfter == "" || !strings.Contains(r.Error, "at once") {
			t.Errorf("over the bound: %+v", r)
		}
	}
	if n := waited.Load(); n != 0 {
		t.Errorf("%d requests had ended before the refusals came", n)
	}
	senders.Wait()
	if r := w.post(t, "Idempotency-Key", "after", ""); r.Status != 504 {
		t.Errorf("after the others: %+v", r)
	}
}

// TestLostSendersFreeTheirInstances: senders that hang up hold no place for
// longer than an instance lives.
func TestLostSendersFreeTheirInstances(t *testing.T) {
	url, asked := stalledDatabase(t)
	w := serve(t, url, "token")
	ctx, cancel := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for i := range 16 {
		senders.Go(func() {
			req, err := http.NewRequestWithContext(ctx, "POST", w.url, nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Idempotency-Key", fmt.Sprint("event-", i))
			if resp, err := w.client.Do(req); err == nil {
				_ = resp.Body.Close()
				t.Errorf("event-%d: status %d", i, resp.StatusCode)
			}
		})
	}
	for range 16 {
		<-asked
	}
	cancel()
	senders.Wait()
	for range 60 { // s, of which an instance's life is 6
		if r := w.post(t, "Idempotency-Key", "after", ""); r.Status == 504 {
			return // it had an instance, and its database stalls
		}
		time.Sleep(time.Second)
	}
	t.Error("no instance became free")
}
