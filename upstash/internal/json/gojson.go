//go:build !wasm

package json

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-json"
	"github.com/goccy/go-json/jsontext"
	jsonv2 "github.com/goccy/go-json/v2"
)

// Envelope returns the raw values of "result" and "error" in an object. One that
// is missing is nil, and one that occurs twice is [ErrSyntax].
func Envelope(data []byte) (result, message []byte, err error) {
	var e struct {
		Result jsontext.Value `json:"result"`
		Error  jsontext.Value `json:"error"`
	}
	data = bytes.Trim(data, " \t\r\n")
	if len(data) == 0 || data[0] != '{' {
		return nil, nil, ErrSyntax // go-json takes null
	}
	// Version 2 tells "result" from "Result". It refuses no more than version 1.
	err = jsonv2.Unmarshal(data, &e, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, nil, ErrSyntax
	}
	if len(data) != len(`{"result":}`)+len(e.Result) && len(data) != len(`{"error":}`)+len(e.Error) {
		return BoundedEnvelope(data) // go-json takes 22 times of the answer to look for a second one
	}
	return e.Result, e.Error, nil
}

// String returns the text of a string. A byte that is not UTF-8, and half of a
// surrogate pair, become U+FFFD.
func String(data []byte) (string, error) {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		return "", ErrSyntax
	}
	return *text, nil
}

// Unmarshal stores a value of any type in v, as encoding/json does. An error may
// leave a part of it there.
func Unmarshal(data []byte, v any) error {
	switch err := json.Unmarshal(data, v).(type) {
	case nil:
		return nil
	case *json.SyntaxError:
		return ErrSyntax
	case *json.InvalidUnmarshalError:
		return ErrTarget
	case *json.UnmarshalTypeError: // its own text may quote a number
		return fmt.Errorf("json: the value at byte %d is no %v", err.Offset, err.Type)
	}
	return errMethod
}
