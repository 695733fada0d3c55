package upstash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestSyncTokenIsSentOn(t *testing.T) {
	c, f := newFake(t, []answer{
		{body: `{"result":1}`, syncToken: "one"},
		{body: `{"result":1}`},
		{status: 400, body: `{"error":"ERR"}`, syncToken: "two"},
		{body: `[{"result":1}]`, syncToken: "three"},
		{body: `{"result":1}`},
	})
	for i, want := range []string{"", "one", "one", "two", "three"} {
		var err error
		if i == 3 {
			_, err = c.Pipeline(t.Context(), Cmd("GET", "k"))
		} else {
			_, err = c.Do(t.Context(), Cmd("GET", "k"))
		}
		if server := new(Error); err != nil && !errors.As(err, &server) {
			t.Fatal(err)
		}
		if got, there := f.last("Upstash-Sync-Token"); got != want || !there {
			t.Errorf("request %d: sent %q (%v), want %q", i, got, there, want)
		}
	}
}

func TestWithoutSyncToken(t *testing.T) {
	c, f := newFake(t, []answer{{body: `{"result":1}`, syncToken: "one"}}, WithoutSyncToken())
	for range 2 {
		if _, err := c.Do(t.Context(), Cmd("SET", "k", "v")); err != nil {
			t.Fatal(err)
		}
		if got, there := f.last("Upstash-Sync-Token"); there {
			t.Errorf("sent %q", got)
		}
	}
}

// TestSyncTokenOfALateRead: if a read was sent before a write finished, it must
// not bring back the state before the write.
func TestSyncTokenOfALateRead(t *testing.T) {
	var tokens syncTokens
	_, readMark := tokens.load()
	_, writeMark := tokens.load()
	tokens.store("after the write", "", writeMark, false)
	tokens.store("before the write", "", readMark, true)
	if got, _ := tokens.load(); got != "after the write" {
		t.Errorf("a late read's token took the place of a write's: %q", got)
	}
	_, mark := tokens.load()
	tokens.store("newer", "after the write", mark, true)
	if got, _ := tokens.load(); got != "newer" {
		t.Errorf("got %q, want the token of a read that knew the write", got)
	}
	tokens.store("", "newer", mark, false)
	if got, _ := tokens.load(); got != "newer" {
		t.Errorf("an answer without a token left %q", got)
	}
}

// If a token cannot be sent back, it would make every later call fail.
func TestSyncTokenOfStrangeShape(t *testing.T) {
	var tokens syncTokens
	tokens.store("good", "", 0, false)
	for _, bad := range []string{"", "\x00", "a\r\nb", "\x7f", "\u00e9", strings.Repeat("x", maxSyncToken+1)} {
		sent, mark := tokens.load()
		tokens.store(bad, sent, mark, false)
		if got, _ := tokens.load(); got != "good" {
			t.Fatalf("kept %.20q", got)
		}
	}
}

// stateServer counts writes. Its answer and its token are the count.
type stateServer struct {
	mu     sync.Mutex
	writes int
}

func (s *stateServer) RoundTrip(_ context.Context, req *Request, resp *Response) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(req.Body) == `["INCR","k"]` {
		s.writes++
	}
	resp.StatusCode = 200
	resp.SetHeader("Upstash-Sync-Token", fmt.Sprint(s.writes))
	resp.Body = fmt.Appendf(nil, `{"result":%d}`, s.writes)
	return nil
}

func TestSyncTokenConcurrently(t *testing.T) {
	c, err := New(testURL, testToken, WithTransport(new(stateServer)))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 100 {
				name := "INCR"
				if i%2 == 0 {
					name = "GET"
				}
				if _, err := c.Do(t.Context(), Cmd(name, "k")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	// Without other callers, each write's own token is sent next.
	r, err := c.Do(t.Context(), Cmd("INCR", "k"))
	if err != nil {
		t.Fatal(err)
	}
	n, _ := r.Int64()
	if got, _ := c.tokens.load(); got != fmt.Sprint(n) || n != 8*50+1 {
		t.Errorf("token %q after write %d", got, n)
	}
}
