//go:build !unix

package testenv

// arrived returns a function for RawConn.Read that is called again when there is
// something to read.
func arrived() func(fd uintptr) bool {
	waited := false
	return func(uintptr) bool {
		again := waited
		waited = true
		return again
	}
}
