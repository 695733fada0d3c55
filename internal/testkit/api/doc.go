// Package api lists the exported names of the public packages and finds the
// users of each. Its tests compare both lists with files in the repository.
// They also check the links, steps, tests and variables named by comments and
// pages. One checks the types of everything for Windows and macOS.
//
//	go test -tags api ./internal/testkit/api -update
//
// writes these files: api.txt, with a line for each name and its type, and
// .github/API.md, which has for each name a file outside of its package that
// uses it, and an Example. A change of the API is therefore a change of api.txt
// in the same commit.
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
