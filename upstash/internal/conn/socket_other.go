//go:build !unix && !wasm

package conn

// readOnce cannot look into a socket here. What TLS has read already is seen
// all the same; for the rest the idle time must do.
func (s *socket) readOnce(uintptr) bool {
	s.err = errNothingYet
	return true
}
