package testenv

import (
	"time"
	"unsafe"
)

// TwoClocks returns a time with both readings of its own, as time.Now has them: a
// process that was frozen, or whose clock was set, sees them run apart.
func TwoClocks(wall time.Time, monotonic time.Duration) time.Time {
	t := time.Now()
	t = t.Add(wall.Sub(t.Round(0)))
	(*struct {
		wall uint64
		ext  int64 // the monotonic reading, of a time that has one
	})(unsafe.Pointer(&t)).ext = int64(monotonic)
	return t
}
