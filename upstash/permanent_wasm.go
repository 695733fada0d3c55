//go:build wasm

package upstash

// isPermanent cannot look into the errors of a host.
func isPermanent(error) bool { return false }
