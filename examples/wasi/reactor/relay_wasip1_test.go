package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/upstash"
)

// TestRelay sends what it reads from its standard input over the transport,
// until the end of the input: the conformance test of the host is at the other
// end.
func TestRelay(t *testing.T) {
	if os.Getenv(relay.Env) == "" {
		t.Skip("a part of the host's conformance test")
	}
	in := bufio.NewReader(os.Stdin)
	for tr := new(transport); ; {
		call, err := relay.ReadCall(in)
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if err := relay.WriteResult(os.Stdout, relayed(tr, call)); err != nil {
			t.Fatal(err)
		}
	}
}

func relayed(tr *transport, call relay.Call) relay.Result {
	ctx := context.Background()
	if call.Timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, call.Timeout)
		defer cancel()
	}
	req := upstash.Request{URL: call.URL, Body: call.Body, MaxResponse: call.MaxResponse}
	for _, h := range call.Header {
		req.Header = append(req.Header, upstash.Header{Name: h[0], Value: h[1]})
	}
	var resp upstash.Response
	err := tr.RoundTrip(ctx, &req, &resp)
	result := relay.Result{ID: call.ID, StatusCode: resp.StatusCode, Body: resp.Body}
	if err != nil {
		result.Failed, result.Error, result.NotSent = true, err.Error(), upstash.SafeToRetry(err)
		switch {
		case errors.Is(err, upstash.ErrResponseTooLarge):
			result.Cause = relay.TooLarge
		case errors.Is(err, context.DeadlineExceeded):
			result.Cause = relay.DeadlineExceeded
		}
		return result
	}
	// A Response keeps its fields to itself: here they are again.
	head, _, _ := bytes.Cut(tr.answer, []byte("\n\n"))
	for line := range strings.SplitSeq(string(head), "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			result.Header = append(result.Header, [2]string{name, value})
		}
	}
	return result
}
