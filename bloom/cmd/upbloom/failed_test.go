package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
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

// A full Redis refuses a BITFIELD, also one that only reads. It can be freed.
func TestFullRedis(t *testing.T) {
	addr := testenv.Redis(t)
	sh := newShell(t, upstashtest.WithRedis(addr))
	sh.want(0, "", "", "add", "--items", "9", "plain", "a")
	sh.want(0, "", "", "create", "--items", "1k", "--shards", "3", "key")
	if _, err := sh.s.Exec("DEL", "key:0"); err != nil {
		t.Fatal(err)
	}
	configure(t, addr, "maxmemory 1")
	sh.want(exitDatabase, "a full database refuses: free memory, e.g. with upbloom rm, and ask again", "", "check", "plain", "a")
	for _, args := range [][]string{{"info", "key"}, {"check", "key", "a"}, {"add", "key", "a"}} {
		sh.want(exitFilter, "shard 0 is missing: a create or an rm was interrupted", "", args...)
	}
	sh.want(0, "removed from "+sh.host()+"\n", "", "rm", "--rest", "--yes", "key")
	sh.want(0, "removed from "+sh.host()+"\n", "", "rm", "--yes", "plain")
}

// A batch of which some was written does not end with 2, whatever became of the
// rest.
func TestStatusOfWhatWasWritten(t *testing.T) {
	refused := fmt.Errorf("part 2: %w", upstash.ErrArgument)
	if status := exitStatus(refused); status != exitUsage {
		t.Errorf("refused: status %d, want %d", status, exitUsage)
	}
	if status := exitStatus(partly{refused}); status != exitUnknown {
		t.Errorf("refused after a part was written: status %d, want %d", status, exitUnknown)
	}
}
