package json

import (
	"errors"
	"fmt"
)

// go-json would make a module twice as large.

// Envelope returns the raw values of "result" and "error" in an object. One that
// is missing is nil, and one that occurs twice is [ErrSyntax].
func Envelope(data []byte) (result, message []byte, err error) { return BoundedEnvelope(data) }

// String returns the text of a string. A byte that is not UTF-8, and half of a
// surrogate pair, become U+FFFD.
func String(data []byte) (string, error) { return boundedString(data) }

// Unmarshal is not available here.
func Unmarshal([]byte, any) error { return errNoUnmarshal }

var errNoUnmarshal = fmt.Errorf("not on wasm, which it would make twice as large: pass the Text of the reply"+
	" to encoding/json: %w", errors.ErrUnsupported)
