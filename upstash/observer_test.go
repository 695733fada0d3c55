package upstash

import (
	"context"
	"errors"
	"testing"
)

func TestObserver(t *testing.T) {
	type ctxKey struct{}
	ctx := context.WithValue(t.Context(), ctxKey{}, "of the call")
	var events []Event
	c, f := newFake(t, []answer{
		{err: dropped},
		{status: 429, body: `{"error":"ERR max"}`},
		{body: `[{"result":1},{"result":"OK"}]`},
	}, WithObserver(func(ctx context.Context, e Event) {
		if ctx.Value(ctxKey{}) != "of the call" {
			t.Error("the observer got another context")
		}
		events = append(events, e)
	}))
	if _, err := c.Pipeline(ctx, Cmd("GET", "k"), Cmd("SET", "k", "v")); err != nil {
		t.Fatal(err)
	}
	if len(events) != 3 {
		t.Fatalf("%d events for 3 attempts", len(events))
	}
	for i, e := range events {
		if e.Command != "PIPELINE" || e.Commands != 2 || e.Attempt != i+1 || e.Duration < 0 {
			t.Errorf("event %d: %+v", i, e)
		}
		if e.BytesOut != len(f.requests[i].Body) || e.BytesOut == 0 {
			t.Errorf("event %d: %d bytes out of %d", i, e.BytesOut, len(f.requests[i].Body))
		}
	}
	var server *Error
	if e := events[0]; !errors.Is(e.Err, dropped) || e.StatusCode != 0 || e.BytesIn != 0 {
		t.Errorf("dropped: %+v", e)
	}
	if e := events[1]; !errors.As(e.Err, &server) || e.StatusCode != 429 || e.BytesIn != 19 {
		t.Errorf("429: %+v", e)
	}
	if e := events[2]; e.Err != nil || e.StatusCode != 200 || e.BytesIn != 30 {
		t.Errorf("answered: %+v", e)
	}
}

// What is refused before sending is no attempt.
func TestObserverSeesOnlyAttempts(t *testing.T) {
	c, _ := newFake(t, always(`{"result":1}`), WithObserver(func(context.Context, Event) {
		t.Error("an event for a call that sent nothing")
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, cancelled := c.Do(ctx, Cmd("GET", "k"))
	_, refused := c.Do(t.Context(), Cmd(""))
	if n, err := c.Del(t.Context()); n != 0 || err != nil {
		t.Errorf("Del of nothing: %d, %v", n, err)
	}
	if replies, err := c.MultiExec(t.Context()); replies != nil || err != nil {
		t.Errorf("MultiExec of nothing: %v, %v", replies, err)
	}
	_ = c.Close()
	_, closed := c.Do(t.Context(), Cmd("GET", "k"))
	if !errors.Is(cancelled, context.Canceled) || !errors.Is(refused, ErrArgument) ||
		!errors.Is(closed, ErrClosed) {
		t.Errorf("got %v, %v, %v", cancelled, refused, closed)
	}
}
