package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"regexp"
	"strconv"
)

// A Filter draws a number for each write that may create it, its birth number:
// 1 and then 52 random bits. It is another one in each run, so a recording has
// a fixed number in its place, and a replay takes the one for the other, in
// requests and in answers. Its 16 digits stay 16 digits.

const (
	leastDrawn = 1 << 52
	mostDrawn  = 1<<53 - 1
)

var (
	digits = regexp.MustCompile(`[0-9]+`)
	// birth is a BITFIELD's, which is at bit 64. A script has it among its
	// arguments.
	birth  = regexp.MustCompile(`"u53","64","([0-9]{16})"`)
	script = regexp.MustCompile(`(?i)\["eval(?:sha)?",`)
	word   = regexp.MustCompile(`"([0-9]{16})"`)
	// header is what a filter is by. It has the same range and stands at bit 0.
	header = regexp.MustCompile(`"u53","0","([0-9]{16})"`)
)

// numbers maps the drawn numbers of one side to those of the other.
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

// shape is a request with a mark in place of each number that may have been
// drawn: what two requests that differ in these alone have in common.
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

// settled is the number that a file has for the i-th drawn one. It looks drawn
// itself, so that it is no likely word of a filter, which has the same range.
func settled(i int) string {
	sum := sha256.Sum256([]byte("drawn " + strconv.Itoa(i)))
	return strconv.FormatUint(leastDrawn|binary.BigEndian.Uint64(sum[:])>>12, 10)
}

// settle gives the drawn numbers of a recording the values that they have in
// the file, in the order in which requests name them.
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

// bind takes the drawn numbers of a request for those of a recorded one, and
// reports whether that contradicts what was bound before.
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
	for i, was := range theirs {
		p.made[was], p.recorded[ours[i]] = ours[i], was
	}
	return bytes.Equal(p.recorded.in(made), recorded)
}
