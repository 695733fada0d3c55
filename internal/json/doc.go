// Package json is the one seam to a JSON library. Natively that is
// goccy/go-json. On wasm it is package scan, which makes a module 0.6 MB
// smaller than encoding/json would, and 4.8 MB smaller than go-json would. The
// hot paths (commands out, arrays of integers in) do not come through here.
//
// Every function is strict. The input is one value of the type that the
// function reads, with nothing around it but white space; else the function
// returns an error.
package json
