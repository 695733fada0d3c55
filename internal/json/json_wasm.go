//go:build wasm

package json

import "github.com/upbloom/upbloom/internal/json/scan"

// String returns the text of a string.
func String(data []byte) (string, error) { return scan.String(data) }
