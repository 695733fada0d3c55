//go:build !wasm

package bloom_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// No test may leave a goroutine behind. A Filter starts some for a batch, and
// waits for them. On js the runtime itself has one.
func TestMain(m *testing.M) {
	testenv.ClearProxies()
	testenv.CollectLess()
	goleak.VerifyTestMain(suite{m})
}

// A suite fails if the text of an error does not begin with the name of its
// package, or has one within.
type suite struct{ *testing.M }

func (s suite) Run() int {
	return testenv.ShareRedis(func() int { return bloomtest.Texts.Run(s.M) })
}
