//go:build !js

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestNothingLeft runs the Worker in Node, which lives on after each request.
// If an instance left a timer behind, it would end the process with an error 5
// s later.
func TestNothingLeft(t *testing.T) {
	db := upstashtest.NewServer(t)
	const requests = 10
	cmd := exec.Command(testenv.Need(t, "node", "node"), "testdata/node.mjs",
		filepath.Join(mustBuild(t), "worker.mjs"), fmt.Sprint(requests))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"UPSTASH_REDIS_REST_URL=" + db.URL, "UPSTASH_REDIS_REST_TOKEN=" + db.Token,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("Node: %v\n%s", err, out)
	}
	if n := strings.Count(string(out), `"new":true`); n != requests {
		t.Errorf("%d of %d events were new, want all:\n%s", n, requests, out)
	}
}
