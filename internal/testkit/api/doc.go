//go:build api

// Package api lists what the public packages export, and finds who uses each
// name. Its tests compare both lists with files in the repository. They also
// check what comments and pages name: links, steps, tests and variables. One
// checks the types of everything for Windows and macOS.
//
//	go test -tags api ./internal/testkit/api -update
//
// writes these files: api.txt, with a line for each name and its type, and
// .github/API.md, which has for each name a caller outside of its package and
// an Example. A change of the API is therefore a change of api.txt in the same
// commit.
//
// The tag keeps go/types, which takes long to compile, out of go test ./...
// Continuous integration runs the test.
package api

// module is this module's path.
const module = "github.com/upbloom/upbloom/"

// Public are the packages that users import.
var Public = []string{
	module + "upstash", module + "upstash/upstashtest", module + "upstash/httptransport", module + "bloom",
}
