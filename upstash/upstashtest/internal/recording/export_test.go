package recording

import "strconv"

// Replace writes a file beside another and then in its place.
var Replace = replace

// Birth returns a birth number as package bloom draws it while a client records or
// replays.
func Birth() string { return strconv.FormatUint(firstOfBirth|draw()>>birthShift, 10) }
