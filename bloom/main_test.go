package bloom_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No test may leave a goroutine behind: a Filter starts some for a batch, and waits for them.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
