//go:build !linux && !wasm

package conn

func (s *socket) limitSilence(bool) {}
