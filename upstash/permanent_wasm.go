//go:build wasm

package upstash

// isPermanent reports false, because the errors of a host do not say whether
// they would come again.
func isPermanent(error) bool { return false }
