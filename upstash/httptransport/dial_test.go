package httptransport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndOfDial: net/http hides the deadline of an attempt from its dial, and the
// dial ends with it all the same, a grace later, or after 10 s.
func TestEndOfDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[time.Duration]time.Duration{
			0: 10 * time.Second, time.Second: time.Second + grace, time.Minute: 10 * time.Second,
		} {
			ctx, cancel := context.WithCancel(t.Context())
			if limit > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), limit)
			}
			now := time.Now()
			if got := endOfDial(context.WithoutCancel(withDialEnd(ctx)), now).Sub(now); got != want {
				t.Errorf("an attempt of %v: its dial ends after %v, want %v", limit, got, want)
			}
			cancel()
		}
	})
}
