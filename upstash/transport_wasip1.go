package upstash

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/internal/door"
)

// noTransport is for platforms without sockets. Go's net package on wasip1 is a
// fake inside the process. Its dial errors look like passing faults, so the
// client does not try it.
type noTransport struct{}

func newDefaultTransport(endpoint, int) Transport { return noTransport{} }

func (noTransport) RoundTrip(context.Context, *Request, *Response) error {
	return NotSent(ErrNoTransport)
}

// withTimeout is context.WithTimeout, except on js.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, door.ErrLimit)
}
