package database

import "strings"

const (
	errFieldType = Failure("ERR Invalid bitfield type. Use something like i16 u8. " +
		"Note that u64 is not supported but i64 is.")
	errBitOffset    = Failure("ERR bit offset is not an integer or out of range")
	errOverflowType = Failure("ERR Invalid OVERFLOW type specified")
	errFieldRO      = Failure("ERR BITFIELD_RO only supports the GET subcommand")
)

type (
	fieldVerb uint8
	overflow  uint8
)

const (
	fieldGet fieldVerb = iota
	fieldSet
	fieldIncrBy
)

const (
	wrap overflow = iota
	sat
	fail
)

// fieldOp is one operation of a BITFIELD.
type fieldOp struct {
	verb     fieldVerb
	overflow overflow
	signed   bool
	bits     uint8 // 1 to 63, or to 64 if signed
	offset   uint64
	value    int64 // of SET and INCRBY
}

// fieldProgram is a parsed BITFIELD. If an operation is malformed, Redis runs
// none of them.
type fieldProgram struct {
	ops    []fieldOp
	writes bool
	// size is the length in bytes the string must have for the writes.
	size uint64
}

// parseBitfield reads the arguments after the key. It checks them in the same
// order as Redis.
func parseBitfield(args []string) (p fieldProgram, f Failure) {
	p.ops = make([]fieldOp, 0, len(args)/3)
	f = eachField(args, func(op fieldOp) {
		p.ops = append(p.ops, op)
		p.writes = p.writes || op.verb != fieldGet
		p.size = max(p.size, op.size())
	})
	return p, f
}

// eachField calls each for every operation. each may be called before an error
// is found.
func eachField(args []string, each func(fieldOp)) (f Failure) {
	mode := wrap
	for len(args) > 0 {
		verb, need := fieldWord(args[0])
		if len(args) <= need {
			return errSyntax
		}
		if need == 1 {
			if mode, f = overflowMode(args[1]); f != "" {
				return f
			}
			args = args[2:]
			continue
		}
		op := fieldOp{verb: verb, overflow: mode}
		if f = op.parse(args[1:]); f != "" {
			return f
		}
		each(op)
		args = args[1+need:]
	}
	return ""
}

// size returns the length in bytes a string must have for a write.
func (op fieldOp) size() uint64 {
	if op.verb == fieldGet {
		return 0
	}
	return (op.offset+uint64(op.bits)-1)>>3 + 1
}

// fieldWord returns how many arguments a subcommand needs: 1 for OVERFLOW. For
// an unknown word it returns so many that the command fails.
func fieldWord(s string) (verb fieldVerb, need int) {
	switch keyword(s) {
	case "GET":
		return fieldGet, 2
	case "SET":
		return fieldSet, 3
	case "INCRBY":
		return fieldIncrBy, 3
	case "OVERFLOW":
		return 0, 1
	}
	return 0, int(^uint(0) >> 1)
}

func overflowMode(s string) (overflow, Failure) {
	switch keyword(s) {
	case "WRAP":
		return wrap, ""
	case "SAT":
		return sat, ""
	case "FAIL":
		return fail, ""
	}
	return 0, errOverflowType
}

// parse reads type, offset and, but for GET, value.
func (op *fieldOp) parse(args []string) Failure {
	name := cString(args[0])
	if name == "" || name[0] != 'i' && name[0] != 'u' {
		return errFieldType
	}
	op.signed = name[0] == 'i'
	bits, ok := parseInt(name[1:])
	if !ok || bits < 1 || bits > 64 || bits > 63 && !op.signed {
		return errFieldType
	}
	op.bits = uint8(bits)
	if op.offset, ok = bitOffset(args[1], bits); !ok {
		return errBitOffset
	}
	if op.verb == fieldGet {
		return ""
	}
	if op.value, ok = parseInt(args[2]); !ok {
		return errNotInt
	}
	return ""
}

// bitOffset reads an offset in bits. If width is above 0, the offset may be
// "#n", which means n fields of that width.
func bitOffset(s string, width int64) (uint64, bool) {
	fields := width > 0 && strings.HasPrefix(s, "#")
	if fields {
		s = s[1:]
	}
	n, ok := parseInt(s)
	if fields {
		n *= width // may wrap around, as it does in Redis
	}
	if !ok || n < 0 || n>>3 >= maxString {
		return 0, false
	}
	return uint64(n), true
}
