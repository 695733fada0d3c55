package upstash

import (
	"fmt"
	"strings"
	"time"

	"github.com/upbloom/upbloom/upstash/internal/quiet"
)

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
	if errMsg != nil && *errMsg != "" {
		return x.refused(*errMsg)
	}
	if errMsg != nil || resp.StatusCode < 200 || resp.StatusCode > 299 {
		return x.unexplained(noMessage(len(resp.Body)))
	}
	return err
}

// decodeOne reads the answer to a single command. It accepts JSON in place of
// RESP2, because a server may ignore the request for RESP2.
func (x *call) decodeOne() (errMsg *string, err error) {
	body, a := skipSpace(x.resp.Body), &x.kept.v
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
	a.body = env.result
	if x.resp2 {
		a.form = formIgnored
	}
	return nil, nil
}

// answerTo returns the answer to a command, without its body.
func (x *call) answerTo(name string, t traits) received {
	return received{
		name: name, status: x.resp.StatusCode, traits: t,
		maybeRepeated: x.earlierMayHaveRun, attempts: int32(x.attempts), sent: x.sent,
	}
}

// explain makes the errors at these places of an answer in RESP2.
func (x *call) explain(a *received, places []uint32) {
	if len(places) == 0 {
		return
	}
	errs := make([]serverError, len(places))
	for i, at := range places {
		line, _ := respLine(a.body[at:])
		errs[i] = serverError{words: string(line)}
	}
	a.errs = make(map[uint32]*Error, len(places))
	for i, words := range x.redact(errs...) {
		a.errs[places[i]] = a.errorOf(words, errs[i])
	}
}

// repliesTo makes the replies of a batch, with the scripts in it in these forms.
func (x *call) repliesTo(cmds []Command, forms []scriptForm) []Reply {
	var errs []serverError
	for i, env := range x.envelopes {
		if env.errMsg == nil {
			continue
		}
		command, first := cmds[i].name, ""
		if script := cmds[i].script; script != nil {
			command, first = script.sent(forms[i])
		}
		errs = append(errs, serverError{*env.errMsg, refusalOf(*env.errMsg, command, first)})
	}
	words := x.redact(errs...)
	replies, answers := make([]Reply, len(cmds)), make([]hidden[received], len(cmds))
	for i, env := range x.envelopes {
		a := &answers[i].v
		*a = x.answerTo(cmds[i].name, cmds[i].traits)
		a.body = env.result
		if x.base64 {
			a.form = formBase64
		}
		if env.errMsg != nil {
			a.err = a.errorOf(words[0], errs[0])
			words, errs = words[1:], errs[1:]
		}
		replies[i] = newReply(&answers[i])
	}
	return replies
}

// redact returns the words of a server without what they quote of the request.
// The code, such as WRONGTYPE, is always the server's own, and so is a refusal
// without the name of a user.
func (x *call) redact(errs ...serverError) []string {
	texts := make([]string, len(errs))
	for i, e := range errs {
		texts[i] = ownWords(e.words)[len(codeOf(e.words)):]
	}
	texts = x.cover(texts)
	for i, e := range errs {
		if e.refusal != noRefusal && !strings.HasPrefix(e.words, "NOPERM User ") {
			texts[i] = ownWords(e.words)
			continue
		}
		code := codeOf(e.words)
		if code != "" && strings.HasPrefix(texts[i], redacted) {
			code += " "
		}
		texts[i] = code + quiet.Escape(texts[i])
	}
	return texts
}

// cover returns texts without what they quote of the request.
func (x *call) cover(texts []string) []string {
	if x.raw == "" {
		return redact(texts, x.body, x.token)
	}
	return redact(texts, x.json, x.token, x.raw, string(x.rawBody[:min(len(x.rawBody), maxMessage)]))
}

// refused makes the error of a whole request from the server's words.
func (x *call) refused(message string) *Error {
	command, first := x.name, ""
	if x.script != nil {
		command, first = x.script.sent(x.form)
	}
	e := serverError{message, refusalOf(message, command, first)}
	return x.failed(x.redact(e)[0], e)
}

// unexplained makes the error of a whole request to which the server gave no
// reason. The words are this package's own, and need no redaction.
func (x *call) unexplained(words string) *Error { return x.failed(words, serverError{}) }

func (x *call) failed(words string, server serverError) *Error {
	a := x.answerTo(x.name, x.traits)
	e := a.errorOf(words, server)
	e.RetryAfter = parseRetryAfter(x.resp.retryAfter, time.Now())
	return e
}

// noMessage is the message for a response that has none of its own.
func noMessage(bytes int) string {
	return fmt.Sprintf("no message from the REST API (%d bytes of something else):"+
		" a proxy may have answered; check the URL, or try again later", bytes)
}
