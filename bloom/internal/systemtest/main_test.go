//go:build !wasm

package systemtest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
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
	goleak.VerifyTestMain(m)
}
