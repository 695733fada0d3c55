package database

// matcher finds one pattern in one string.
type matcher struct {
	src      string
	items    []item
	captures []capture
	stop     func() error // asked now and then; an error ends the search
	steps    uint
	err      error
}

// capture is a part of the string, or a position in it.
type capture struct {
	start int
	len   int // or captureOpen or capturePosition
}

const (
	captureOpen     = -1
	capturePosition = -2
)

// over counts a step, and reports whether the search must end.
func (m *matcher) over() bool {
	if m.steps++; m.steps&0xfff == 0 && m.err == nil {
		m.err = m.stop()
	}
	return m.err != nil
}

func (m *matcher) fail(err error) int {
	if m.err == nil {
		m.err = err
	}
	return -1
}

// at matches the whole pattern at a position, and returns the end of the match,
// or -1.
func (m *matcher) at(s int) int {
	m.captures = m.captures[:0]
	return m.match(0, s)
}

// match matches the items from i on at the position s, and returns the end of
// the match, or -1. It recurses only for an item with more than one way to
// match.
func (m *matcher) match(i, s int) int {
	for ; i < len(m.items); i++ {
		if m.over() {
			return -1
		}
		switch it := &m.items[i]; it.kind {
		case itemByte:
			if it.repeat != 0 {
				return m.repeated(it, i, s)
			}
			if s >= len(m.src) || !it.set.has(m.src[s]) {
				return -1
			}
			s++
		case itemOpen:
			return m.open(i, capture{s, captureOpen}, s)
		case itemPosition:
			return m.open(i, capture{s, capturePosition}, s)
		case itemClose:
			return m.close(i, s)
		case itemBalance:
			if s = m.balanced(s, it.x, it.y); s < 0 {
				return -1
			}
		case itemFrontier:
			if it.set.has(m.byteAt(s-1)) || !it.set.has(m.byteAt(s)) {
				return -1
			}
		case itemBack:
			n := int(it.x) - '1'
			if n < 0 || n >= len(m.captures) || m.captures[n].len == captureOpen {
				return m.fail(errPatternIndex)
			}
			if m.captures[n].len == capturePosition {
				return -1
			}
			part := m.text(m.captures[n])
			if len(m.src)-s < len(part) || m.src[s:s+len(part)] != part {
				return -1
			}
			s += len(part)
		case itemBad:
			return m.fail(it.err)
		case itemEnd:
			if s != len(m.src) {
				return -1
			}
		}
	}
	return s
}

// byteAt returns a byte, and 0 before the string and after it.
func (m *matcher) byteAt(s int) byte {
	if s < 0 || s >= len(m.src) {
		return 0
	}
	return m.src[s]
}

// text returns a closed capture. One of a position is empty.
func (m *matcher) text(c capture) string { return m.src[c.start : c.start+max(0, c.len)] }

func (m *matcher) repeated(it *item, i, s int) int {
	fits := func(s int) bool { return s < len(m.src) && it.set.has(m.src[s]) }
	if it.repeat == '-' { // as few as possible
		for {
			if e := m.match(i+1, s); e >= 0 || m.over() || !fits(s) {
				return e
			}
			s++
		}
	}
	least, most := s, s
	switch it.repeat {
	case '?':
		if fits(s) {
			most++
		}
	case '+':
		least++
		fallthrough
	default:
		for fits(most) && !m.over() {
			most++
		}
	}
	for ; most >= least; most-- {
		if e := m.match(i+1, most); e >= 0 || m.over() {
			return e
		}
	}
	return -1
}

func (m *matcher) open(i int, c capture, s int) int {
	m.captures = append(m.captures, c)
	e := m.match(i+1, s)
	if e < 0 {
		m.captures = m.captures[:len(m.captures)-1]
	}
	return e
}

func (m *matcher) close(i, s int) int {
	n := len(m.captures) - 1
	for n >= 0 && m.captures[n].len != captureOpen {
		n--
	}
	if n < 0 {
		return m.fail(errPatternCapture)
	}
	m.captures[n].len = s - m.captures[n].start
	e := m.match(i+1, s)
	if e < 0 {
		m.captures[n].len = captureOpen
	}
	return e
}

// balanced returns the position after the y that ends what x began at s.
func (m *matcher) balanced(s int, x, y byte) int {
	if s >= len(m.src) || m.src[s] != x {
		return -1
	}
	depth := 1
	for s++; s < len(m.src) && !m.over(); s++ {
		switch m.src[s] {
		case y: // before x, which may be the same
			if depth--; depth == 0 {
				return s + 1
			}
		case x:
			depth++
		}
	}
	return -1
}
