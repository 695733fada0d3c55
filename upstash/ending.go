package upstash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ending is how an attempt failed. What is known of its commands is set once,
// where the transport or the server said it. Nothing is read out of err later,
// because err may wrap the error of another call: the cause of a context, for
// example, or what a RoundTripper returned.
type ending struct {
	err     error  // what the caller is told; nil if the attempt brought an answer
	server  *Error // err, if it is an answer of the server
	outcome outcome
	final   bool // another attempt would end in the same way
}

// transportEnding is the ending of an attempt for which a transport returned
// err. Only an error made by NotSent itself proves that nothing was sent.
func transportEnding(err error) ending {
	e := ending{err: err, outcome: outcomeUnknown}
	if mark, ok := err.(*notSentError); ok {
		e.err, e.outcome = mark.err, outcomeNotSent
	}
	e.final = isPermanent(e.err) || errors.Is(e.err, ErrNoTransport) || errors.Is(e.err, ErrResponseTooLarge)
	return e
}

// advise adds a question, or "", to the error of an attempt that was never sent.
// It asks about what is wrong most often then, over any transport. An attempt that
// took too long says enough.
func (e *ending) advise(question string) {
	if question != "" && e.outcome == outcomeNotSent && !errors.Is(e.err, context.DeadlineExceeded) {
		e.err = fmt.Errorf("%w: %s", e.err, question)
	}
}

// askAboutRedis adds a question to the error of an attempt without an answer, if
// the client has had none yet: Redis itself closes the connection at the sight
// of HTTP.
func (e *ending) askAboutRedis() {
	if e.outcome == outcomeUnknown && isUnanswered(e.err) {
		e.err = fmt.Errorf("%w: is the URL that of a REST API, and not of Redis itself?", e.err)
	}
}

// answerEnding is the ending of an attempt with the answer err, from decode.
func answerEnding(t traits, err error) ending {
	server, ok := err.(*Error)
	if !ok {
		return ending{err: err, outcome: outcomeUnknown, final: err == ErrResponseTooLarge}
	}
	return ending{
		err: err, server: server, outcome: answerOutcome(t, server),
		final: server.RetryAfter > maxRetryAfter || server.kind() == ErrQuota,
	}
}

// askAbout adds a question to an error that a wrong path in the URL may have
// caused. An error that says more than ERR needs none.
func (e *ending) askAbout(path string) {
	if path == "" {
		return
	}
	q := "the URL has a path, " + path + ": is it right?"
	switch s := e.server; {
	case s == nil && errors.Is(e.err, ErrBadResponse):
		e.err = fmt.Errorf("%w: %s", e.err, q)
	case s == nil || s.StatusCode != 400 && s.StatusCode != 404:
	case s.kind() == nil && (s.Code() == "" || s.Code() == "ERR"):
		s.question = q
	}
}

// answerOutcome returns what an answer says of the one attempt it ended. If an
// error has status 2xx or 4xx, the command changed nothing, unless it was a
// script: a script may have stopped half way, unless the token may not run
// scripts at all. Any other status says nothing, and neither does a 408, because
// a proxy sent it.
func answerOutcome(t traits, e *Error) outcome {
	switch {
	case e.StatusCode == 408, e.StatusCode/100 != 2 && e.StatusCode/100 != 4:
		return outcomeUnknown
	case t&traitScript == 0, e.Code() == "NOSCRIPT":
		return outcomeRefused
	case e.StatusCode == 401, e.StatusCode == 413, e.StatusCode == 429, e.refusesScripts():
		return outcomeRefused
	}
	return outcomeUnknown
}

// refusesScripts reports whether the token may not run a script. The server
// names the command then. A NOPERM may also be about a command that a script
// called, but a script can call no other script.
func (e *Error) refusesScripts() bool {
	return e.Code() == "NOPERM" && slices.ContainsFunc(strings.Fields(scripts), func(name string) bool {
		return strings.Contains(ownWords(e.Message), "'"+strings.ToLower(name)+"'")
	})
}

// mayFollow reports whether another attempt may follow one that ended so.
func (e *ending) mayFollow(t traits) bool {
	switch {
	case e.final:
		return false
	case e.outcome == outcomeNotSent:
		return true
	case e.outcome == outcomeRefused:
		return e.server.StatusCode == 429
	case e.server != nil && e.server.StatusCode < 500 && e.server.StatusCode != 408:
		return false // a redirect or a failed script
	}
	return t&traitRepeatable != 0
}
