package recording

import "strconv"

// Birth returns a birth number as package bloom draws it while a client records or
// replays.
func Birth() string { return strconv.FormatUint(firstOfBirth|draw()>>birthShift, 10) }
