//go:build !js

package upstash

import (
	"context"
	"time"
)

// withTimeout is context.WithTimeout, except on js.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
