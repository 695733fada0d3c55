package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
)

// TestRun uses what the program prints to point a client at the server.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, w, io.Discard, []string{"-addr", "127.0.0.1:0", "-token", "s$cret"})
		_ = w.CloseWithError(err)
		done <- err
	}()

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
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-addr", "x"}, "listening on x"},
		{[]string{"-addr", "127.0.0.1:0", "-redis", "127.0.0.1:1"}, "no Redis at 127.0.0.1:1"},
		{[]string{"-addr", "127.0.0.1:0", "-token", "two words"}, "the token of -token does not work"},
		{[]string{"-addr", "127.0.0.1:0", "serve"}, `unexpected argument "serve"`},
	} {
		ctx, stop := context.WithCancel(t.Context())
		stop() // a server that starts all the same ends at once
		err := run(ctx, io.Discard, io.Discard, tt.args)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.want)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestRunCannotPrint: the program ends if it cannot print how to connect.
func TestRunCannotPrint(t *testing.T) {
	err := run(t.Context(), broken{}, io.Discard, []string{"-addr", "127.0.0.1:0"})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// TestRunWarns: the program says so if other machines can connect.
func TestRunWarns(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true,
	} {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		var notes strings.Builder
		if err := run(ctx, io.Discard, &notes, []string{"-addr", addr}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(notes.String(), "is open to other machines"); got != want {
			t.Errorf("%s: it says %q", addr, notes.String())
		}
	}
}

func TestQuote(t *testing.T) {
	if got := quote("it's $x"); got != `'it'\''s $x'` {
		t.Errorf("got %s", got)
	}
}
