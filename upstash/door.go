package upstash

import (
	"time"

	"github.com/upbloom/upbloom/internal/door"
)

func init() {
	door.MaxRequest = func(client any) int { return client.(*Client).maxRequest }
	door.Observed = func(client any) bool { return client.(*Client).observed() }
	door.KnownServerTime = func(client any) (time.Time, bool) { return client.(*Client).knownServerTime() }
	door.WithClock = func(now func() time.Time, elapsed func() time.Duration) any {
		return withClock(now, elapsed)
	}
	door.WithRetryBudget = func(tokens int) any { return withRetryBudget(tokens) }
}
