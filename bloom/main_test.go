//go:build !wasm

package bloom_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/bloom"
)

// No test may leave a goroutine behind: a Filter starts some for a batch, and
// waits for them. On js the runtime itself has one.
//
// A settling may take longer than usual, so that a slow machine breaks no test.
func TestMain(m *testing.M) {
	bloom.SetSettleTimeout(time.Minute)
	goleak.VerifyTestMain(m)
}
