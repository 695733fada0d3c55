// Package api lists what the public packages export, and finds who uses each
// name. Its test holds both against files that are kept in the repository:
//
//	go test ./internal/testkit/api -update
//
// writes api.txt, in which each line is a name with its type, and .github/API.md,
// which says of each name who calls it outside of its package and which Example
// shows it. So a change to the API is a change to api.txt in the same commit.
package api

// module is this module's path.
const module = "github.com/upbloom/upbloom/"

// Public are the packages that users import.
var Public = []string{
	module + "upstash", module + "upstash/upstashtest", module + "upstash/httptransport", module + "bloom",
}
