package upstash

import (
	"context"
	"strconv"
)

// Unit says what the bounds of BitCountRange count.
type Unit uint8

const (
	Byte Unit = iota // bounds are byte indices
	Bit              // bounds are bit indices
)

// String is the word of the command: BYTE or BIT.
func (u Unit) String() string {
	if u == Bit {
		return "BIT"
	}
	return "BYTE"
}

// BitCount counts the set bits of the string at key, 0 where there is none.
// The server reads the whole string: about 1 ms for each megabyte.
func (c *Client) BitCount(ctx context.Context, key string) (int64, error) {
	return c.integer(ctx, Cmd("BITCOUNT", key))
}

// BitCountRange counts the set bits from start to end, both included; negative
// ones count from the end of the string, -1 being the last.
func (c *Client) BitCountRange(ctx context.Context, key string, start, end int64, unit Unit) (int64, error) {
	return c.integer(ctx, bitCountRange(key, start, end, unit))
}

func bitCountRange(key string, start, end int64, unit Unit) Command {
	if unit > Bit {
		return Command{name: "BITCOUNT", err: argumentError("BITCOUNT", "unit %d: use Byte or Bit", unit)}
	}
	args := []string{key, strconv.FormatInt(start, 10), strconv.FormatInt(end, 10)}
	if unit == Bit {
		args = append(args, "BIT") // BYTE is the default, and older servers lack the word
	}
	return Cmd("BITCOUNT", args...)
}
