package bloom

import "time"

// SetClock has a Mirror see another time than time.Now.
func (m *Mirror) SetClock(now func() time.Time) { m.now = now }

// SetMaxPartItems changes how many items a request carries at most, and returns
// what it was.
func SetMaxPartItems(n int) (old int) {
	old, maxPartItems = maxPartItems, n
	return old
}
