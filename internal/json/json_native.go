//go:build !wasm

package json

import gojson "github.com/goccy/go-json"

// RawMessage is a JSON value that was not decoded.
type RawMessage = gojson.RawMessage

// Unmarshal decodes one JSON document into v.
func Unmarshal(data []byte, v any) error { return gojson.Unmarshal(data, v) }

// Marshal encodes v.
func Marshal(v any) ([]byte, error) { return gojson.Marshal(v) }
