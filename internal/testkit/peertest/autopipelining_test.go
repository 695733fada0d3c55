package peertest

import (
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestBitfieldIsLostInAutoPipelining shows a defect of the auto-pipelining
// client. Its bitfield() returns a promise without get and set. It also counts
// as a command without being one, so that each command of the same turn gets
// the answer to the next one. That is why our own client batches nothing by
// itself, and why these tests call bitfield on a pipeline.
func TestBitfieldIsLostInAutoPipelining(t *testing.T) {
	server := upstashtest.NewServer(t)
	steps := []step{
		{`((lost) => (lost.catch(() => {}), typeof lost.get))(redis.bitfield("b"))`, `"undefined"`, ``},
		{`redis.get("turn")`, `null`, ``}, // waits until that turn is over
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
