package httptransport

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
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

// TestHandshakesEndWithTheDial: what follows the dial has its deadline.
func TestHandshakesEndWithTheDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, silent := net.Pipe()
		defer silent.Close()
		ctx := dialctx.With(t.Context(), func(context.Context, string, string) (net.Conn, error) { return here, nil })
		c, err := dialInTime(ctx, "tcp", "db.example.com:443")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { _ = c.Close() })
		began := time.Now()
		_, _ = c.Read(make([]byte, 1))
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("a server that is silent keeps the connection for %v, want 10 s", took)
		}
	})
}
