package bloom

import "time"

// SetClock has a Mirror see another time than time.Now.
func (m *Mirror) SetClock(now func() time.Time) { m.now = now }
