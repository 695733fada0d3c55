package recording

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json"
)

// difference shows how got differs from want: in the request line, in the first
// argument that differs, or in both.
func difference(want, got recordedRequest) string {
	var parts []string
	if w, g := want.line(), got.line(); w != g {
		parts = append(parts, "want: "+w+"\ngot:  "+g)
	}
	w, g := commandsOf(want, got)
	if d := firstDifference(w, g); d.found {
		parts = append(parts, d.show(w, g))
	}
	if len(parts) == 0 { // one is a command, the other a list of that command
		w, g := string(want.bytes()), string(got.bytes())
		n := commonRunes(w, g)
		parts = append(parts, "want: "+clip(w, n)+"\ngot:  "+clip(g, n))
	}
	return strings.Join(parts, "\n")
}

// commandsOf parses two bodies, whose scripts are both by text or both by SHA-1.
func commandsOf(want, got recordedRequest) (w, g [][]string) {
	a, b := want.bytes(), got.bytes()
	if want.hasSums() != got.hasSums() {
		a, b = bySum(a), bySum(b)
	}
	return parseCommands(a), parseCommands(b)
}

// parseCommands splits a body into commands, and those into arguments. Each
// argument is the JSON as it was sent. A body of another form counts as one
// command with one argument.
func parseCommands(body []byte) (commands [][]string) {
	list := elements(body)
	if len(list) == 0 || list[0] == "" || list[0][0] != '[' {
		return [][]string{list}
	}
	for _, command := range list {
		commands = append(commands, elements([]byte(command)))
	}
	return commands
}

// elements returns the elements of an array. Anything else is its own element.
func elements(body []byte) (list []string) {
	var raw []json.RawMessage
	if json.Unmarshal(body, &raw) != nil {
		return []string{string(body)}
	}
	list = make([]string, len(raw)) // of an empty array it is empty, and not nil
	for i, element := range raw {
		list[i] = string(element)
	}
	return list
}

// place is the first point at which two bodies differ.
type place struct {
	found             bool
	command, argument int
	before            int // equal arguments before it, over all commands
}

func firstDifference(want, got [][]string) place {
	var p place
	for p.command = range max(len(want), len(got)) {
		w, g := at(want, p.command), at(got, p.command)
		for p.argument = range max(len(w), len(g)) {
			if p.argument >= len(w) || p.argument >= len(g) || w[p.argument] != g[p.argument] {
				p.found = true
				return p
			}
			p.before++
		}
	}
	p.found, p.argument = len(want) != len(got), 0 // an empty command at the end
	return p
}

func at(commands [][]string, i int) []string {
	if i < len(commands) {
		return commands[i]
	}
	return nil
}

// How many arguments to show around one that differs.
const (
	argsBefore = 3
	argsAfter  = 2
)

// show prints both sides with a mark under the first argument that differs.
func (p place) show(want, got [][]string) string {
	w, g := at(want, p.command), at(got, p.command)
	where := "the command's name"
	if w == nil || g == nil {
		where = "the whole command"
	} else if p.argument > 0 {
		where = fmt.Sprintf("%s, argument %d", strings.Trim(w[0], `"`), p.argument)
		if operation := operationAt(g, p.argument); operation != "" {
			where += " (" + operation + ")"
		}
	}
	if len(want) > 1 || len(got) > 1 {
		where = fmt.Sprintf("command %d: %s", p.command+1, where)
	}
	wanted, mark := p.around(w, g)
	made, _ := p.around(g, w)
	return where + "\nwant: " + wanted + "\ngot:  " + made + "\n" +
		strings.Repeat(" ", len("want: ")+mark) + "^"
}

// operationAt returns the operation of a BITFIELD with an argument, and its
// number: an item of a filter has several, one after another.
func operationAt(args []string, argument int) string {
	if !strings.HasPrefix(args[0], `"BITFIELD`) {
		return ""
	}
	n := 0 // operations so far; OVERFLOW is none
	for i := 2; i < len(args); {
		width := 4 // of SET and INCRBY
		switch args[i] {
		case `"OVERFLOW"`:
			width = 2
		case `"GET"`:
			width = 3
		}
		if width > 2 {
			n++
		}
		end := min(i+width, len(args))
		if argument < end {
			return fmt.Sprintf("operation %d, %s", n, strings.Join(args[i:end], ","))
		}
		i = end
	}
	return ""
}

// around shows the arguments at the place and around it, and returns how many
// runes stand before it. other are the arguments of the other side.
func (p place) around(args, other []string) (shown string, mark int) {
	if args != nil && len(args) == 0 {
		return "(empty)", 0
	}
	from := max(0, p.argument-argsBefore)
	if from > 0 {
		shown = "…,"
	}
	for i := from; i < p.argument; i++ { // the same on both sides
		shown += clip(args[i], 0) + ","
	}
	mark = utf8.RuneCountInString(shown)
	if p.argument >= len(args) {
		return shown + "(nothing)", mark
	}
	differs, same := args[p.argument], 0
	if p.argument < len(other) {
		same = commonRunes(differs, other[p.argument])
	}
	return shown + clip(differs, same) + following(args[p.argument+1:], argsAfter), mark
}

// following shows up to limit arguments, each after a comma.
func following(args []string, limit int) string {
	var b strings.Builder
	for _, a := range args[:min(limit, len(args))] {
		b.WriteString("," + clip(a, 0))
	}
	if len(args) > limit {
		b.WriteString(",…")
	}
	return b.String()
}

func commonRunes(a, b string) int {
	x, y := []rune(a), []rune(b)
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

// How many runes to show of a long argument, and how many of them before the
// first difference.
const (
	clipRunes  = 60
	clipBefore = 20
)

// clip shortens a long argument and keeps the rune at index i.
func clip(arg string, i int) string {
	runes := []rune(arg)
	if len(runes) <= clipRunes {
		return arg
	}
	from := max(0, i-clipBefore)
	to := min(from+clipRunes, len(runes))
	shown := string(runes[from:to])
	if from > 0 {
		shown = "…" + shown
	}
	if to < len(runes) {
		shown += "…"
	}
	return shown
}
