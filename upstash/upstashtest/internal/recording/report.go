package recording

import (
	"fmt"
	"strings"
)

// unexpected returns the text for a request that is not in the recording, or
// was made more often than recorded.
func (p *player) unexpected(q recordedRequest) string {
	times, shape := 0, q.shape(isDrawn)
	for _, x := range p.exchanges {
		if x.Request.shape(p.isSettled) == shape {
			times++
		}
	}
	if times > 0 && len(p.left[shape]) == 0 { // else the numbers differ
		return fmt.Sprintf("request %d was recorded %d %s and is made once more:\n%s",
			p.count, times, plural(times, "time", "times"), indent(summary(q)))
	}
	closest, ok := p.closest(q)
	if !ok {
		return fmt.Sprintf("request %d is not in the recording, whose %d requests were all made before:\n%s",
			p.count, len(p.exchanges), indent(summary(q)))
	}
	return fmt.Sprintf("request %d is not in the recording; the closest left is number %d:\n%s",
		p.count, closest+1, indent(difference(p.exchanges[closest].Request, p.like(q, p.exchanges[closest].Request))))
}

// closest returns the index of the unused recorded request with the longest run
// of leading arguments in common with q, and of several the first. ok is false
// if none is left.
func (p *player) closest(q recordedRequest) (index int, ok bool) {
	best := -1
	for i, x := range p.exchanges {
		if p.used[i] {
			continue
		}
		got := p.like(q, x.Request)
		score := firstDifference(commandsOf(x.Request, got)).before
		if x.Request.line() == got.line() {
			score++
		}
		if score > best {
			best, index = score, i
		}
	}
	return index, best >= 0
}

// missing returns the text for recorded requests that were never made, or "".
func (p *player) missing() string {
	n, first := 0, 0
	for i := len(p.used) - 1; i >= 0; i-- {
		if !p.used[i] {
			n, first = n+1, i
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d recorded requests %s never made, first number %d:\n%s", n, len(p.used),
		plural(n, "was", "were"), first+1, indent(summary(p.exchanges[first].Request)))
}

// summary returns a request on one line.
func summary(q recordedRequest) string {
	commands := parseCommands(q.bytes())
	if len(commands) == 0 || len(commands[0]) == 0 {
		return q.line()
	}
	const shown = 5
	first := commands[0]
	text := q.line() + ": " + clip(first[0], 0) + following(first[1:], shown)
	if more := len(commands) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more %s", more, plural(more, "command", "commands"))
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
