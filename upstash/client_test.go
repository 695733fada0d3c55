package upstash_test

import (
	"errors"
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Do sends one command in one request, and returns the answer.
func TestDo(t *testing.T) {
	server := upstashtest.NewServer(t)
	client := server.Client()
	for _, tt := range []struct {
		cmd  upstash.Command
		want string
	}{
		{upstash.Cmd("SET", "greeting", "hello"), "OK"},
		{upstash.Cmd("GET", "greeting"), "hello"},
		{upstash.Cmd("GETSET", "greeting", "hellö"), "hello"},
		{upstash.Cmd("get", "greeting"), "hellö"},
	} {
		server.ResetStats()
		reply, err := client.Do(t.Context(), tt.cmd)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := reply.Text(); err != nil || got != tt.want {
			t.Errorf("%v: %q, %v, want %q", tt.cmd, got, err, tt.want)
		}
		if n := server.Stats(); n.Requests != 1 || n.Commands != 1 {
			t.Errorf("%v: %d requests and %d commands, want one of each", tt.cmd, n.Requests, n.Commands)
		}
	}
}

// A missing key is a null. It is an error only to read it as a value.
func TestDoOfAMissingKey(t *testing.T) {
	reply, err := upstashtest.NewServer(t).Client().Do(t.Context(), upstash.Cmd("GET", "nothing"))
	if err != nil || !reply.IsNil() {
		t.Errorf("GET: %v, %v, want null", reply, err)
	}
	if _, err := reply.Text(); !errors.Is(err, upstash.ErrNil) {
		t.Errorf("Text: %v, want ErrNil", err)
	}
}

// An error of the server is an *Error with its words and its status.
func TestDoOfAFailingCommand(t *testing.T) {
	client := upstashtest.NewServer(t).Client()
	if _, err := client.Do(t.Context(), upstash.Cmd("SET", "text", "not a number")); err != nil {
		t.Fatal(err)
	}
	_, err := client.Do(t.Context(), upstash.Cmd("INCR", "text"))
	var refused *upstash.Error
	if !errors.As(err, &refused) {
		t.Fatalf("INCR: %v, want an *Error", err)
	}
	const words = "ERR value is not an integer or out of range"
	if refused.Message != words || refused.StatusCode != 400 || refused.Command != "INCR" {
		t.Errorf("got %+v, want status 400 and %q", refused, words)
	}
	if !upstash.SafeToRetry(err) {
		t.Error("the error is not safe to retry, but INCR changed nothing")
	}
}
