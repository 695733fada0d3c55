//go:build wasm

package json

import "github.com/upbloom/upbloom/internal/json/scan"

// RawMessage is a JSON value that was not decoded.
type RawMessage = []byte

// Object returns the members of an object.
func Object(data []byte) (map[string]RawMessage, error) { return scan.Object(data) }

// Array returns the elements of an array.
func Array(data []byte) ([]RawMessage, error) { return scan.Array(data) }

// String returns the text of a string.
func String(data []byte) (string, error) { return scan.String(data) }
