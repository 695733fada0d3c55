package bloom

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/upbloom/upbloom/internal/human"
)

// String draws the state for a person, in a few lines without the key:
//
//	filter           47,926 bits (5.9 KiB), k=7, xxh3
//	fill             [##########..........] 49.8%
//	items            about 4,987 of 5,000
//	false positives  1 in 102 now, 1 in 100 at capacity
//	stored           6,007 bytes, no expiry
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "filter           %v\n", s.Geometry)
	fmt.Fprintf(&b, "fill             %s %.1f%%\n", bar(s.Fill), 100*s.Fill)
	about := "about"
	if s.Saturated {
		about = "saturated: more than"
	}
	fmt.Fprintf(&b, "items            %s %s of %s\n", about, human.Count(s.Items), human.Count(s.Capacity))
	fmt.Fprintf(&b, "false positives  %s now, %s at capacity\n",
		human.OneIn(s.LiveFPRate), human.OneIn(s.FPRate))
	fmt.Fprintf(&b, "stored           %s bytes, %s", human.Count(s.Bytes), expiry(s.TTL))
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
