package database

import "errors"

// These are the patterns of Lua 5.1. Those of gopher-lua backtrack for as long
// as they like. A matcher here calls its stop function now and then.

// Errors of patterns, with the texts of Lua.
var (
	errPatternEnds    = errors.New("malformed pattern (ends with '%')")
	errPatternClass   = errors.New("malformed pattern (missing ']')")
	errPatternBalance = errors.New("unbalanced pattern")
	errPatternFront   = errors.New("missing '[' after '%f' in pattern")
	errPatternCapture = errors.New("invalid pattern capture")
	errPatternIndex   = errors.New("invalid capture index")
	errPatternMany    = errors.New("too many captures")
	errPatternComplex = errors.New("pattern too complex")
)

const (
	mostCaptures = 32
	// mostSteps is how many items of a pattern may backtrack. It bounds the
	// depth of a matcher's stack.
	mostSteps = 200
)

type itemKind byte

const (
	itemByte     itemKind = iota // one byte of a set, or several
	itemOpen                     // (
	itemPosition                 // ()
	itemClose                    // )
	itemBalance                  // %bxy
	itemFrontier                 // %f[set]
	itemBack                     // %1
	itemEnd                      // $ at the end
	itemBad                      // a mistake, which counts only if it is reached
)

// item is one part of a pattern.
type item struct {
	kind   itemKind
	repeat byte // of itemByte: *, +, -, ? or 0
	x, y   byte // of itemBalance; of itemBack, x is the capture
	set    byteSet
	err    error // of itemBad
}

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }
func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }

func (s *byteSet) addIf(in func(c byte) bool) {
	for c := range 256 {
		if in(byte(c)) {
			s.add(byte(c))
		}
	}
}

func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// classes are the classes %a, %d and so on. In upper case a letter stands for
// the bytes outside of its class.
var classes = map[byte]func(c byte) bool{
	'a': isAlpha,
	'c': func(c byte) bool { return c < ' ' || c == 0x7f },
	'd': isDigit,
	'l': func(c byte) bool { return 'a' <= c && c <= 'z' },
	'p': func(c byte) bool { return '!' <= c && c <= '~' && !isAlpha(c) && !isDigit(c) },
	's': func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	'u': func(c byte) bool { return 'A' <= c && c <= 'Z' },
	'w': func(c byte) bool { return isAlpha(c) || isDigit(c) },
	'x': func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
	'z': func(c byte) bool { return c == 0 },
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// addEscaped adds what %c stands for.
func (s *byteSet) addEscaped(c byte) {
	in, known := classes[c|0x20]
	switch {
	case !isAlpha(c) || !known:
		s.add(c)
	case c&0x20 != 0:
		s.addIf(in)
	default:
		s.addIf(func(b byte) bool { return !in(b) })
	}
}

// parsePattern reads a pattern without its anchor ^.
func parsePattern(p string) (items []item, err error) {
	steps, captures := 0, 0
	for len(p) > 0 {
		it := item{kind: itemByte}
		n := 1
		switch c := p[0]; {
		case c == '(' && len(p) > 1 && p[1] == ')':
			it.kind, n = itemPosition, 2
		case c == '(':
			it.kind = itemOpen
		case c == ')':
			it.kind = itemClose
		case c == '$' && len(p) == 1:
			it.kind = itemEnd
		case c == '%' && len(p) > 1 && p[1] == 'b':
			if len(p) < 4 {
				err = errPatternBalance
				break
			}
			it, n = item{kind: itemBalance, x: p[2], y: p[3]}, 4
		case c == '%' && len(p) > 1 && p[1] == 'f':
			it.kind = itemFrontier
			if len(p) < 3 || p[2] != '[' {
				err = errPatternFront
				break
			}
			n, err = it.set.parse(p[2:])
			n += 2
		case c == '%' && len(p) > 1 && isDigit(p[1]):
			it, n = item{kind: itemBack, x: p[1]}, 2
		default:
			n, err = it.set.parse(p)
		}
		if err != nil {
			items = append(items, item{kind: itemBad, err: err})
			break
		}
		if p = p[n:]; it.kind == itemByte && len(p) > 0 {
			switch p[0] {
			case '*', '+', '-', '?':
				it.repeat, p = p[0], p[1:]
			}
		}
		if it.kind == itemOpen || it.kind == itemPosition {
			captures++
		}
		if it.repeat != 0 || it.kind == itemOpen || it.kind == itemClose || it.kind == itemPosition {
			steps++
		}
		items = append(items, it)
	}
	switch {
	case captures > mostCaptures:
		return nil, errPatternMany
	case steps > mostSteps:
		return nil, errPatternComplex
	}
	return items, nil
}

// parse reads what stands for one byte, and returns how long that is: a byte,
// an escape, or a class in brackets.
func (s *byteSet) parse(p string) (n int, err error) {
	switch {
	case p[0] == '.':
		s.addIf(func(byte) bool { return true })
		return 1, nil
	case p[0] == '%':
		if len(p) == 1 {
			return 0, errPatternEnds
		}
		s.addEscaped(p[1])
		return 2, nil
	case p[0] != '[':
		s.add(p[0])
		return 1, nil
	}
	i := 1
	inverted := i < len(p) && p[i] == '^'
	if inverted {
		i++
	}
	for first := i; ; {
		switch {
		case i >= len(p):
			return 0, errPatternClass
		case p[i] == ']' && i > first:
			if inverted {
				s.invert()
			}
			return i + 1, nil
		case p[i] == '%':
			if i+1 >= len(p) {
				return 0, errPatternEnds
			}
			s.addEscaped(p[i+1])
			i += 2
		case i+2 < len(p) && p[i+1] == '-' && p[i+2] != ']':
			from, to := p[i], p[i+2]
			s.addIf(func(c byte) bool { return from <= c && c <= to })
			i += 3
		default:
			s.add(p[i])
			i++
		}
	}
}
