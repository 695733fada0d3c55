package recording

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
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
// create a filter, and the names of an upload's keys. A recording has fixed ones
// in their place. A replay exchanges the two, in requests and in answers. Both
// have the same length.

// Of a birth number the first bit is 1, and the next 42 are drawn; the low ten
// say the filter's rate, and stay as they are. A name is a number of 64 bits,
// whose first is 1.
const (
	firstOfBirth = 1 << 52
	firstOfName  = 1 << 63
	rateBits     = 1<<10 - 1
)

// textOf returns a drawn number that begins with first, as requests have it.
func textOf(first, n uint64) string {
	n = first | n>>(bits.LeadingZeros64(first)+1)
	if first == firstOfName {
		return strconv.FormatUint(n, 36)
	}
	return strconv.FormatUint(n, 10)
}

// settled returns the file's number for the i-th one drawn that begins with
// first.
func settled(first uint64, i int) string {
	sum := sha256.Sum256([]byte("drawn " + strconv.Itoa(i)))
	return textOf(first, binary.BigEndian.Uint64(sum[:]))
}

// drawnOf returns the drawn part of a number's text: that of a birth number has
// no rate.
func drawnOf(text string) string {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n>>52 != 1 {
		return text
	}
	return strconv.FormatUint(n&^rateBits, 10)
}

// withRate returns a birth number's text with the rate of another.
func withRate(text, other string) string {
	n, err := strconv.ParseUint(text, 10, 64)
	o, otherErr := strconv.ParseUint(other, 10, 64)
	if err != nil || otherErr != nil {
		return text
	}
	return strconv.FormatUint(n&^rateBits|o&rateBits, 10)
}

// draws are the numbers that the process has drawn while clients recorded or
// replayed.
var draws struct {
	mu      sync.Mutex
	clients int
	texts   map[string]bool
}

// While clients record or replay, numbers are noted, and no lot leads to a look
// at a filter's fill: the next run must send the same requests.
func init() {
	lots.Uint64 = func() uint64 {
		n := rand.Uint64()
		note(n)
		return n
	}
	lots.Float64 = func() float64 {
		draws.mu.Lock()
		defer draws.mu.Unlock()
		if draws.clients > 0 {
			return 1
		}
		return rand.Float64()
	}
}

func note(n uint64) {
	draws.mu.Lock()
	defer draws.mu.Unlock()
	if draws.clients > 0 {
		draws.texts[drawnOf(textOf(firstOfBirth, n))] = true
		draws.texts[textOf(firstOfName, n)] = true
	}
}

// noteDraws notes the numbers drawn until the end of the test.
func noteDraws(tb testing.TB) {
	add := func(n int) {
		draws.mu.Lock()
		defer draws.mu.Unlock()
		if draws.clients == 0 {
			draws.texts = make(map[string]bool)
		}
		draws.clients += n
	}
	add(1)
	tb.Cleanup(func() { add(-1) })
}

func isDrawn(text string) bool {
	draws.mu.Lock()
	defer draws.mu.Unlock()
	return draws.texts[drawnOf(text)]
}

// token matches what may be a drawn number. In a path %3a stands for a colon.
var token = regexp.MustCompile(`%[0-9A-Fa-f]{2}|[0-9a-z]+`)

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
// numbers alone, and those numbers, each once and in their order.
func (q recordedRequest) shape(is func(string) bool) (shape string, drawn []string) {
	shape = token.ReplaceAllStringFunc(q.key(), func(m string) string {
		if !is(m) {
			return m
		}
		i := slices.Index(drawn, m)
		if i < 0 {
			i, drawn = len(drawn), append(drawn, m)
		}
		return "\x00" + strconv.Itoa(i) + "\x00"
	})
	return shape, drawn
}

// settle replaces the drawn numbers of a recording by those of the file, in the
// order in which the requests contain them.
func (r recording) settle() {
	to, births := make(numbers), 0
	for _, x := range r.Exchanges {
		_, drawn := x.Request.shape(isDrawn)
		for _, s := range drawn {
			switch {
			case to[s] != "":
			case len(s) == len(settled(firstOfBirth, 0)):
				to[s] = withRate(settled(firstOfBirth, births), s)
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
	there, found := make(map[string]bool), make(map[string]bool)
	for _, x := range exchanges {
		for _, s := range token.FindAllString(x.Request.key(), -1) {
			there[drawnOf(s)] = true
		}
	}
	for _, first := range []uint64{firstOfBirth, firstOfName} {
		for i := 0; there[drawnOf(settled(first, i))]; i++ {
			found[drawnOf(settled(first, i))] = true
		}
	}
	return found
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
