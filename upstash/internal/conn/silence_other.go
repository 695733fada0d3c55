//go:build !linux && !wasm

package conn

import "time"

func (s *socket) limitSilence(time.Duration) {}
