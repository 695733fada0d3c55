//go:build !wasm

package json

import (
	gojson "github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/json/scan"
)

// String returns the text of a string.
func String(data []byte) (string, error) {
	rest := data
	for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\n') {
		rest = rest[1:]
	}
	if len(rest) == 0 || rest[0] != '"' { // go-json decodes a null into a string
		return "", scan.ErrSyntax
	}
	var text string
	err := gojson.Unmarshal(rest, &text)
	return text, err
}
