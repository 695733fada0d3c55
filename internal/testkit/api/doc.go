// Package api lists the exported names of the public packages and finds the
// users of each. Its tests compare the list with .github/API.md, which has for
// each name its type, a file outside of its package that uses it, and an
// Example. A change of the API is therefore a change of that page in the same
// commit:
//
//	go test -tags api ./internal/testkit/api -update
//
// Other tests check the links, steps, tests and variables named by comments and
// pages. One checks the types of everything for Windows and macOS, and one that
// files do not use each other in large circles.
//
// The tag keeps go/types, which takes long to compile, out of go test ./...
// Continuous integration runs the test.
package api

// module is this module's path.
const module = "github.com/upbloom/upbloom/"

// Public are the packages for users.
var Public = []string{
	module + "upstash", module + "upstash/upstashtest", module + "upstash/httptransport", module + "bloom",
}
