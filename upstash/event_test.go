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
		t.Errorf("dropped: %+v, want the transport's error and no status", e)
	}
	if e := events[1]; !errors.As(e.Err, &server) || e.StatusCode != 429 || e.BytesIn != 19 {
		t.Errorf("429: %+v, want an Error, the status and 19 bytes", e)
	}
	if e := events[2]; e.Err != nil || e.StatusCode != 200 || e.BytesIn != 30 {
		t.Errorf("answered: %+v, want status 200 and 30 bytes", e)
	}
}

// A call refused before it is sent makes no attempt.
func TestObserverSeesOnlyAttempts(t *testing.T) {
	var calls []Event
	c, _ := newFake(t, always(`{"result":1}`), observing(func(Event) {
		t.Error("an event for a call that sent nothing")
	}), WithCallObserver(func(_ context.Context, e Event) { calls = append(calls, e) }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, cancelled := c.Do(ctx, Cmd("GET", "k"))
	if len(calls) != 1 || calls[0].Attempt != 0 || calls[0].Ran+calls[0].MayHaveRun != 0 || !errors.Is(calls[0].Err, cancelled) {
		t.Errorf("got %+v for %v", calls, cancelled)
	}
	_, refused := c.Do(t.Context(), Cmd(""))
	if n, err := c.Del(t.Context()); n != 0 || err != nil {
		t.Errorf("Del of nothing = %d, %v, want 0", n, err)
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

// A command that was never sent, or was refused, is not billed. If it may have
// run, it may be billed.
func TestEventCountsWhatRan(t *testing.T) {
	one, two := []Command{Cmd("SET", "k", "v")}, []Command{Cmd("GET", "a"), Cmd("SET", "a", "b")}
	script := []Command{Cmd("EVAL", "x", "0"), Cmd("GET", "a")}
	for _, tt := range []struct {
		name            string
		cmds            []Command
		answers         []answer
		ran, mayHaveRun int
	}{
		{"answered", one, []answer{{body: `[{"result":"OK"}]`}}, 1, 0},
		{"never sent", one, []answer{{err: notSent}}, 0, 0},
		{"refused", two, []answer{{status: 400, body: `{"error":"ERR x"}`}}, 0, 0},
		{"limited", two, []answer{{status: 429}}, 0, 0},
		{"dropped", two, []answer{{err: dropped}}, 0, 2},
		{"500", two, []answer{{status: 500}}, 0, 2},
		{"one refused", two, []answer{{body: `[{"result":null},{"error":"OOM x"}]`}}, 1, 0},
		{"one refused, or a script stopped", script, []answer{{body: `[{"error":"ERR x"},{"result":null}]`}}, 1, 1},
		{
			"dropped, then answered", two,
			[]answer{{err: dropped}, {body: `[{"result":null},{"result":"OK"}]`}},
			2, 2,
		},
		{"limited, then answered", one, []answer{{status: 429}, {body: `[{"result":"OK"}]`}}, 1, 0},
	} {
		var attempts, calls []Event
		c, f := newFake(t, tt.answers, WithRetry(len(tt.answers)-1),
			observing(func(e Event) { attempts = append(attempts, e) }),
			WithCallObserver(func(_ context.Context, e Event) { calls = append(calls, e) }))
		_, err := c.Pipeline(WithLabel(t.Context(), "test"), tt.cmds...)
		if len(attempts) != len(tt.answers) || len(calls) != 1 {
			t.Fatalf("%s: %d and %d events, want %d and 1",
				tt.name, len(attempts), len(calls), len(tt.answers))
		}
		e := calls[0]
		if e.Ran != tt.ran || e.MayHaveRun != tt.mayHaveRun {
			t.Errorf("%s: %d ran and %d may have run, want %d and %d",
				tt.name, e.Ran, e.MayHaveRun, tt.ran, tt.mayHaveRun)
		}
		if !errors.Is(e.Err, err) || e.Attempt != len(attempts) || e.Commands != len(tt.cmds) ||
			e.BytesOut != len(attempts)*len(f.requests[0].Body) || e.Label != "test" || e.Command != "PIPELINE" {
			t.Errorf("%s: %+v", tt.name, e)
		}
		first, last := attempts[0], attempts[len(attempts)-1]
		if e.StatusCode != last.StatusCode || first.Label != "test" || first.Start.Before(e.Start) ||
			e.Start.Add(e.Duration).Before(last.Start.Add(last.Duration)) {
			t.Errorf("%s: the call %+v does not span the attempts %+v", tt.name, e, attempts)
		}
	}
}

func TestObserved(t *testing.T) {
	for name, tt := range map[string]struct {
		opt  Option
		want bool
	}{
		"none": {nil, false}, "attempts": {observing(func(Event) {}), true},
		"calls": {WithCallObserver(func(context.Context, Event) {}), true},
	} {
		if c, _ := newFake(t, always(""), unobserved, tt.opt); c.observed() != tt.want {
			t.Errorf("%s: Observed is %v", name, !tt.want)
		}
	}
}
