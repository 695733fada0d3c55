package upstash

import "errors"

// outcome is what is known of a command whose call has failed.
type outcome uint8

const (
	outcomeUnjudged outcome = iota // in an error that somebody else made
	outcomeNotSent                 // nothing reached the server
	outcomeRefused                 // the server said no: nothing changed
	outcomeRead                    // it may have run, but it changes nothing
	outcomeUnknown                 // sent, and nobody knows what came of it
	outcomeRan                     // it ran, and the answer is no use
)

// words ends the text of an error.
func (o outcome) words() string {
	switch o {
	case outcomeNotSent, outcomeRefused:
		return "; the command did not run"
	case outcomeUnknown:
		return "; the command may have run"
	}
	return ""
}

// judge is the one place that decides what is known of a command, alone in its
// request or one of a batch: from what it is, from whether an attempt before
// the last may have run it, and from what the last one ended in.
func judge(t traits, earlier bool, last outcome) outcome {
	switch {
	case !earlier && (last == outcomeNotSent || last == outcomeRefused):
		return last
	case t&traitRead != 0:
		return outcomeRead
	case last == outcomeRan:
		return outcomeRan
	}
	return outcomeUnknown
}

// attemptOutcome is what one attempt ended in. An error answer means that the
// command changed nothing, unless it was a script, which may have stopped half
// way. Any other status, and a 408 from a proxy, say nothing at all.
func attemptOutcome(t traits, err error) outcome {
	var server *Error
	switch {
	case isNotSent(err):
		return outcomeNotSent
	case !errors.As(err, &server):
		return outcomeUnknown
	case server.StatusCode == 408, server.StatusCode/100 != 2 && server.StatusCode/100 != 4:
		return outcomeUnknown
	case t&traitScript != 0 && server.StatusCode != 401 && server.StatusCode != 429:
		return outcomeUnknown
	}
	return outcomeRefused
}

// outcomeOf returns what an error was judged to be when it was made. One that
// was made elsewhere, in a test say, is judged as the only attempt of a write.
func outcomeOf(err error) outcome {
	var call *CallError
	var server *Error
	switch {
	case errors.As(err, &call):
		if call.outcome != outcomeUnjudged {
			return call.outcome
		}
	case errors.As(err, &server):
		if server.outcome != outcomeUnjudged {
			return server.outcome
		}
	case errors.Is(err, ErrArgument), errors.Is(err, ErrReadOnly),
		errors.Is(err, ErrClosed), errors.Is(err, ErrNoTransport):
		return outcomeNotSent
	}
	return judge(0, false, attemptOutcome(0, err))
}
