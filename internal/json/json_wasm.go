//go:build wasm

package json

import stdjson "encoding/json"

// RawMessage is a JSON value that was not decoded.
type RawMessage = stdjson.RawMessage

// Unmarshal decodes one JSON document into v.
func Unmarshal(data []byte, v any) error { return stdjson.Unmarshal(data, v) }

// Marshal encodes v.
func Marshal(v any) ([]byte, error) { return stdjson.Marshal(v) }
