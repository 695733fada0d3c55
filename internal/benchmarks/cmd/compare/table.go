package main

import (
	"fmt"
	"strings"
)

// table returns a contest as Markdown: how much each contestant did, the cost
// in the client's CPU, and how many times as fast ours, the first one, is.
func (c *contest) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n", c.name)
	fmt.Fprintln(&b, "| | items/s | client CPU a call, µs | upbloom against it |")
	fmt.Fprintln(&b, "|---|---|---|---|")
	ours := c.contestants[0]
	for _, one := range c.contestants {
		ratio := "1"
		if one != ours {
			ratio = ours.ratio(one).String()
		}
		cpu := "-"
		if m := one.cpu().median; m > 0 && !one.foreign {
			cpu = figure(m)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", one.name, figure(one.perSecond().median), cpu, ratio)
	}
	return b.String()
}

// String returns the median, and the quartiles in brackets.
func (s spread) String() string {
	return fmt.Sprintf("%s (%s to %s)", ratioText(s.median), ratioText(s.low), ratioText(s.high))
}

func ratioText(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// figure rounds to three digits.
func figure(x float64) string {
	if x < 100 {
		return fmt.Sprintf("%.3g", x)
	}
	digits := fmt.Sprintf("%.0f", x)
	if n := len(digits) - 3; n > 0 {
		unit := 1.0
		for range n {
			unit *= 10
		}
		digits = fmt.Sprintf("%.0f", float64(int64(x/unit+0.5))*unit)
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
