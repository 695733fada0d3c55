package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// TestDeadline lets the second of three messages use up the time: the first is
// recorded all the same, the third is not begun, and the answer is in time.
func TestDeadline(t *testing.T) {
	b := newBench(t)
	begun := 0
	b.process = func(ctx context.Context, _ events.SQSMessage) error {
		if begun++; begun == 2 {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), reserve+200*time.Millisecond)
	defer cancel()
	resp, err := b.handle(ctx, events.SQSEvent{Records: messages("a", "b", "c")})
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Error("the answer came after the deadline")
	}
	if begun != 2 {
		t.Errorf("%d messages were begun, want 2", begun)
	}
	wantIDs(t, "redelivered", failedIDs(resp), "b", "c")
	seen, err := b.done.ExistsAll(t.Context(), []string{"message:a", "message:b", "message:c"})
	if err != nil || !slices.Equal(seen, []bool{true, false, false}) {
		t.Errorf("recorded: %v, %v", seen, err)
	}
}

// TestShortTimeout gives the function less time than the reserve.
func TestShortTimeout(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), reserve)
	defer cancel()
	resp, err := b.handle(ctx, events.SQSEvent{Records: messages("a")})
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "redelivered", failedIDs(resp))
	wantIDs(t, "worked", b.worked, "a")
}

func TestKeep(t *testing.T) {
	for _, tt := range []struct {
		name           string
		timeout        time.Duration
		kept, toAnswer time.Duration
	}{
		{"long", time.Hour, time.Second, 300 * time.Millisecond},
		{"short", 900 * time.Millisecond, 300 * time.Millisecond, 90 * time.Millisecond},
		{"over", -time.Second, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
			defer cancel()
			kept, toAnswer := keep(ctx)
			// A part of the time has gone by now.
			if kept > tt.kept || toAnswer > tt.toAnswer || (kept == 0) != (tt.kept == 0) {
				t.Errorf("keep: %v and %v, want at most %v and %v", kept, toAnswer, tt.kept, tt.toAnswer)
			}
		})
	}
}
