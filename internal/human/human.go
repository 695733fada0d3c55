// Package human formats numbers for people.
package human

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count formats n with commas between the thousands: 4,294,967,295.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Counted formats n things by their name: 1 item, 2,000 items.
func Counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "s") {
		what += "e"
	}
	return Count(n) + " " + what + "s"
}

// Bytes formats n bytes with one decimal, in the largest binary unit of which
// there is at least one: 11.7 KiB.
func Bytes(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	size, unit := float64(n)/1024, 0
	for ; size >= 1023.95; unit++ { // or it would round to 1024.0
		size /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTPE"[unit])
}

// Span formats a time, at least 0, in a few characters: 1.5s, 24h, 30d, 2d5h.
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Millisecond).String()
	case d.Round(time.Second) < time.Hour:
		text := d.Round(time.Second).String()
		if minutes, ok := strings.CutSuffix(text, "m0s"); ok {
			text = minutes + "m"
		}
		return text
	case d.Round(time.Hour) < 48*time.Hour:
		text := strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
		if hours, ok := strings.CutSuffix(text, "h0m"); ok {
			text = hours + "h"
		}
		return text
	}
	hours := int(d.Round(time.Hour).Hours())
	if hours%24 == 0 {
		return fmt.Sprintf("%dd", hours/24)
	}
	return fmt.Sprintf("%dd%dh", hours/24, hours%24)
}

// Exact formats a time, at least 0, without rounding it: 1.5s, 24h5s, 3d15s.
func Exact(d time.Duration) string {
	var b strings.Builder
	if days := d / (24 * time.Hour); days >= 2 {
		fmt.Fprintf(&b, "%dd", days)
		d %= 24 * time.Hour
	}
	if hours := d / time.Hour; hours > 0 {
		fmt.Fprintf(&b, "%dh", hours)
	}
	if minutes := d % time.Hour / time.Minute; minutes > 0 {
		fmt.Fprintf(&b, "%dm", minutes)
	}
	if d %= time.Minute; d > 0 || b.Len() == 0 {
		b.WriteString(d.String())
	}
	return b.String()
}

// OneIn formats a rate, from 0 to 1, as 1 in 101. A rate below one in a billion
// is only called that.
func OneIn(rate float64) string {
	switch {
	case rate <= 0:
		return "none"
	case rate > 0.95: // not 1 in 1.0
		return fmt.Sprintf("%.3g in 100", 100*rate)
	case rate > 0.1:
		return fmt.Sprintf("1 in %.1f", 1/rate)
	case rate < 1e-9:
		return "less than 1 in a billion"
	}
	return "1 in " + Count(uint64(1/rate+0.5))
}

// Unknown is what AtLeast says of a rate of which nothing is known.
const Unknown = "not known"

// AtLeast formats a rate of which only a lower bound is known. One below one in a
// billion says nothing.
func AtLeast(rate float64) string {
	switch {
	case rate <= 0:
		return "none"
	case rate < 1e-9:
		return Unknown
	}
	return "at least " + OneIn(rate)
}

// List writes the first of some numbers, and how many more there are: "0, 1 and
// 7 more".
func List(numbers []int, most int) string {
	text := fmt.Sprint(numbers[:min(most, len(numbers))])
	text = strings.ReplaceAll(strings.Trim(text, "[]"), " ", ", ")
	if more := len(numbers) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
