package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
)

// TestRelay sends the requests of its standard input over the transport. The
// conformance test of the host is at the other end.
func TestRelay(t *testing.T) {
	if os.Getenv(relay.Env) == "" {
		t.Skip("a part of the host's conformance test")
	}
	in, tr := bufio.NewReader(os.Stdin), new(transport)
	for {
		err := relay.Serve(in, os.Stdout, tr)
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
