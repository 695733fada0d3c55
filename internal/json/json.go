// Package json is the one seam to a JSON library. Texts are read by
// goccy/go-json. On wasm they are read by package scan, which makes a module 0.6
// MB smaller than encoding/json would, and 4.8 MB smaller than go-json would.
// Objects and arrays are read by scan everywhere, because it copies nothing and
// keeps no list. The hot paths (commands out, arrays of integers in) do not come
// through here.
//
// Every function is strict. The input is one value of the type that the
// function reads, with nothing around it but white space; else the function
// returns an error.
package json

import "github.com/upbloom/upbloom/internal/json/scan"

// Object calls each for every member of an object. Of two members of one name
// the last counts. raw shares the memory of data. each may have been called
// before an error is found.
func Object(data []byte, each func(name string, raw []byte)) error { return scan.Object(data, each) }

// Array calls each for every element of an array, which is data[from:to]. each
// may have been called before an error is found.
func Array(data []byte, each func(from, to int)) error { return scan.Array(data, each) }
