//go:build !wasm

package systemtest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestMain serves calls in place of tests in the other processes of a history.
// No test may leave a goroutine behind.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "the other process:", err)
			os.Exit(1)
		}
		return
	}
	testenv.CollectLess()
	goleak.VerifyTestMain(suite{m})
}

// A suite fails if the text of an error does not begin with the name of its
// package, or has one within.
type suite struct{ *testing.M }

func (s suite) Run() int {
	return testenv.ShareRedis(func() int { return bloomtest.Texts.Run(s.M) })
}
