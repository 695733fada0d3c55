package database

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	errCursor   = Failure("ERR invalid cursor")
	errRange    = Failure("ERR value is out of range")
	errNotFloat = Failure("ERR value is not a valid float")
	errMaxLen   = Failure("ERR The MAXLEN argument must be >= 0.")
	errGlob     = Failure("ERR the database in memory cannot match this pattern")
)

const (
	// mostDrawn is how many elements with repetitions may be drawn at once.
	mostDrawn = 1 << 18
	// mostPlaces is how many positions LPOS may find: the engine allocates them in
	// advance.
	mostPlaces = 1 << 20
)

// engineBreaks returns the refusal of arguments over which the engine would
// panic or never end, or "".
func engineBreaks(args []string) Failure {
	switch strings.ToUpper(args[0]) {
	case "KEYS":
		return globBreaks(args[1])
	case "SCAN":
		return matchBreaks(args[2:])
	case "HSCAN", "SSCAN", "ZSCAN":
		return scanBreaks(args)
	case "HRANDFIELD", "SRANDMEMBER", "ZRANDMEMBER":
		if n, _ := at(args, 2); n < -mostDrawn {
			return errRange
		}
	case "LPOS":
		if countAbove(args[3:], mostPlaces) {
			return errRange
		}
	case "HINCRBYFLOAT":
		return floatBreaks(args[3])
	case "XADD":
		if len(args) == 5 && strings.EqualFold(args[2], "NOMKSTREAM") { // a field needs six
			return errSyntax
		}
	case "XTRIM":
		n, _ := at(args, 3)
		if args[3] == "=" || args[3] == "~" {
			n, _ = at(args, 4)
		}
		if n < 0 && strings.EqualFold(args[2], "MAXLEN") {
			return errMaxLen
		}
	}
	return ""
}

// scanBreaks refuses a cursor below zero, as Redis does, and one or a COUNT
// whose sum would overflow.
func scanBreaks(args []string) Failure {
	if n, ok := parseInt(args[2]); !ok || n < 0 || n > math.MaxInt32/2 {
		return errCursor
	}
	if countAbove(args[3:], math.MaxInt32/2) {
		return errRange
	}
	return matchBreaks(args[3:])
}

// countAbove reports whether the option COUNT has a number above most.
func countAbove(options []string, most int64) bool {
	for i := range len(options) - 1 {
		n, _ := parseInt(options[i+1])
		if n > most && strings.EqualFold(options[i], "COUNT") {
			return true
		}
	}
	return false
}

// matchBreaks refuses the pattern of MATCH as globBreaks does.
func matchBreaks(options []string) Failure {
	for i := 0; i < len(options)-1; i++ {
		if strings.EqualFold(options[i], "MATCH") {
			if f := globBreaks(options[i+1]); f != "" {
				return f
			}
		}
	}
	return ""
}

// globBreaks refuses a pattern that the engine turns into no valid regular
// expression, such as one with the class [z-a], or one that is not UTF-8.
func globBreaks(glob string) Failure {
	if !utf8.ValidString(glob) {
		return errGlob
	}
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
			if strings.HasPrefix(glob[i:], `\E`) { // it would end the engine's quoting
				return errGlob
			}
		case '[':
			start := i
			for i++; i < len(glob) && glob[i] != ']'; i++ {
				if glob[i] == '\\' {
					i++
				}
			}
			if class := glob[start+1 : min(i, len(glob))]; class != "" {
				if _, err := regexp.Compile("[" + class + "]"); err != nil {
					return errGlob
				}
			}
		}
	}
	return ""
}

// floatBreaks refuses a number above 1.8e308. The engine would write all its
// digits.
func floatBreaks(text string) Failure {
	if f, _ := strconv.ParseFloat(text, 64); math.IsInf(f, 0) {
		return errNotFloat
	}
	return ""
}
