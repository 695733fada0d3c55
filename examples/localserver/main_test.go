package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
)

// TestRun points a client at the server by what it prints.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, w, []string{"-addr", "127.0.0.1:0", "-token", "s$cret"}) }()

	env := make(map[string]string)
	lines := bufio.NewScanner(r)
	for len(env) < 2 && lines.Scan() {
		name, value, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		env[name] = value
	}
	if got := env["UPSTASH_REDIS_REST_TOKEN"]; got != `'s$cret'` {
		t.Errorf("the token is printed as %s", got)
	}
	c, err := upstash.New(strings.Trim(env["UPSTASH_REDIS_REST_URL"], "'"), "s$cret")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reply, err := c.Do(ctx, upstash.Cmd("PING"))
	if text, _ := reply.Text(); err != nil || text != "PONG" {
		t.Errorf("PING: %q, %v", text, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestRunReportsErrors(t *testing.T) {
	for _, args := range [][]string{{"-addr", "x"}, {"-addr", "127.0.0.1:0", "-redis", "127.0.0.1:1"}} {
		if err := run(t.Context(), io.Discard, args); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestQuote(t *testing.T) {
	if got := quote("it's $x"); got != `'it'\''s $x'` {
		t.Errorf("got %s", got)
	}
}
