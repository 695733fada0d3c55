package main

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
)

var calls = bufio.NewReader(os.Stdin)

// run sends the next call of its standard input over the transport. It returns
// 1 if there is none. The conformance test of the host is at the other end.
//
//go:wasmexport wasi:cli/run@0.2.0#run
func run() (failed uint32) {
	err := relay.Serve(calls, os.Stdout, transport{})
	if errors.Is(err, io.EOF) {
		return 1
	} else if err != nil {
		panic(err)
	}
	return 0
}
