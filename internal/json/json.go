// Package json is the only user of a JSON library. goccy/go-json reads texts.
// On wasm, package scan does: a module is then 0.6 MB smaller than with
// encoding/json, and 4.8 MB smaller than with go-json. Everywhere scan reads
// objects and arrays, because it copies nothing and keeps no list. The hot
// paths (commands out, arrays of integers in) do not use this package.
//
// Every function is strict. The input must be one value of the type that the
// function reads, surrounded only by white space. Otherwise the function
// returns an error.
package json

import "github.com/upbloom/upbloom/internal/json/scan"

// Object calls each for every member of an object. If a name occurs twice, the
// last member counts. raw shares the memory of data. each may have been called
// before an error is found.
func Object(data []byte, each func(name string, raw []byte)) error { return scan.Object(data, each) }

// Array calls each for every element of an array, which is data[from:to]. each
// may have been called before an error is found.
func Array(data []byte, each func(from, to int)) error { return scan.Array(data, each) }
