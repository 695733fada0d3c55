//go:build !unix && !wasm && !windows

package conn

import "time"

const canHold = false

// readOnce cannot read without waiting here. clean still sees what TLS has read
// already. For all else only the idle time protects.
func (s *socket) readOnce(uintptr) bool {
	s.err = errNothingYet
	return true
}

func (s *socket) limitSilence(time.Duration) {}
