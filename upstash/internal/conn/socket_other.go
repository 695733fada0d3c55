//go:build !unix && !wasm && !windows

package conn

const canHold = false

// readOnce cannot read without waiting here. clean still sees what TLS has read
// already. For all else only the idle time protects.
func (s *socket) readOnce(uintptr) bool {
	s.err = errNothingYet
	return true
}
