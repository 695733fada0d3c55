package upstash

import "strconv"

// NullInt64 is the answer to one operation of a BITFIELD: an integer or null.
// The zero value is null.
type NullInt64 struct {
	Int64 int64
	Valid bool // false for null: OVERFLOW FAIL kept the operation from running
}

// parseInt reads an integer at the beginning of b, in the form that JSON has
// for it, and returns what follows it. All of int64 is read exactly.
func parseInt(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	if len(b) > 0 && b[0] == '-' {
		i++
	}
	start := i
	var u uint64
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		if i-start >= 18 { // may pass int64: rare, so let strconv judge
			return parseLongInt(b)
		}
		u = u*10 + uint64(b[i]-'0')
		i++
	}
	if i == start || b[start] == '0' && i > start+1 {
		return 0, b, false
	}
	n = int64(u)
	if start == 1 {
		n = -n
	}
	return n, b[i:], true
}

func parseLongInt(b []byte) (int64, []byte, bool) {
	i := 1
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(string(b[:i]), 10, 64)
	leadingZero := b[0] == '0' || b[0] == '-' && b[1] == '0'
	return n, b[i:], err == nil && !leadingZero
}

// appendInts reads an array such as [1,null,-2]. White space is accepted,
// though no known server sends it.
func appendInts(dst []NullInt64, b []byte) ([]NullInt64, bool) {
	b = skipSpace(b)
	if len(b) == 0 || b[0] != '[' {
		return dst, false
	}
	b = skipSpace(b[1:])
	if len(b) > 0 && b[0] == ']' {
		return dst, len(skipSpace(b[1:])) == 0
	}
	for {
		switch {
		case len(b) >= 2 && b[0] <= '1' && b[0] >= '0' && (b[1] == ',' || b[1] == ']'):
			// A bit, the commonest element by far.
			dst = append(dst, NullInt64{int64(b[0] - '0'), true})
			b = b[1:]
		case len(b) >= 4 && string(b[:4]) == "null":
			dst = append(dst, NullInt64{})
			b = b[4:]
		default:
			n, rest, ok := parseInt(b)
			if !ok {
				return dst, false
			}
			dst = append(dst, NullInt64{n, true})
			b = rest
		}
		b = skipSpace(b)
		if len(b) == 0 {
			return dst, false
		}
		switch b[0] {
		case ',':
			b = skipSpace(b[1:])
		case ']':
			return dst, len(skipSpace(b[1:])) == 0
		default:
			return dst, false
		}
	}
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\r' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}
