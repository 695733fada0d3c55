package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"regexp"
	"strconv"
)

// A Filter draws a birth number for each write that may create it: a 1
// followed by 52 random bits. The number differs from run to run, so a
// recording has a fixed number in its place. A replay exchanges the two, in
// requests and in answers. Both have 16 digits.

const (
	leastDrawn = 1 << 52
	mostDrawn  = 1<<53 - 1
)

var (
	digits = regexp.MustCompile(`[0-9]+`)
	// birth matches the birth number that a BITFIELD writes at bit 64.
	birth = regexp.MustCompile(`"u53","64","([0-9]{16})"`)
	// In the request of a script, any argument that matches word may be one.
	script = regexp.MustCompile(`(?i)\["eval(?:sha)?",`)
	word   = regexp.MustCompile(`"([0-9]{16})"`)
	// header matches a filter's header, which has the same range and stands at
	// bit 0. It is not drawn.
	header = regexp.MustCompile(`"u53","0","([0-9]{16})"`)
)

// numbers maps the drawn numbers of a run to those of a file, or the reverse.
type numbers map[string]string

// headersIn adds the headers in a request to known.
func headersIn(body []byte, known map[string]bool) {
	for _, m := range header.FindAllSubmatch(body, -1) {
		known[string(m[1])] = true
	}
}

// drawnIn returns the numbers in a request that may have been drawn, each once
// and in their order.
func drawnIn(body []byte, headers map[string]bool) (all []string) {
	places := birth
	if script.Match(body) {
		places = word
	}
	seen := make(map[string]bool)
	for _, m := range places.FindAllSubmatch(body, -1) {
		s := string(m[1])
		n, err := strconv.ParseInt(s, 10, 64)
		if err == nil && n >= leastDrawn && n <= mostDrawn && !headers[s] && !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	return all
}

// in returns body with the numbers replaced.
func (n numbers) in(body []byte) []byte {
	if len(n) == 0 {
		return body
	}
	return digits.ReplaceAllFunc(body, func(m []byte) []byte {
		if to, ok := n[string(m)]; ok {
			return []byte(to)
		}
		return m
	})
}

// shape returns the request with a mark in place of each number that may have
// been drawn. Two requests that differ only in these have the same shape.
func (q recordedRequest) shape(headers map[string]bool) string {
	marks := make(numbers)
	for _, s := range drawnIn(q.bytes(), headers) {
		marks[s] = "#"
	}
	return q.line() + " " + string(marks.in(q.bytes()))
}

// replaced is p with the numbers replaced.
func (p payload) replaced(n numbers) payload {
	switch {
	case p.JSON != nil:
		p.JSON = n.in(p.JSON)
	case p.Text != "":
		p.Text = string(n.in([]byte(p.Text)))
	case p.Base64 != "":
		return newPayload(n.in(p.bytes()))
	}
	return p
}

// settled returns the file's number for the i-th drawn one. It looks random,
// and so is unlikely to be the header of a filter.
func settled(i int) string {
	sum := sha256.Sum256([]byte("drawn " + strconv.Itoa(i)))
	return strconv.FormatUint(leastDrawn|binary.BigEndian.Uint64(sum[:])>>12, 10)
}

// settle replaces the drawn numbers of a recording by those of the file, in the
// order in which the requests contain them.
func (r recording) settle() {
	headers := make(map[string]bool)
	for _, x := range r.Exchanges {
		headersIn(x.Request.bytes(), headers)
	}
	to := make(numbers)
	for _, x := range r.Exchanges {
		for _, s := range drawnIn(x.Request.bytes(), headers) {
			if to[s] == "" {
				to[s] = settled(len(to))
			}
		}
	}
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		x.Request.payload = x.Request.replaced(to)
		x.Response.payload = x.Response.replaced(to)
	}
}

// bind pairs the drawn numbers of a request with those of a recorded one. It
// reports whether the two requests are then equal and no number has two
// partners.
func (p *player) bind(recorded, made []byte) bool {
	theirs, ours := drawnIn(recorded, p.headers), drawnIn(made, p.headers)
	if len(theirs) != len(ours) {
		return false
	}
	for i, was := range theirs {
		now, bound := p.made[was]
		before, taken := p.recorded[ours[i]]
		if bound && now != ours[i] || taken && before != was {
			return false
		}
	}
	bound := maps.Clone(p.recorded)
	for i, was := range theirs {
		bound[ours[i]] = was
	}
	if !bytes.Equal(bound.in(made), recorded) {
		return false
	}
	p.recorded = bound
	for i, was := range theirs {
		p.made[was] = ours[i]
	}
	return true
}
