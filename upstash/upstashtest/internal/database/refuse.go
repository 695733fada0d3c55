package database

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	errCursor   = Failure("ERR invalid cursor")
	errRange    = Failure("ERR value is out of range")
	errNotFloat = Failure("ERR value is not a valid float")
	errFields   = Failure("ERR The `numfields` parameter must match the number of arguments")
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
		if n, ok := at(args, 2); ok && n < -mostDrawn {
			return errRange
		}
	case "LPOS":
		if countAbove(args[3:], mostPlaces) {
			return errRange
		}
	case "HINCRBYFLOAT":
		return floatBreaks(args[3])
	case "HEXPIRE":
		return fieldsBreak(args[3:])
	case "XADD":
		if strings.EqualFold(args[2], "NOMKSTREAM") {
			return trimBreaks(args[3:])
		}
	case "XTRIM":
		return trimBreaks(args[2:])
	case "XCLAIM":
		switch strings.ToUpper(args[len(args)-1]) {
		case "IDLE", "TIME", "RETRYCOUNT":
			return errSyntax
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
		n, ok := parseInt(options[i+1])
		if ok && n > most && strings.EqualFold(options[i], "COUNT") {
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

// trimBreaks refuses a length below zero, as Redis does, and a missing one.
func trimBreaks(args []string) Failure {
	if len(args) < 2 || !strings.EqualFold(args[0], "MAXLEN") && !strings.EqualFold(args[0], "MINID") {
		return ""
	}
	i := 1
	if args[1] == "=" || args[1] == "~" {
		i = 2
	}
	if i == len(args) {
		return errSyntax
	}
	if n, ok := at(args, i); ok && n < 0 && strings.EqualFold(args[0], "MAXLEN") {
		return errMaxLen
	}
	return ""
}

// fieldsBreak refuses a number of fields other than that of the arguments after
// it, and a missing one.
func fieldsBreak(args []string) Failure {
	i := slices.IndexFunc(args, func(a string) bool { return strings.EqualFold(a, "FIELDS") })
	n, ok := at(args, i+1)
	if i >= 0 && (i+1 == len(args) || ok && n != int64(len(args)-i-2)) {
		return errFields
	}
	return ""
}

// floatBreaks refuses a number above 1.8e308. The engine would write all its
// digits.
func floatBreaks(text string) Failure {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return errNotFloat
	}
	return ""
}
