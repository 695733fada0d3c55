package upstash

import (
	"fmt"
	"sync"
	"time"

	"github.com/upbloom/upbloom/internal/synced"
)

// call is one request, sent once or several times, and its outcome.
type call struct {
	name     string // for errors and events
	commands int
	path     string // "/" for a single command
	raw      string // the path of a command in the raw form
	body     []byte
	words    []byte // the JSON of a single command; the server may quote it
	timeout  time.Duration
	traits   traits
	resp2    bool
	base64   bool
	token    string // to be kept out of errors

	operation *synced.Operation // that the call belongs to, or nil

	script *Script // of a single command, else nil
	short  []byte  // its body in the short form
	form   scriptForm
	other  bool // the server refused the form and ran nothing; form is the next one
	forms  int  // how many were refused

	scriptForms []scriptForm // of a batch with scripts, by command

	// What the transport gets. It lives here to make a call one allocation.
	req     Request
	resp    Response
	headers [4]Header // the room for req.Header

	attempts int
	sent     time.Time // when the last attempt began
	earlier  bool      // an attempt before the last may have run
	total    *Event    // of the whole call, if there is a call observer

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

// inForm has the call send its script in a form.
func (x *call) inForm(form scriptForm) {
	x.form, x.body = form, x.script.as(form, x.short)
	x.words = x.body
}

// decode turns a whole response into the call's answer or an error.
func (x *call) decode() error {
	resp := &x.resp
	if len(resp.Body) > x.req.MaxResponse {
		return ErrResponseTooLarge
	}
	if resp.StatusCode/100 == 3 && resp.StatusCode != 304 { // 304 Not Modified leads nowhere
		return x.unexplained("redirects are not followed: use the database's own REST URL")
	}
	var errMsg *string
	var err error
	if x.path == "/" {
		errMsg, err = x.decodeOne()
	} else {
		x.envelopes, errMsg, err = decodeEnvelopes(resp.Body, x.commands)
	}
	switch {
	case errMsg != nil && *errMsg != "":
		return x.refusal(*errMsg)
	case errMsg != nil, resp.StatusCode < 200 || resp.StatusCode > 299:
		return x.unexplained(noMessage(len(resp.Body)))
	}
	return err
}

// decodeOne reads the answer to a single command. It accepts JSON in place of
// RESP2, because a server may ignore the request for RESP2.
func (x *call) decodeOne() (errMsg *string, err error) {
	body, a := x.resp.Body, &x.kept.v
	*a = x.answerTo(x.name, x.traits)
	if x.resp2 && len(body) > 0 && body[0] != '{' {
		errs, err := checkRESP2(body)
		if err != nil {
			return nil, err
		}
		if body[0] == '-' {
			line, _ := respLine(body)
			message := string(line)
			return &message, nil
		}
		a.body, a.form = body, formRESP2
		x.explain(a, errs)
		return nil, nil
	}
	env, err := decodeEnvelope(body)
	if err != nil || env.errMsg != nil {
		return env.errMsg, err
	}
	if a.body = env.result; x.resp2 {
		a.form = formIgnored
	}
	return nil, nil
}

// answerTo returns the answer to a command, without its body.
func (x *call) answerTo(name string, t traits) received {
	return received{
		name: name, status: x.resp.StatusCode, traits: t,
		maybeRepeated: x.earlier, attempts: int32(x.attempts), sent: x.sent,
	}
}

// explain makes the errors at these places of an answer in RESP2.
func (x *call) explain(a *received, places []uint32) {
	if len(places) == 0 {
		return
	}
	a.errs = make(map[uint32]*Error, len(places))
	for _, at := range places {
		line, _ := respLine(a.body[at:])
		a.errs[at] = x.commandError(a, string(line), x.quotable())
	}
}

// repliesTo makes the replies of a batch.
func (x *call) repliesTo(cmds []Command, bodies [][]byte) []Reply {
	replies, answers := make([]Reply, len(cmds)), make([]hidden[received], len(cmds))
	for i, env := range x.envelopes {
		a := &answers[i].v
		*a = x.answerTo(cmds[i].name, cmds[i].traits)
		if a.body = env.result; x.base64 {
			a.form = formBase64
		}
		if env.errMsg != nil {
			a.err = x.commandError(a, *env.errMsg, bodies[i])
		}
		replies[i] = newReply(&answers[i])
	}
	return replies
}

// refusals returns how many commands of a batch were answered with an error.
func (x *call) refusals() int {
	n := 0
	for _, env := range x.envelopes {
		if env.errMsg != nil {
			n++
		}
	}
	return n
}

// redact returns a server's words without what they quote of the request.
func (x *call) redact(message string, words []byte) string {
	value := ""
	if x.raw != "" {
		value = string(x.body[:min(len(x.body), maxMessage)])
	}
	return redact(message, words, x.token, x.raw, value)
}

// commandError makes the error of one command within an answer of status 200.
func (x *call) commandError(a *received, message string, words []byte) *Error {
	return a.commandError(x.redact(message, words), kindOf(200, message))
}

// refusal makes the error of a whole request from the server's words.
func (x *call) refusal(message string) *Error {
	return x.refused(x.redact(message, x.quotable()), kindOf(x.resp.StatusCode, message))
}

// unexplained makes the error of a whole request if the server did not explain
// it. The words are this package's own, and need no redaction.
func (x *call) unexplained(words string) *Error {
	return x.refused(words, kindOf(x.resp.StatusCode, ""))
}

func (x *call) refused(words string, kind error) *Error {
	e := &Error{
		StatusCode: x.resp.StatusCode, Message: words, Command: x.name, matches: kind,
		RetryAfter: parseRetryAfter(x.resp.retryAfter, time.Now()), attempts: x.attempts,
	}
	e.outcome = judge(x.traits, x.earlier, answerOutcome(x.traits, e))
	return e
}

// quotable returns what a server may quote of the request.
func (x *call) quotable() []byte {
	if x.words != nil {
		return x.words
	}
	return x.body
}

// failure returns the caller's error for the last attempt's ending. The cause
// is the ending's error, perhaps with what ended the call after it.
func (x *call) failure(e *ending, cause error) error {
	call := &CallError{
		Command: x.name, Attempts: x.attempts, StatusCode: x.resp.StatusCode, Err: cause,
		outcome: judge(x.traits, x.earlier, e.outcome),
	}
	if e.server == nil {
		return call
	}
	if cause == e.err {
		return e.server
	}
	call.retryAfter = e.server.RetryAfter
	return call
}

// noMessage stands for the message of a response without one.
func noMessage(bytes int) string {
	return fmt.Sprintf("no message from the REST API (%d bytes of something else):"+
		" a proxy may have answered; check the URL, or try again later", bytes)
}
