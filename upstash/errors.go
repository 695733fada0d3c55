package upstash

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Errors of this client itself, and when they are returned.
var (
	// The platform is wasip1, or a js host without fetch or timers.
	ErrNoTransport = errors.New("upstash: no transport on this platform: pass one with WithTransport," +
		" e.g. httptransport.New(client) around the http.Client of your host's SDK")

	// The environment has a proxy for the host (HTTPS_PROXY, or HTTP_PROXY for
	// http://, without NO_PROXY), or one whose URL cannot be used. So it is in Node:
	// its fetch goes around a proxy, but for NODE_USE_ENV_PROXY=1 from Node 24 on.
	ErrProxy = errors.New("upstash: the environment has a proxy for this host (HTTPS_PROXY, HTTP_PROXY): pass" +
		" WithTransport(httptransport.New(nil)), which uses it (in Node set NODE_USE_ENV_PROXY=1)," +
		" or except the host with NO_PROXY")

	ErrResponseTooLarge = errors.New("upstash: response is larger than the limit: raise it with" +
		" WithMaxResponse, or ask for less at once")

	// A response is not JSON, was cut short, or has a result of another type or
	// length.
	ErrBadResponse = errors.New("upstash: unexpected response")

	// Nothing was sent.
	ErrReadOnly = errors.New("upstash: the client is read-only: make one without WithReadOnly" +
		" and with a full token")

	// A typed write is in place, but its answer may be that of a repetition.
	ErrMaybeRepeated = errors.New("upstash: the write is in place, but an earlier attempt may already have made it")

	ErrNil = errors.New("upstash: the reply is null: check IsNil first")

	// A command, URL, token or option cannot be used. Nothing was sent.
	ErrArgument = errors.New("upstash: bad argument")

	ErrClosed = errors.New("upstash: the client is closed: make a new one with New")
)

// Kinds of errors from the server. An [Error] matches at most one: by its status
// or code, or by its words if nothing better is documented.
var (
	// Status 401.
	ErrUnauthorized = errors.New("upstash: unauthorized: use the REST token of this database" +
		" (UPSTASH_REDIS_REST_TOKEN), not its password")

	// Code NOPERM, or Redis 7.0's words for a command of a script. A read-only token
	// may not run BITFIELD, even to read.
	ErrNoPermission = errors.New("upstash: the token has no permission for this command:" +
		" use a full token; a client with WithReadOnly looks up with a read-only one")

	// Status 429, but not ErrQuota.
	ErrRateLimited = errors.New("upstash: too many commands in too short a time: send fewer at a time")

	// The plan's requests are used up. It is not tried again.
	ErrQuota = errors.New("upstash: the plan's requests are used up: wait for the next period," +
		" or choose a larger plan")

	// Status 413, or the request is longer than the plan or [WithMaxRequest] allows.
	ErrRequestTooLarge = errors.New("upstash: the request is larger than the plan allows: send less at once")

	ErrRecordTooLarge = errors.New("upstash: the record would be larger than the plan allows")

	// Redis then refuses BITFIELD even to read, and every transaction
	// (ErrAborted), but not BITFIELD_RO.
	ErrOutOfMemory = errors.New("upstash: the database is full: delete keys, or choose a larger plan")

	// Code EXECABORT: none of the commands ran.
	ErrAborted = errors.New("upstash: the transaction was discarded: a command in it is wrong or not permitted," +
		" or the database is full (delete keys, or choose a larger plan); Pipeline returns the reason for each")
)

func argumentError(command, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrArgument, command, fmt.Sprintf(format, args...))
}

// Error is an error reply of the server, or of a proxy before it, returned as
// [*Error]. [errors.Is] finds its sentinel.
type Error struct {
	StatusCode int // of HTTP: 429 for a limit, 200 for a command that failed in a batch
	// Message has the server's words, with "…" for what may quote the request,
	// and escapes for what cannot be printed.
	Message    string
	Command    string        // its name, never its arguments
	RetryAfter time.Duration // the wait that the server asked for, or 0

	outcome  outcome
	refusal  refusal
	attempts int    // 0 if it is not known
	matches  error  // the sentinel, if this package judged the error, or nil
	question string // what may be wrong with the URL, or ""
}

// Code returns the message's first word if it is in capitals ("WRONGTYPE",
// "ERR"), else "".
func (e *Error) Code() string { return codeOf(e.Message) }

func (e *Error) Error() string {
	text := "upstash: " + e.Command + ": " + e.words()
	if e.attempts > 1 {
		text += fmt.Sprintf(", after %d attempts", e.attempts)
	}
	if o := e.judged(); o == outcomeUnknown {
		text += o.words()
	}
	return text
}

// words returns the text without the command's name, for use in a longer text.
func (e *Error) words() string {
	text := fmt.Sprintf("%s (HTTP status %d)", inner(e.Message), e.StatusCode)
	if kind := e.kind(); kind != nil {
		if _, remedy, ok := strings.Cut(strings.TrimPrefix(kind.Error(), "upstash: "), ": "); ok {
			text += ": " + remedy
		}
	}
	if e.question != "" {
		text += ": " + e.question
	}
	if e.RetryAfter > 0 { // rounded up to whole seconds
		text += fmt.Sprintf("; try again in %v", (e.RetryAfter + time.Second - 1).Truncate(time.Second))
	}
	return text
}

func (e *Error) Is(target error) bool {
	return e.kind() == target
}

// kind returns the sentinel of this error, or nil.
func (e *Error) kind() error {
	if e.outcome != outcomeUnjudged {
		return e.matches
	}
	return kindOf(e.StatusCode, e.Message)
}

// kindOf returns the sentinel for a server's words, before any redaction. The
// service reports its limits with the code ERR and documents no status for
// them, so only the words tell them apart.
func kindOf(status int, message string) error {
	says := func(words string) bool { return strings.Contains(ownWords(message), words) }
	switch code := codeOf(message); {
	case status == 401:
		return ErrUnauthorized
	case code == "NOPERM", says("The user executing the script can't "): // Redis 7.0
		return ErrNoPermission
	case code == "EXECABORT":
		return ErrAborted
	case code == "OOM", says("DB capacity quota exceeded"):
		return ErrOutOfMemory
	case says("max requests limit exceeded"), says("max daily request limit exceeded"):
		return ErrQuota
	case status == 429:
		return ErrRateLimited
	case status == 413, says("max request size exceeded"):
		return ErrRequestTooLarge
	case says("max single record size exceeded"), says("string exceeds maximum allowed size"):
		return ErrRecordTooLarge
	}
	return nil
}

// ownWords returns message without the arguments of an unknown command, which
// Redis quotes, cut at 128 bytes.
func ownWords(message string) string {
	own, _, _ := strings.Cut(message, argsFollow)
	return own
}

const argsFollow = ", with args beginning with:"

// codeOf returns the first word of a message if it is in capitals.
func codeOf(message string) string {
	word, _, _ := strings.Cut(message, " ")
	for i := 0; i < len(word); i++ {
		if word[i] < 'A' || word[i] > 'Z' {
			return ""
		}
	}
	return word
}

// CallError is the error of a call without a usable answer, returned as
// [*CallError].
type CallError struct {
	Command    string // its name, never its arguments
	Attempts   int    // how many times the request was tried
	StatusCode int    // of the last attempt, 0 if none came
	Err        error  // the cause: of the network, of a context (any error), or a sentinel

	outcome outcome // unjudged, and so unsafe, if another package made the error
}

func (e *CallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "upstash: %s: %s", e.Command, wordsOf(e.Err))
	if e.StatusCode != 0 && !hasStatus(e.Err) {
		fmt.Fprintf(&b, " (HTTP status %d)", e.StatusCode)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, ", after %d attempts", e.Attempts)
	}
	b.WriteString(e.outcome.words())
	return b.String()
}

func (e *CallError) Unwrap() error { return e.Err }

// hasStatus reports whether a cause's text has the status in it.
func hasStatus(cause error) bool {
	i, ok := cause.(*interruptedError)
	if ok {
		_, ok = i.last.(*Error)
	}
	return ok
}

// wordsOf returns a cause's text for use within another.
func wordsOf(err error) string {
	if server, ok := err.(*Error); ok {
		return server.words()
	}
	return inner(fmt.Sprint(err))
}

// inner returns a text without this module's prefixes, with one of which the whole
// text begins. A server's words, and those of a context's cause, may be any.
func inner(text string) string {
	for _, prefix := range []string{"upstash: ", "bloom: "} {
		text = strings.TrimPrefix(text, prefix)
		for _, before := range []string{": ", "\n", `\n`} {
			text = strings.ReplaceAll(text, before+prefix, before)
		}
	}
	for _, prefix := range []string{"upstash: ", "bloom: "} {
		text = strings.ReplaceAll(text, prefix, redacted+" ")
	}
	return text
}

// SafeToRetry reports whether err guarantees that the command changed nothing:
// it was never sent, was refused, or only reads. The outermost [*Error],
// [*CallError] or error with a method of this name answers; if an error wraps
// several, all of them must. For any other error, and for nil, it returns false.
func SafeToRetry(err error) bool {
	safe, known := verdict(err)
	return safe && known
}

// verdict returns what SafeToRetry says of err, and whether anything in err
// answers.
func verdict(err error) (safe, known bool) {
	switch err {
	case ErrArgument, ErrReadOnly, ErrClosed, ErrNoTransport, ErrProxy:
		return true, true
	}
	switch e := err.(type) {
	case *Error:
		return e.judged().safe(), true
	case *CallError:
		return e.outcome.safe(), true
	case *notSentError:
		return true, true
	case interface{ SafeToRetry() bool }:
		return e.SafeToRetry(), true
	case interface{ Unwrap() error }:
		return verdict(e.Unwrap())
	case interface{ Unwrap() []error }:
		safe = true
		for _, each := range e.Unwrap() {
			s, k := verdict(each)
			safe, known = safe && (s || !k), known || k
		}
	}
	return safe, known
}

// judged returns what is known of the command. If the error was made elsewhere,
// for example in a test, it is judged as the only attempt of a write.
func (e *Error) judged() outcome {
	if e.outcome != outcomeUnjudged {
		return e.outcome
	}
	return answerOutcome(0, e)
}

// outcome is what is known of a command whose call has failed.
type outcome uint8

const (
	outcomeUnjudged outcome = iota // in an error from outside this package
	outcomeNotSent                 // nothing reached the server
	outcomeRefused                 // the server said no: nothing changed
	outcomeRead                    // it may have run, but it changes nothing
	outcomeUnknown                 // sent, and whether it ran is not known
	outcomeRan                     // it ran, but its answer could not be used
)

// words returns the end of an error's text.
func (o outcome) words() string {
	switch o {
	case outcomeNotSent, outcomeRefused:
		return "; the command did not run"
	case outcomeUnknown:
		return "; the command may have run"
	}
	return ""
}

// safe reports whether the command certainly changed nothing.
func (o outcome) safe() bool {
	return o == outcomeNotSent || o == outcomeRefused || o == outcomeRead
}

// judge decides what is known of a command, alone in its request or in a batch.
// Nothing else decides it. earlier says whether an attempt before the last may
// have run it.
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

// answerOutcome returns what an answer says of the one attempt that it ended. A
// command that fails with status 2xx or 4xx has changed nothing. A script may
// have: it can stop half way, unless the server did not take it at all, or
// discarded the transaction with it. Other statuses say nothing, and nor does 408,
// which a proxy sends.
func answerOutcome(t traits, e *Error) outcome {
	switch {
	case e.StatusCode == 408, e.StatusCode/100 != 2 && e.StatusCode/100 != 4:
		return outcomeUnknown
	case t&traitScript == 0, e.refusal != noRefusal, e.Command == transaction && e.matches == ErrAborted:
		return outcomeRefused
	case e.StatusCode == 401, e.StatusCode == 413, e.StatusCode == 429:
		return outcomeRefused
	}
	return outcomeUnknown
}

// transaction is what an error of a whole transaction names.
const transaction = "MULTI-EXEC"

// refusal is what of a script the server did not take, by Redis's own words.
type refusal uint8

const (
	noRefusal        refusal = iota
	refusedCommand           // it is unknown or forbidden, or has no text for its SHA-1
	refusedFirstLine         // the flags in it are unknown
	refusedKeys              // they are in different slots of a cluster
)

// serverError is an error as it came.
type serverError struct {
	words   string
	refusal refusal // of a whole command, else noRefusal
}

// keyLocking is the first line of a Script. A server may refuse it.
const keyLocking = "#!lua flags=allow-key-locking\n"

// refusalOf returns what a server's words, before any redaction, refuse of a
// script that was sent with a command and a first argument: its text or its
// SHA-1. The words must be Redis's, whole, and about what was sent. Redis adds
// "script: SHA, on @user_script:1." to what a script raises, but not to what it
// returns by redis.error_reply.
func refusalOf(message, command, first string) refusal {
	message = strings.TrimRight(message, " ") // as Redis ends some
	switch message {
	case "NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT No matching script.":
		if strings.HasPrefix(command, "EVALSHA") {
			return refusedCommand
		}
	case "ERR Unexpected flag in script shebang: allow-key-locking", // Redis 7
		"ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'":
		if strings.HasPrefix(first, keyLocking) {
			return refusedFirstLine
		}
	case "CROSSSLOT Keys in request don't hash to the same slot":
		return refusedKeys
	}
	if forbids(message, command) || isUnknown(message, command, first) {
		return refusedCommand
	}
	return noRefusal
}

// forbids reports whether the words say that the user may not run the command.
func forbids(message, command string) bool {
	user, what, _ := strings.Cut(message, " has no permissions to run the '")
	name, rest, closed := strings.Cut(what, "' command")
	if !closed || !strings.EqualFold(name, command) || rest != "" && rest != " or its subcommand" {
		return false
	}
	named, isNamed := strings.CutPrefix(user, "NOPERM User ")
	return user == "NOPERM this user" || isNamed && !strings.Contains(named, " ")
}

// isUnknown reports whether the words say that there is no such command. Redis
// before 5 quotes no arguments, and before 7 with other marks.
func isUnknown(message, command, first string) bool {
	words, ok := strings.CutPrefix(message, "ERR unknown command ")
	name, args, more := strings.Cut(words, argsFollow)
	for _, quote := range []string{"'", "`"} {
		if ok && strings.EqualFold(name, quote+command+quote) {
			return !more || strings.HasPrefix(args, " "+quote+first+quote) &&
				strings.HasSuffix(strings.TrimRight(args, ","), quote)
		}
	}
	return false
}

// interruptedError is the error of a context that ended in the pause after an
// attempt.
type interruptedError struct{ ended, last error }

func (e *interruptedError) Error() string { return e.ended.Error() + ", after: " + wordsOf(e.last) }

func (e *interruptedError) Unwrap() []error { return []error{e.ended, e.last} }

// longest is the longest Retry-After that is read: 68 years.
const longest = math.MaxInt32 * time.Second

// parseRetryAfter reads both forms of the field: seconds, and the date of
// proxies. It returns 0 for a text that is neither.
func parseRetryAfter(s string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	} else if errors.Is(err, strconv.ErrRange) {
		return longest
	}
	// The forms of a date, of which the last two are old: RFC 9110, section 5.6.7.
	for _, form := range []string{
		"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC,
	} {
		if date, err := time.Parse(form, s); err == nil {
			return min(max(0, date.Sub(now)), longest)
		}
	}
	return 0
}
