// Package json is the one seam to a JSON library: goccy/go-json natively,
// encoding/json on wasm, where it makes a module less than half as large.
// What is hot (commands out, arrays of integers in) does not come through here.
package json
