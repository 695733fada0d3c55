package main

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestNothingIsLost delivers random batches to a handler whose work and
// database fail at random. What SQS would deliver again is delivered again
// until nothing is left. Then the work on every message must have been done.
func TestNothingIsLost(t *testing.T) {
	quiet(t)
	faults := slices.DeleteFunc(upstashtest.EveryFault(), func(f upstashtest.Fault) bool {
		// A stall ends only by a deadline, which takes real time. A late
		// command may run after the next round has emptied the database.
		return strings.HasPrefix(f.String(), "stall") || strings.HasPrefix(f.String(), "rate-limit") ||
			f.String() == "late-exec"
	})
	b := newBench(t)
	rapid.Check(t, func(rt *rapid.T) {
		b.server.FlushAll()
		b.server.InjectFunc(nil)
		b.worked, b.fail = nil, map[string]error{}

		queue := rapid.SliceOfN(rapid.SampledFrom(strings.Split("abcdefgh", "")), 1, 20).Draw(rt, "queue")
		sent := slices.Compact(slices.Sorted(slices.Values(queue)))
		plan := rapid.SliceOfN(rapid.IntRange(-len(faults), len(faults)-1), 0, 12).Draw(rt, "faults")
		b.server.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
			if n > int64(len(plan)) || plan[n-1] < 0 {
				return upstashtest.Fault{}
			}
			return faults[plan[n-1]]
		})
		for len(queue) > 0 {
			n := min(len(queue), rapid.IntRange(1, 10).Draw(rt, "batch"))
			clear(b.fail)
			if rapid.IntRange(0, 3).Draw(rt, "work fails") == 0 {
				b.fail[queue[0]] = errors.New("failed")
			}
			again, _ := b.deliver(queue[:n]...)
			queue = append(slices.Clone(queue[n:]), again...)
		}
		worked := slices.Compact(slices.Sorted(slices.Values(b.worked)))
		if !slices.Equal(worked, sent) {
			rt.Fatalf("sent %q, the work was done for %q", sent, worked)
		}
	})
}

// quiet keeps the handler's log out of a test with many runs.
func quiet(tb testing.TB) {
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	tb.Cleanup(func() { slog.SetDefault(old) })
}
