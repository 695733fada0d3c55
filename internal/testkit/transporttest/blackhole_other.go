//go:build !unix

package transporttest

// shrinkQueue is not reached: blackHole needs Linux.
func shrinkQueue(uintptr) error { return nil }
