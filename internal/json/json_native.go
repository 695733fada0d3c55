//go:build !wasm

package json

import (
	gojson "github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/json/scan"
)

// RawMessage is a JSON value that was not decoded.
type RawMessage = gojson.RawMessage

// Object returns the members of an object.
func Object(data []byte) (map[string]RawMessage, error) {
	var members map[string]RawMessage
	err := unmarshal(data, '{', &members)
	return members, err
}

// Array returns the elements of an array.
func Array(data []byte) ([]RawMessage, error) {
	var elements []RawMessage
	err := unmarshal(data, '[', &elements)
	return elements, err
}

// String returns the text of a string.
func String(data []byte) (string, error) {
	var text string
	err := unmarshal(data, '"', &text)
	return text, err
}

// unmarshal insists on the type: a null would decode into anything.
func unmarshal(data []byte, first byte, v any) error {
	for len(data) > 0 && (data[0] == ' ' || data[0] == '\t' || data[0] == '\r' || data[0] == '\n') {
		data = data[1:]
	}
	if len(data) == 0 || data[0] != first {
		return scan.ErrSyntax
	}
	return gojson.Unmarshal(data, v)
}
