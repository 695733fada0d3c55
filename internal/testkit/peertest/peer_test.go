package peertest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// settings change how the client sends and reads.
type settings struct {
	AutoPipelining bool `json:"enableAutoPipelining"`
	// Encoding is "base64", the client's default, or false.
	Encoding any `json:"responseEncoding"`
}

var allSettings = []settings{{false, "base64"}, {false, false}, {true, "base64"}, {true, false}}

func (s settings) String() string {
	return fmt.Sprintf("autopipelining=%v,encoding=%v", s.AutoPipelining, s.Encoding)
}

// session is the input of peer.mjs: where to connect, and the steps to run.
type session struct {
	URL     string   `json:"url"`
	Token   string   `json:"token"`
	Options settings `json:"options"`
	Items   any      `json:"items"`
	Steps   []string `json:"steps"`
}

// outcome is the outcome of a step: its value as JSON, or the message of the
// error it threw.
type outcome struct {
	Value json.RawMessage
	Error *string
}

// play runs a session under Node and returns an outcome for each of its steps.
func play(tb testing.TB, s session) []outcome {
	tb.Helper()
	node, dir := install(tb)
	input, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), node, "peer.mjs")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no NODE_OPTIONS, no proxy
	cmd.Stdin = bytes.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("node: %v\n%s", err, stderr.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(s.Steps) {
		tb.Fatalf("%d lines for %d steps:\n%s%s", len(lines), len(s.Steps), out, stderr.String())
	}
	outcomes := make([]outcome, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &outcomes[i]); err != nil {
			tb.Fatalf("line %q: %v", line, err)
		}
	}
	return outcomes
}

// decode reads a step's value, and ends the test if it threw.
func decode[T any](tb testing.TB, o outcome) (v T) {
	tb.Helper()
	if o.Error != nil {
		tb.Fatalf("threw %q", *o.Error)
	}
	if err := json.Unmarshal(o.Value, &v); err != nil {
		tb.Fatalf("%s: %v", o.Value, err)
	}
	return v
}

// everywhere runs a test with each database of the server and each setting of
// the client. The database is empty each time.
func everywhere(t *testing.T, test func(*testing.T, *upstashtest.Server, settings)) {
	install(t) // skips the whole test, not each of its eight parts
	for _, backend := range []string{"embedded", "redis"} {
		t.Run(backend, func(t *testing.T) {
			var opts []upstashtest.Option
			if backend == "redis" {
				opts = append(opts, upstashtest.WithRedis(testenv.Redis(t)))
			}
			server := upstashtest.NewServer(t, opts...)
			for _, set := range allSettings {
				t.Run(set.String(), func(t *testing.T) {
					server.FlushAll()
					test(t, server, set)
				})
			}
		})
	}
}
