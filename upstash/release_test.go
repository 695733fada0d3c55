package upstash

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"weak"
)

// A reply lives as long as its caller likes. Its request does not: with a large
// request, a kept reply of a few bytes would hold megabytes.
func TestAReplyDoesNotKeepItsRequest(t *testing.T) {
	for name, command := range map[string]func() (Command, *byte){
		"command": func() (Command, *byte) {
			cmd := Cmd("SET", "k", strings.Repeat("v", 1<<20))
			return cmd, &cmd.body()[0]
		},
		"raw body": func() (Command, *byte) {
			body := make([]byte, 1<<20)
			return RawCmd("SETRANGE", body, "k", "0"), &body[0]
		},
	} {
		reply, request := replyAndRequest(t, command)
		runtime.GC()
		if request.Value() != nil {
			t.Errorf("%s: the reply keeps the bytes of the request", name)
		}
		if n, err := reply.Int64(); n != 7 || err != nil {
			t.Errorf("%s: got %d, %v", name, n, err)
		}
	}
}

// replyAndRequest returns before the garbage collection, so that no variable of
// it holds the request.
//
//go:noinline
func replyAndRequest(t *testing.T, command func() (Command, *byte)) (Reply, weak.Pointer[byte]) {
	t.Helper()
	c, err := New(testURL, testToken, WithTransport(answersSeven{}))
	if err != nil {
		t.Fatal(err)
	}
	cmd, first := command()
	reply, err := c.Do(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return reply, weak.Make(first)
}

// answersSeven is a transport that keeps nothing.
type answersSeven struct{}

func (answersSeven) RoundTrip(_ context.Context, _ *Request, resp *Response) error {
	resp.StatusCode, resp.Body = 200, []byte(`{"result":7}`)
	return nil
}
