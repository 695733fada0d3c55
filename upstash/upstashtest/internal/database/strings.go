package database

const (
	errOffset       = Failure("ERR offset is out of range")
	errStringTooBig = Failure("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
)

// setRange is SETRANGE. That of miniredis makes the key even if there is
// nothing to write, and its offsets are ints.
func (d *Memory) setRange(args []string) Reply {
	at, ok := parseInt(args[2])
	if !ok {
		return errNotInt
	}
	if at < 0 {
		return errOffset
	}
	old, _, f := d.get(args[1])
	if f != "" {
		return f
	}
	part := args[3]
	if part == "" {
		return int64(len(old))
	}
	// Written like this, the comparison cannot overflow.
	if at > maxString-int64(len(part)) {
		return errStringTooBig
	}
	data := grown(old, int(at)+len(part))
	copy(data[at:], part)
	d.setBytes(args[1], data)
	return int64(len(data))
}

// getString is GET. That of miniredis copies the string twice.
func (d *Memory) getString(args []string) Reply {
	value, found, f := d.get(args[1])
	switch {
	case f != "":
		return f
	case !found:
		return nil
	}
	return Bulk(value)
}

// getRange is GETRANGE and its old name SUBSTR. Both ends are inclusive, and
// negative ones count from the end. The result shares the string's memory.
func (d *Memory) getRange(args []string) Reply {
	start, ok1 := parseInt(args[2])
	end, ok2 := parseInt(args[3])
	if !ok1 || !ok2 {
		return errNotInt
	}
	data, _, f := d.get(args[1])
	if f != "" {
		return f
	}
	if start < 0 && end < 0 && start > end {
		return Bulk("")
	}
	from, to := clampBits(start, end, 8, len(data))
	return Bulk(data[from/8 : to/8])
}
