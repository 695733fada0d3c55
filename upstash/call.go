package upstash

import (
	"sync"
	"time"

	"github.com/upbloom/upbloom/internal/synced"
)

// message is what a call sends. It stays as it is in all attempts, but for the
// form of a script and the birth number, of which each attempt has its own.
type message struct {
	name      string // for errors and events
	commands  int
	path      string // "/" for a single command
	raw       string // the path of a command in the raw form
	json      []byte // the commands; of a script in its short form
	rawBody   []byte // of a command in the raw form
	timeout   time.Duration
	traits    traits
	resp2     bool
	base64    bool
	script    *Script           // of a single command, else nil
	birth     int64             // of a single command: see Command
	batch     []Command         // of a batch, else nil
	forms     []scriptForm      // of the scripts in it
	before    int               // attempts at these commands, by the calls before this one
	token     string            // to be kept out of errors
	operation *synced.Operation // that the call belongs to, or nil
}

// bodyIn returns the body of the n-th repetition, with the script in a form.
func (m *message) bodyIn(form scriptForm, n int) []byte {
	if m.raw != "" {
		return m.rawBody
	}
	if m.script != nil {
		return numbered(m.script.as(form, m.json), m.birth, n)
	}
	if m.batch != nil && n > m.before {
		return joinCommands(m.batch, m.forms, n)
	}
	return numbered(m.json, m.birth, n)
}

// attempt is one request and its response.
type attempt struct {
	form scriptForm // if there is a script
	body []byte
	sent time.Time

	// What the transport gets. It lives here to make a call one allocation.
	req     Request
	resp    Response
	headers [4]Header // the room for req.Header
}

// call is a message, sent once or several times, and its outcome.
type call struct {
	message
	attempt // the last one

	attempts          int    // of this call
	earlierMayHaveRun bool   // an attempt before the last
	total             *Event // of the whole call, if there is a call observer

	kept      *kept      // for path "/"
	envelopes []envelope // for /pipeline and /multi-exec
}

// kept is what a reply keeps of its call. It is apart from the call: a reply
// that is kept for long takes 256 bytes.
type kept struct {
	hidden[received]
	room [136]byte // for the body; most answers fit
}

// calls has calls that have ended. A call takes three times the memory of its
// answer, so using it again pays.
var calls = sync.Pool{New: func() any { return new(call) }}
