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
	defaults.callObserver, defaults.observer = checkText, checkText
	goleak.VerifyTestMain(suite{m})
}

type suite struct{ *testing.M }

func (s suite) Run() int { return texts.Run(s.M) }
