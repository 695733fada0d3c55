package upstash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash/internal/conn"
	"github.com/upbloom/upbloom/upstash/internal/quiet"
)

// sender sends calls to one database.
type sender struct {
	settings

	endpoint     endpoint
	root         string // the URL of a single command
	auth         **hidden[auth]
	transport    Transport
	timed        timedTransport // the transport, if it is one
	tokens       syncTokens
	budget       budget
	scripts      scriptSupport
	everAnswered atomic.Bool // by HTTP, whatever it said
}

// auth is the token, alone and in the form of the header field.
type auth struct{ token, bearer string }

// observed reports whether an observer would see a label.
func (s *settings) observed() bool { return s.observer != nil || s.callObserver != nil }

// run sends the call until an attempt brings an answer, or no other may follow.
// It reports the call, as a whole, to the call observer.
func (s *sender) run(ctx context.Context, x *call) error {
	x.token = (*s.auth).v.token
	ctx, x.operation = synced.Take(ctx)
	if s.callObserver == nil {
		return s.persist(ctx, x)
	}
	e := Event{Label: LabelOf(ctx), Command: x.name, Commands: x.commands, Start: time.Now()}
	x.total = &e
	e.Err = s.persist(ctx, x)
	e.Duration = time.Since(e.Start)
	s.callObserver(ctx, e)
	return e.Err
}

// persist makes attempts, with pauses between them. ending.retryable says whether
// another may follow.
func (s *sender) persist(ctx context.Context, x *call) error {
	for retries := 0; ; retries++ {
		e := s.attemptInForm(ctx, x)
		if e.err == nil {
			s.budget.giveBack()
			return nil
		}
		if retries >= s.retries || ctx.Err() != nil || !e.retryable(x.traits) || !s.budget.take() {
			return x.failure(&e, e.err)
		}
		if !sleep(ctx, s.pause(x.attempts, e.server)) {
			return x.failure(&e, interrupted(ctx, e.err))
		}
		x.earlierMayHaveRun = x.earlierMayHaveRun || e.outcome == outcomeUnknown
	}
}

// attemptInForm is attempt. If the server refuses the form of a script, it sends
// the next form at once.
func (s *sender) attemptInForm(ctx context.Context, x *call) ending {
	for {
		e := s.attempt(ctx, x)
		if !e.again {
			return e
		}
		x.form = e.form
		x.earlierMayHaveRun = x.earlierMayHaveRun || e.outcome == outcomeUnknown
	}
}

// attempt sends the request once, decodes the answer, and reports the attempt
// to the observers.
func (s *sender) attempt(ctx context.Context, x *call) ending {
	x.resp, x.body = Response{}, x.bodyIn(x.form, x.earlier+x.attempts)
	if x.kept != nil {
		x.resp.Body = x.kept.room[:0]
	}
	if ctx.Err() != nil {
		return ending{err: contextError(ctx, nil), outcome: outcomeNotSent}
	}
	if len(x.body) > s.maxRequest {
		return ending{err: s.tooLong(len(x.body)), outcome: outcomeNotSent, final: true}
	}
	x.attempts++
	x.sent = time.Now()
	end := s.sendAndDecode(ctx, x)
	if x.script != nil {
		s.scripts.learn(x.script, x.form, x.traits, &end)
		if end.again {
			end.server.outcome = judge(x.traits, x.earlierMayHaveRun, end.outcome)
		}
	}
	if s.observed() {
		s.report(ctx, x, &end)
	}
	return end
}

// learn takes note of how the server took a script in a form. If it refused the
// form, e gets the one to send instead. A script can return the same words as an
// error of its own. So the words count only if the error proves that nothing
// changed, or if the script may run twice.
//
// It decides by what this very command carried: others may have learned the same
// meanwhile.
func (k *scriptSupport) learn(s *Script, form scriptForm, t traits, e *ending) {
	if e.err == nil {
		k.ran(s, form)
	}
	if e.server == nil {
		return
	}
	if refused := s.refused(form, e.server); refused != 0 {
		changedNothing := e.outcome == outcomeRefused
		k.note(s, form, refused, e.server, changedNothing)
		e.form, e.again = form&^refused, changedNothing || t&traitRepeatable != 0
	}
}

func (s *sender) report(ctx context.Context, x *call, end *ending) {
	e := Event{
		Label: LabelOf(ctx), Command: x.name, Commands: x.commands, Attempt: x.attempts,
		StatusCode: x.resp.StatusCode, Start: x.sent, Duration: time.Since(x.sent),
		BytesOut: len(x.body), BytesIn: len(x.resp.Body),
	}
	if end.err != nil {
		e.Err = x.failure(end, end.err)
	}
	e.count(x, end)
	if x.total != nil {
		x.total.add(e)
	}
	if s.observer != nil {
		s.observer(ctx, e)
	}
}

// tooLong is the error of a request that is longer than the limit.
func (s *settings) tooLong(bytes int) error {
	return fmt.Errorf("%w, or raise WithMaxRequest if it allows more (the request has %d bytes, the limit is %d)",
		ErrRequestTooLarge, bytes, s.maxRequest)
}

// sendAndDecode sends the request and decodes the answer.
func (s *sender) sendAndDecode(ctx context.Context, x *call) ending {
	sent, mark := s.prepare(x)
	if e := s.roundTrip(ctx, x); e.err != nil {
		if !s.everAnswered.Load() {
			e.askAboutRedis()
		}
		return e
	}
	if !s.everAnswered.Load() { // most often a load is all
		s.everAnswered.Store(true)
	}
	if !s.noSyncToken {
		if !x.operation.Looks() {
			s.tokens.store(x.resp.syncToken, sent, mark, x.traits&traitRead != 0)
		}
		if x.operation != nil && isSyncToken(x.resp.syncToken) {
			x.operation.Answered(x.resp.syncToken)
		}
	}
	if err := x.decode(); err != nil {
		e := answerEnding(x.traits, err)
		e.askAbout(s.endpoint, noMessage(len(x.resp.Body)))
		return e
	}
	return ending{}
}

// prepare writes the request again for each attempt, because the sync token may
// have changed. It returns the token and its mark.
func (s *sender) prepare(x *call) (token string, mark uint64) {
	h := append(x.headers[:0], Header{"Content-Type", "application/json"},
		Header{"Authorization", (*s.auth).v.bearer})
	if !s.noSyncToken {
		token, mark = s.tokens.load()
		if earlier := x.operation.Token(); earlier != "" {
			token, mark = earlier, noMark
		}
		x.resp.sentToken = token
		h = append(h, Header{"Upstash-Sync-Token", token})
	}
	if x.resp2 {
		h = append(h, Header{"Upstash-Response-Format", "resp2"})
	} else if x.base64 {
		h = append(h, Header{"Upstash-Encoding", "base64"})
	}
	url := s.root
	if x.raw != "" {
		url = s.endpoint.base + x.raw
		h[0].Value = "application/octet-stream"
	} else if x.path != "/" {
		url = s.endpoint.base + x.path
	}
	x.req = Request{URL: url, Header: h, Body: x.body, MaxResponse: s.maxResponse}
	return token, mark
}

// roundTrip gives the request to the transport, for no longer than the timeout.
func (s *sender) roundTrip(ctx context.Context, x *call) ending {
	limit := max(s.timeout, x.timeout)
	if s.timeout == 0 {
		limit = 0
	}
	var err error
	var tryCtx context.Context // with the limit; nil if the transport itself watches it
	if s.timed != nil {
		err = s.timed.roundTripWithin(ctx, x.sent, limit, &x.req, &x.resp)
	} else {
		tryCtx = ctx
		if limit > 0 {
			var cancel context.CancelFunc
			tryCtx, cancel = withTimeout(ctx, limit)
			defer cancel()
		}
		err = s.transport.RoundTrip(tryCtx, &x.req, &x.resp)
	}
	if err == nil {
		return ending{}
	}
	return x.networkEnding(ctx, tryCtx, limit, err)
}

// A timedTransport itself watches the limit of an attempt.
type timedTransport interface {
	roundTripWithin(ctx context.Context, now time.Time, limit time.Duration, req *Request, resp *Response) error
}

// networkEnding is the ending of an attempt without a whole answer. If the
// caller's context has ended, the error is the context's; else it may be that of
// the limit.
func (x *call) networkEnding(ctx, tryCtx context.Context, limit time.Duration, err error) ending {
	e, question := ending{err: err, outcome: outcomeUnknown}, ""
	// Only an error made by NotSent itself proves that nothing was sent.
	if mark, ok := err.(*notSentError); ok {
		e.err, e.outcome = mark.err, outcomeNotSent
		question = conn.Question(e.err) // about what is wrong most often then, over any transport
	}
	e.final = conn.Permanent(e.err) || errors.Is(e.err, ErrNoTransport) || errors.Is(e.err, ErrResponseTooLarge)
	// It wraps only errors of the network and the system that say no more than its text.
	e.err = quiet.Error(x.cover([]string{e.err.Error()})[0], e.err)
	if isOver(ctx) {
		e.err = contextError(ctx, e.err)
		return e
	}
	e.err = limitError(tryCtx, limit, e.err)
	// An attempt that took too long says enough.
	if question != "" && !errors.Is(e.err, context.DeadlineExceeded) {
		e.err = fmt.Errorf("%w: %s", e.err, question)
	}
	return e
}

// limitError returns err, with the limit if that ended the attempt. tryCtx is nil if
// the transport watched it.
func limitError(tryCtx context.Context, limit time.Duration, err error) error {
	if tryCtx != nil {
		if !isOver(tryCtx) {
			return err
		}
		if _, cause := endOf(tryCtx); !errors.Is(cause, context.DeadlineExceeded) {
			return cause // the host has no timer for it
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded): // it may say what was waited for
	case tryCtx != nil, limit > 0 && errors.Is(err, os.ErrDeadlineExceeded):
		err = context.DeadlineExceeded
	default:
		return err
	}
	return fmt.Errorf("no answer within %v (WithTimeout): %w", limit, err)
}

// interrupted returns the error of a call that ended in the pause after err.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err // its deadline would have come during the pause
	}
	return &interruptedError{contextError(ctx, nil), err}
}

// maxLate is how long the end of a context may take to come after its deadline.
const maxLate = time.Second

// isOver reports whether ctx has ended. The network has a timer of its own for
// the deadline of ctx, which may go off first. Then isOver waits for the end of
// ctx, because only an ended context has a cause.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	if ctx.Err() != nil || !ok || time.Now().Before(deadline) {
		return ctx.Err() != nil
	}
	late, cancel := withTimeout(context.Background(), maxLate)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-late.Done():
	}
	return true
}

// endOf returns the error and the cause of a context that is over.
func endOf(ctx context.Context) (err, cause error) {
	if err = ctx.Err(); err == nil {
		return context.DeadlineExceeded, context.DeadlineExceeded
	}
	return err, context.Cause(ctx)
}

// contextError returns the cause of a context that is over: errors.Is(err,
// context.Canceled) then holds whatever the network said.
func contextError(ctx context.Context, err error) error {
	ended, cause := endOf(ctx)
	if errors.Is(err, cause) && errors.Is(err, ended) {
		return err
	}
	if errors.Is(cause, ended) {
		return cause
	}
	return fmt.Errorf("%w: %w", ended, cause)
}

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
	earlier   int               // attempts at the commands before this call
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
	if m.batch != nil && n > m.earlier {
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

	attempts          int
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

// failure returns the caller's error for the ending of the last attempt. cause
// is its error, or wraps it with what ended the call in the pause after it.
func (x *call) failure(e *ending, cause error) error {
	if e.server != nil && cause == e.err {
		return e.server
	}
	return &CallError{
		Command: x.name, Attempts: x.attempts, StatusCode: x.resp.StatusCode, Err: cause,
		outcome: judge(x.traits, x.earlierMayHaveRun, e.outcome),
	}
}

// noMessage is the message for a response that has none of its own.
func noMessage(bytes int) string {
	return fmt.Sprintf("no message from the REST API (%d bytes of something else):"+
		" a proxy may have answered; check the URL, or try again later", bytes)
}

// ending is how an attempt failed. Where the transport or the server said it,
// it is noted once what is known of the commands. Nothing is read out of err
// later: it may wrap the error of another call, such as the cause of a context.
type ending struct {
	err     error  // what the caller is told; nil if the attempt brought an answer
	server  *Error // err, if it is an answer of the server
	outcome outcome
	final   bool // another attempt would end in the same way

	again bool       // the server refused the form of the script
	form  scriptForm // the one to send then
}

// askAboutRedis adds a question if the client never had an answer: Redis itself
// closes the connection when it sees HTTP, and waits for more of a TLS handshake.
func (e *ending) askAboutRedis() {
	unanswered := errors.Is(e.err, errNoAnswer) || errors.Is(e.err, io.EOF) // as net/http says
	if e.outcome == outcomeUnknown && unanswered {
		e.err = fmt.Errorf("%w: is the URL that of a REST API, and not of Redis itself?", e.err)
	} else if errors.Is(e.err, conn.ErrSilentHandshake) {
		e.err = fmt.Errorf("%w: is it Redis' own port, and not that of its REST API?", e.err)
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

// askAbout adds a question to an error that a wrong scheme or path in the URL may
// have caused. An error that says more than ERR needs none. noMessage is what an
// answer without a message is said to have.
func (e *ending) askAbout(u endpoint, noMessage string) {
	q := "the URL has a path, " + u.path + ": is it right?"
	s := e.server
	switch {
	case s != nil && s.StatusCode == 400 && !u.tls && s.Message == noMessage:
		s.question = "should the URL begin with https://?"
	case u.path == "":
	case s == nil && errors.Is(e.err, ErrBadResponse):
		e.err = fmt.Errorf("%w: %s", e.err, q)
	case s == nil || s.StatusCode != 400 && s.StatusCode != 404:
	case s.kind() == nil && (s.Code() == "" || s.Code() == "ERR"):
		s.question = q
	}
}

// retryable reports whether another attempt may follow.
func (e *ending) retryable(t traits) bool {
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

// count sets how many commands ran, and how many may have run. The attempt
// failed as end says, or brought answers, some of them refusals.
func (e *Event) count(x *call, end *ending) {
	if end.err != nil {
		if end.outcome == outcomeUnknown {
			e.MayHaveRun = e.Commands
		}
		return
	}
	e.Ran = e.Commands
	for _, env := range x.envelopes {
		if env.errMsg == nil {
			continue
		}
		e.Ran--
		if x.traits&traitScript != 0 {
			e.MayHaveRun++ // it may be the script that failed
		}
	}
}

// syncTokens keeps the token of the latest state this client has seen, for
// read-your-writes on a global database. Tokens cannot be compared, so the
// order of requests decides which replaces which. Of two overlapping writes,
// the one whose answer comes last wins, even if it is the older. Only
// serializing writes would avoid this, and it is not worth the wait.
type syncTokens struct {
	mu      sync.Mutex // an atomic pointer would be one allocation more for each token
	current string
	version uint64 // counts the tokens
}

// load returns the token to send, "" at first, and a mark for store.
func (t *syncTokens) load() (token string, mark uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current, t.version
}

// store keeps the token of an answer to a request that was sent with the token
// sent and its mark. The token of a write replaces any. That of a read replaces
// only the one it was sent with: the read may come from a replica that lacks a
// write that ended meanwhile.
func (t *syncTokens) store(token, sent string, mark uint64, read bool) {
	if token == sent || !isSyncToken(token) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !read || mark == t.version {
		t.current = token
		t.version++
	}
}

// noMark is the mark of a read that was sent with another token than the
// client's: its answer may be older than what the client has seen.
const noMark = math.MaxUint64

// maxSyncToken is far above the length of the API's tokens. It bounds what each
// request carries along.
const maxSyncToken = 1 << 10

// isSyncToken reports whether token can be sent back in a header. Any other
// would fail every call from then on.
func isSyncToken(token string) bool {
	for i := 0; i < len(token); i++ {
		if token[i] < ' ' || token[i] > '~' {
			return false
		}
	}
	return token != "" && len(token) <= maxSyncToken
}
