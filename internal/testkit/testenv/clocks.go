package testenv

import (
	"time"
	"unsafe"
)

// TwoClocks returns a time with both readings of its own, as time.Now has them: a
// process that was frozen, or whose clock was set, sees them run apart. In a bubble
// of testing/synctest time.Now has no monotonic one.
func TwoClocks(wall time.Time, monotonic time.Duration) (t time.Time) {
	const (
		both    = 1 << 63     // the flag of a time that has two
		since   = -2682288000 // 1885, from which it counts seconds
		seconds = uint(30)    // where they stand, behind the nanoseconds
	)
	*(*struct {
		wall uint64
		ext  int64 // the monotonic reading
		loc  *time.Location
	})(unsafe.Pointer(&t)) = struct {
		wall uint64
		ext  int64
		loc  *time.Location
	}{both | uint64(wall.Unix()-since)<<seconds | uint64(wall.Nanosecond()), int64(monotonic), time.Local}
	return t
}
