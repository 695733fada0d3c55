package peertest

import (
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestBitfieldIsLostInAutoPipelining holds why our own client batches nothing
// by itself, and why these tests call bitfield on a pipeline: on an
// auto-pipelining client bitfield() returns a promise without get and set, and
// counts as a command without being one, so that another write of the same
// turn gets the answer of the one after it.
func TestBitfieldIsLostInAutoPipelining(t *testing.T) {
	server := upstashtest.NewServer(t)
	steps := []step{
		{`((lost) => (lost.catch(() => {}), typeof lost.get))(redis.bitfield("b"))`, `"undefined"`, ``},
		{`redis.get("turn")`, `null`, ``}, // waits for that to be over
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
