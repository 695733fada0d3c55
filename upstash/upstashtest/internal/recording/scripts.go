package recording

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"regexp"
)

// A client sends the text of a script until its first answer has come, and then
// the SHA-1. Which of several calls at once send the text depends on the
// machine. So the two are the same request.

// byText matches a command with the text of a script. In a string both quotes
// would be escaped.
var byText = regexp.MustCompile(`\["EVAL(_RO)?",("(?:[^"\\]|\\.)*")`)

// bySum returns a body with the SHA-1 in place of the text of each script.
func bySum(body []byte) []byte {
	return byText.ReplaceAllFunc(body, func(command []byte) []byte {
		parts := byText.FindSubmatch(command)
		var text string
		if json.Unmarshal(parts[2], &text) != nil {
			return command
		}
		sum := sha1.Sum([]byte(text))
		return []byte(`["EVALSHA` + string(parts[1]) + `","` + hex.EncodeToString(sum[:]) + `"`)
	})
}

// hasSums reports whether a body has scripts by their SHA-1.
func hasSums(body []byte) bool { return bytes.Contains(body, []byte(`["EVALSHA`)) }

// commandsOf parses two bodies, whose scripts are both by text or both by SHA-1.
func commandsOf(want, got recordedRequest) (w, g [][]string) {
	a, b := want.bytes(), got.bytes()
	if hasSums(a) != hasSums(b) {
		a, b = bySum(a), bySum(b)
	}
	return parseCommands(a), parseCommands(b)
}
