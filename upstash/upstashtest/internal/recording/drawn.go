package recording

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/internal/lots"
)

// Package bloom draws numbers at random: a birth number for each write that may
// create a filter, and the names of an upload's keys. They differ from run to
// run, so a recording has fixed ones in their place. A replay exchanges the two,
// in requests and in answers. Both have the same length.

// Of a birth number the first bit is 1, and 52 are drawn. A name is a number of
// 64 bits, whose first is 1.
const (
	firstOfBirth = 1 << 52
	firstOfName  = 1 << 63
)

// textOf returns a drawn number that begins with first, as requests have it.
func textOf(first, n uint64) string {
	n = first | n>>(bits.LeadingZeros64(first)+1)
	if first == firstOfName {
		return strconv.FormatUint(n, 36)
	}
	return strconv.FormatUint(n, 10)
}

// draws are the numbers that the process has drawn while clients recorded or
// replayed.
var draws struct {
	clients atomic.Int32
	mu      sync.Mutex
	texts   map[string]bool
}

// While clients record or replay, numbers are noted, and no lot leads to a look
// at a filter's fill: the next run must send the same requests.
func init() {
	lots.Uint64 = func() uint64 {
		n := rand.Uint64()
		if draws.clients.Load() > 0 {
			note(n)
		}
		return n
	}
	lots.Float64 = func() float64 {
		if draws.clients.Load() > 0 {
			return 1
		}
		return rand.Float64()
	}
}

func note(n uint64) {
	draws.mu.Lock()
	defer draws.mu.Unlock()
	for _, first := range []uint64{firstOfBirth, firstOfName} {
		draws.texts[textOf(first, n)] = true
	}
}

// noteDraws notes the numbers drawn until the end of the test.
func noteDraws(tb testing.TB) {
	draws.mu.Lock()
	defer draws.mu.Unlock()
	if draws.clients.Load() == 0 {
		draws.texts = make(map[string]bool)
	}
	draws.clients.Add(1)
	tb.Cleanup(func() { draws.clients.Add(-1) })
}

func isDrawn(text string) bool {
	draws.mu.Lock()
	defer draws.mu.Unlock()
	return draws.texts[text]
}

// token matches what may be a drawn number. In a path %3a stands for a colon.
var token = regexp.MustCompile(`%[0-9A-Fa-f]{2}|[0-9a-z]+`)

// tokensOf returns the tokens of a request for which is returns true, each once
// and in their order.
func tokensOf(q recordedRequest, is func(string) bool) (all []string) {
	for _, m := range token.FindAllString(q.key(), -1) {
		if is(m) && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// numbers maps the drawn numbers of a run to those of a file, or the reverse.
type numbers map[string]string

// in returns text with the numbers replaced.
func (n numbers) in(text []byte) []byte {
	if len(n) == 0 {
		return text
	}
	return token.ReplaceAllFunc(text, func(m []byte) []byte {
		if to, ok := n[string(m)]; ok {
			return []byte(to)
		}
		return m
	})
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

// replaced is q with the numbers replaced.
func (q recordedRequest) replaced(n numbers) recordedRequest {
	q.Path, q.payload = string(n.in([]byte(q.Path))), q.payload.replaced(n)
	return q
}

// shape returns the request with a mark in place of each drawn number. Two
// requests that differ only in these have the same shape.
func (q recordedRequest) shape(is func(string) bool) string {
	marks := make(numbers)
	for _, s := range tokensOf(q, is) {
		marks[s] = "#"
	}
	return string(marks.in([]byte(q.key())))
}

// settled returns the file's number for the i-th one drawn that begins with
// first.
func settled(first uint64, i int) string {
	sum := sha256.Sum256([]byte("drawn " + strconv.Itoa(i)))
	return textOf(first, binary.BigEndian.Uint64(sum[:]))
}

// settle replaces the drawn numbers of a recording by those of the file, in the
// order in which the requests contain them.
func (r recording) settle() {
	to, births := make(numbers), 0
	for _, x := range r.Exchanges {
		for _, s := range tokensOf(x.Request, isDrawn) {
			switch {
			case to[s] != "":
			case len(s) == len(settled(firstOfBirth, 0)):
				to[s] = settled(firstOfBirth, births)
				births++
			default:
				to[s] = settled(firstOfName, len(to)-births)
			}
		}
	}
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		x.Request = x.Request.replaced(to)
		x.Response.payload = x.Response.replaced(to)
	}
}

// settledIn returns the numbers that settle has put into a recording.
func settledIn(exchanges []exchange) map[string]bool {
	there := make(map[string]bool)
	for _, x := range exchanges {
		for _, s := range token.FindAllString(x.Request.key(), -1) {
			there[s] = true
		}
	}
	found := make(map[string]bool)
	for _, first := range []uint64{firstOfBirth, firstOfName} {
		for i := 0; there[settled(first, i)]; i++ {
			found[settled(first, i)] = true
		}
	}
	return found
}

// isSettled reports whether the file has the text in place of a drawn number.
func (p *player) isSettled(text string) bool { return p.settled[text] }

// bind pairs the drawn numbers of a request with those of a recorded one. It
// reports whether the two requests are then equal and no number has two
// partners.
func (p *player) bind(recorded, made recordedRequest) bool {
	theirs, ours := tokensOf(recorded, p.isSettled), tokensOf(made, isDrawn)
	if len(theirs) != len(ours) {
		return false
	}
	bound := maps.Clone(p.recorded)
	for i, was := range theirs {
		if p.isBound(was, ours[i]) && (p.made[was] != ours[i] || p.recorded[ours[i]] != was) {
			return false
		}
		bound[ours[i]] = was
	}
	if made.replaced(bound).key() != recorded.key() {
		return false
	}
	p.recorded = bound
	for i, was := range theirs {
		p.made[was] = ours[i]
	}
	return true
}

// isBound reports whether one of the two numbers has a partner.
func (p *player) isBound(recorded, made string) bool {
	return p.made[recorded] != "" || p.recorded[made] != ""
}

// like is a request that was made, with the numbers of a recorded one, as far as
// they can be partners.
func (p *player) like(made, recorded recordedRequest) recordedRequest {
	bound := maps.Clone(p.recorded)
	ours := tokensOf(made, isDrawn)
	for i, was := range tokensOf(recorded, p.isSettled) {
		if i < len(ours) && !p.isBound(was, ours[i]) {
			bound[ours[i]] = was
		}
	}
	return made.replaced(bound)
}
