// Package pttl turns an answer of PTTL into a duration.
package pttl

import (
	"math"
	"time"
)

// Duration returns a PTTL, which is in milliseconds, as a duration. It returns
// 0 for a negative one, which stands for no TTL or no key. The longest is that
// of a time.Duration, 292 years: Redis holds longer ones.
func Duration(millis int64) time.Duration {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(millis, 0), longest)) * time.Millisecond
}
