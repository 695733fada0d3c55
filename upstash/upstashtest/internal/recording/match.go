package recording

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/lots"
)

// key returns a string that differs for different requests: a method, a path
// and an encoding contain no space.
func (q recordedRequest) key() string {
	return q.line() + " " + string(bySum(q.bytes()))
}

// line returns the request without its body.
func (q recordedRequest) line() string {
	if q.Encoding == "" {
		return q.Method + " " + q.Path
	}
	return q.Method + " " + q.Path + " (" + q.Encoding + ")"
}

// Two runs of a test send different bytes for the same request in two places:
// the numbers that package bloom draws, and a script, which goes by its text or
// by its SHA-1.

// Package bloom draws numbers at random: a birth number for each write that may
// create a filter, and the names of an upload's keys. While clients record or
// replay, drawn numbers have a mark in their upper bits, and a count below it. A
// file counts from 0. A replay exchanges the numbers of its run and those of the
// file, in requests and in answers. They have the same length.

// A drawn number of 64 bits is the mark and the count, and 26 bits that nothing
// uses. Of a birth number the first bit is 1, the next 38 are drawn, four say which
// attempt sent it, and the last ten the filter's rate. A name is 1 and the upper 63
// bits, to base 36.
const (
	mark      = 0x2b7e1 // 18 bits
	markShift = 46
	countBits = 20
	rateBits  = 1<<10 - 1

	// Numbers of older files have four bits more of the mark, and count where the
	// attempts are now. These bits are no count of a run, nor of a newer file.
	olderNibble = 5

	firstOfBirth, birthShift = 1 << 52, 12
	firstOfName, nameShift   = 1 << 63, 1
)

// drawnNumber returns the number that is drawn as the count-th one. Later ones
// begin again: a file or a test has fewer than a million.
func drawnNumber(count uint64) uint64 {
	return mark<<markShift | count%(1<<countBits)<<(markShift-countBits)
}

// settled returns the text of another drawn number for that of one, with the
// same rate.
func settled(text string, count int) string {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return strconv.FormatUint(firstOfBirth|drawnNumber(uint64(count))>>birthShift|n&rateBits, 10)
	}
	return strconv.FormatUint(firstOfName|drawnNumber(uint64(count))>>nameShift, 36)
}

// isDrawn reports whether text is a birth number or a name with the mark.
func isDrawn(text string) bool {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n>>(markShift-birthShift) == firstOfBirth>>(markShift-birthShift)|mark
	}
	n, _ := strconv.ParseUint(text, 36, 64)
	return n>>(markShift-nameShift) == firstOfName>>(markShift-nameShift)|mark
}

// draws counts the numbers of this process.
var draws struct{ clients, count atomic.Int64 }

// While clients record or replay, drawn numbers have the mark: the next run must
// send the same requests.
func init() {
	draws.count.Store(rand.Int64())
	lots.Uint64 = func() uint64 {
		if draws.clients.Load() == 0 {
			return rand.Uint64()
		}
		return draw()
	}
}

// draw returns the next number of this process. Its count is above those of files.
func draw() uint64 {
	const half = 1 << (countBits - 1)
	return drawnNumber(half | uint64(draws.count.Add(1))%half)
}

// markDraws has numbers drawn with the mark until the end of the test.
func markDraws(tb testing.TB) {
	draws.clients.Add(1)
	tb.Cleanup(func() { draws.clients.Add(-1) })
}

// token matches what may be a drawn number. In a path %3a stands for a colon.
var token = regexp.MustCompile(`%[0-9A-Fa-f]{2}|[0-9a-z]+`)

// ofCall returns the birth number that the first attempt at a command carries, and
// how much more another attempt does. A name, and a number of an older file, has no
// attempt.
func ofCall(text string) (first string, attempt int64) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n>>(markShift-birthShift-4)&15 == olderNibble {
		return text, 0
	}
	return strconv.FormatInt(lots.OfCall(n), 10), n - lots.OfCall(n)
}

// numbers maps the drawn numbers of a run to those of a file, or the reverse: of
// births, those of first attempts. Other attempts follow.
type numbers map[string]string

// in returns text with the numbers replaced.
func (n numbers) in(text []byte) []byte {
	if len(n) == 0 {
		return text
	}
	return token.ReplaceAllFunc(text, func(m []byte) []byte {
		first, attempt := ofCall(string(m))
		to, ok := n[first]
		switch {
		case !ok:
			return m
		case attempt == 0:
			return []byte(to)
		}
		birth, _ := strconv.ParseInt(to, 10, 64) // as the one that it replaces
		if _, other := ofCall(strconv.FormatInt(birth|attempt, 10)); other == attempt {
			birth |= attempt
		}
		return strconv.AppendInt(nil, birth, 10)
	})
}

// replaced is p with the numbers replaced.
func (p payload) replaced(n numbers) payload {
	if len(n) == 0 {
		return p
	}
	return newPayload(n.in(p.bytes()))
}

// replaced is q with the numbers replaced.
func (q recordedRequest) replaced(n numbers) recordedRequest {
	q.Path, q.payload = string(n.in([]byte(q.Path))), q.payload.replaced(n)
	return q
}

// shape returns a text that is the same for requests which differ in drawn
// numbers alone, and those numbers, each once and in their order: of births, those of
// first attempts.
func (q recordedRequest) shape() (shape string, drawn []string) {
	shape = token.ReplaceAllStringFunc(q.key(), func(m string) string {
		if !isDrawn(m) {
			return m
		}
		m, _ = ofCall(m)
		i := slices.Index(drawn, m)
		if i < 0 {
			i, drawn = len(drawn), append(drawn, m)
		}
		return "\x00" + strconv.Itoa(i) + "\x00"
	})
	return shape, drawn
}

// settle replaces the drawn numbers of a recording by those of a file, in the
// order in which the requests contain them.
func (r recording) settle() {
	to := make(numbers)
	for _, x := range r.Exchanges {
		_, drawn := x.Request.shape()
		for _, text := range drawn {
			if to[text] == "" {
				to[text] = settled(text, len(to))
			}
		}
	}
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		x.Request = x.Request.replaced(to)
		x.Response.payload = x.Response.replaced(to)
	}
}

// pairs are the numbers of a file and those of the run that replays it.
type pairs struct{ made, recorded numbers }

// bind pairs the numbers of two requests of one shape. It reports false, and
// changes nothing, if one of them has another partner.
func (p pairs) bind(recorded, made []string) bool {
	for i, was := range recorded {
		if !p.free(was, made[i]) && p.made[was] != made[i] {
			return false
		}
	}
	for i, was := range recorded {
		p.made[was], p.recorded[made[i]] = made[i], was
	}
	return true
}

// free reports whether neither number has a partner.
func (p pairs) free(recorded, made string) bool {
	return p.made[recorded] == "" && p.recorded[made] == ""
}

// A client sends the text of a script until its first answer has come, and then
// the SHA-1. Which of several calls at once send the text depends on the
// machine. So the two are the same request.

// byText matches a command with the text of a script. In a string both quotes
// would be escaped.
var byText = regexp.MustCompile(`\["EVAL(_RO)?",("(?:[^"\\]|\\.)*")`)

// bySum returns a body with the SHA-1 in place of the text of each script.
func bySum(body []byte) []byte {
	return byText.ReplaceAllFunc(body, func(command []byte) []byte {
		parts := byText.FindSubmatch(command)
		var text string
		if json.Unmarshal(parts[2], &text) != nil {
			return command
		}
		sum := sha1.Sum([]byte(text))
		return []byte(`["EVALSHA` + string(parts[1]) + `","` + hex.EncodeToString(sum[:]) + `"`)
	})
}

// hasSums reports whether the request has scripts by their SHA-1.
func (q recordedRequest) hasSums() bool { return bytes.Contains(q.bytes(), []byte(`["EVALSHA`)) }
