package bloom

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// String draws the state for a person, in a few lines without the key:
//
//	47,926 bits (5.9 KiB), k=7, xxh3
//	fill             [##########..........] 49.8%
//	items            about 4,987 of 5,000
//	false positives  1 in 102 now, 1 in 100 at capacity
//	stored           6,007 bytes, no expiry
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n", s.Geometry)
	fmt.Fprintf(&b, "fill             %s %.1f%%\n", bar(s.Fill), 100*s.Fill)
	about := "about"
	if s.Saturated {
		about = "saturated: more than"
	}
	fmt.Fprintf(&b, "items            %s %s of %s\n", about, groupDigits(s.Items), groupDigits(s.Capacity))
	fmt.Fprintf(&b, "false positives  %s now, %s at capacity\n", oneIn(s.LiveFPRate), oneIn(s.FPRate))
	fmt.Fprintf(&b, "stored           %s bytes, %s", groupDigits(s.Bytes), expiry(s.TTL))
	return b.String()
}

// bar draws a share from 0 to 1. Only a full filter has a full bar, and only
// an empty one an empty bar.
func bar(share float64) string {
	const width = 20
	n := int(math.Round(share * width))
	if share > 0 {
		n = max(n, 1)
	}
	if share < 1 {
		n = min(n, width-1)
	}
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}

// oneIn says a rate as people compare them.
func oneIn(rate float64) string {
	switch {
	case rate <= 0:
		return "none"
	case rate >= 1:
		return "every answer"
	case rate > 0.1:
		return fmt.Sprintf("1 in %.1f", 1/rate)
	case rate < 1e-15:
		return "fewer than 1 in 10^15"
	}
	return "1 in " + groupDigits(uint64(math.Round(1/rate)))
}

func expiry(ttl time.Duration) string {
	if ttl <= 0 {
		return "no expiry"
	}
	unit := time.Second
	if ttl < time.Minute {
		unit = time.Millisecond
	}
	return "expires in " + ttl.Round(unit).String()
}
