//go:build !js

package upstash

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// On js the runtime keeps a goroutine for the host's events, which looks like a
// leak.
func TestMain(m *testing.M) {
	testenv.ClearProxies()
	goleak.VerifyTestMain(m)
}
