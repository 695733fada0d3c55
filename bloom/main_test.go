//go:build !wasm

package bloom_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No test may leave a goroutine behind: a Filter starts some for a batch, and
// waits for them. On js the runtime itself has one.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
