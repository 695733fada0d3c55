package peertest

import (
	"math"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestReadYourWrites has a replica that applies no write. The client sees its
// own writes only because of the sync token.
func TestReadYourWrites(t *testing.T) {
	install(t)
	steps := []step{
		{`redis.set("k", "new")`, `"OK"`, ``},
		{`redis.get("k")`, `"new"`, ``},
		{`redis.pipeline().strlen("k").exec()`, `[3]`, ``},
		{`connect(token).get("k")`, `null`, ``}, // another client, with no token yet
		{`connect(token, {readYourWrites: false}).get("k")`, `null`, ``},
	}
	for _, set := range allSettings {
		t.Run(set.String(), func(t *testing.T) {
			server := upstashtest.NewServer(t)
			server.SetReplicaLag(math.MaxInt)
			out := play(t, session{URL: server.URL, Token: server.Token, Options: set, Steps: scripts(steps)})
			for i, s := range steps {
				check(t, s, out[i])
			}
		})
	}
}
