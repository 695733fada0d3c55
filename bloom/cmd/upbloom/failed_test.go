package main

import (
	"slices"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// After an upload that the database refuses, or whose answer is lost, the error
// says what is known of the filter, and what to do next.
func TestFailedUploadSaysWhatIsKnown(t *testing.T) {
	for _, command := range []string{"load", "replace"} {
		sh := newShell(t)
		sh.want(0, "", "a\n", "load", "--items", "1k", "key")
		sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
			if slices.Contains(r.Commands, "SETEX") {
				return upstashtest.ErrorObject("OOM command not allowed when used memory > 'maxmemory'.")
			}
			return upstashtest.Fault{}
		})
		sh.want(exitDatabase, "choose a larger plan; nothing was changed, and what was uploaded", "b\n",
			command, "key")
		sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
			if slices.Contains(r.Commands, "EVAL") || slices.Contains(r.Commands, "EVALSHA") {
				return upstashtest.NotJSON(upstashtest.AfterExec)
			}
			return upstashtest.Fault{}
		})
		if command == "replace" {
			continue // it finds out by the birth number
		}
		sh.want(exitUnknown, "; the filter is as it was, or complete: upbloom info key shows", "b\n", command, "key")
	}
}
