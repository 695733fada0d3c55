package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/upbloom/upbloom/upstash"
)

// TestDeadline has the second of three messages use up the time. The first is
// recorded all the same, the third is not begun, and the answer is in time. The
// clock is virtual: it stands still while the database is asked.
func TestDeadline(t *testing.T) {
	b := newBench(t)
	synctest.Test(t, func(t *testing.T) {
		b.reserve = 30 * time.Second
		begun := 0
		b.process = func(ctx context.Context, _ events.SQSMessage) error {
			if begun++; begun == 2 {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		// A third of the time left is kept: the work has 4 s, the rest 2 s.
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		resp, err := b.handle(ctx, events.SQSEvent{Records: messages("a", "b", "c")})
		if err != nil {
			t.Fatal(err)
		}
		if ctx.Err() != nil {
			t.Error("the answer came after the deadline, want it before")
		}
		if begun != 2 {
			t.Errorf("%d messages were begun, want 2", begun)
		}
		wantIDs(t, "redelivered", failedIDs(resp), "b", "c")
		seen, err := b.done.ExistsAll(t.Context(), []string{"message:a", "message:b", "message:c"})
		if err != nil || !slices.Equal(seen, []bool{true, false, false}) {
			t.Errorf("ExistsAll of a, b and c: %v, %v, want a alone", seen, err)
		}
	})
}

// TestRequestsEndBeforeTheInvocation reads the deadlines of the look-up and the
// Add. A stalled database must leave time to answer.
func TestRequestsEndBeforeTheInvocation(t *testing.T) {
	b := newBench(t, upstash.WithTimeout(0))
	b.reserve = 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		b.recordTime = 2 * time.Hour
		if _, err := b.deliver(messages("first")); err != nil {
			t.Fatal(err)
		}
		for i, tt := range []struct {
			name           string
			timeout        time.Duration
			recordTime     time.Duration
			kept, toAnswer time.Duration
		}{
			{"the reserve", time.Hour, 2 * time.Hour, 10 * time.Minute, 3 * time.Minute},
			{"a third of the time", 15 * time.Minute, 2 * time.Hour, 5 * time.Minute, 90 * time.Second},
			{"the time of a record", time.Hour, 20 * time.Minute, 10 * time.Minute, 40 * time.Minute},
		} {
			b.sent, b.recordTime = nil, tt.recordTime
			ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
			defer cancel()
			if _, err := b.handle(ctx, events.SQSEvent{Records: messages(fmt.Sprint(i))}); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if len(b.sent) != 2 {
				t.Fatalf("%s: sent %v, want the look-up and the Add", tt.name, b.sent)
			}
			deadline, _ := ctx.Deadline()
			for j, want := range []time.Duration{tt.kept, tt.toAnswer} {
				if left := deadline.Sub(b.sent[j].ends); left != want {
					t.Errorf("%s: request %d ends %v before the deadline, want %v", tt.name, j, left, want)
				}
			}
		}
	})
}

// TestKeepAfterTheDeadline: nothing is kept of a time that is over.
func TestKeepAfterTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	if kept, toAnswer := keep(ctx, 10*time.Minute); kept != 0 || toAnswer != 0 {
		t.Errorf("keep: %v and %v, want none", kept, toAnswer)
	}
}
