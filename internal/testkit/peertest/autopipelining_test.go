package peertest

import (
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestBitfieldIsLostInAutoPipelining shows a defect of the auto-pipelining
// client. Its bitfield() returns a promise without get and set, and counts as a
// command without being one. Each command of the same turn then gets the answer
// to the next one. Therefore our own client batches nothing by itself, and
// these tests call bitfield on a pipeline.
func TestBitfieldIsLostInAutoPipelining(t *testing.T) {
	server := upstashtest.NewServer(t)
	steps := []step{
		{`((lost) => (lost.catch(() => {}), typeof lost.get))(redis.bitfield("b"))`, `"undefined"`, ``},
		{`redis.get("turn")`, `null`, ``}, // waits until that turn is over
		{`Promise.allSettled([redis.bitfield("b"), redis.set("a", "x"), redis.incr("n")])
			.then(([, set]) => set.value)`, `1`, ``}, // INCR's answer
	}
	out := play(t, session{
		URL: server.URL, Token: server.Token, Steps: scripts(steps),
		Options: settings{AutoPipelining: true, Encoding: "base64"},
	})
	for i, s := range steps {
		check(t, s, out[i])
	}
}
