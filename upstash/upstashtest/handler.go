package upstashtest

import (
	"bytes"
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

const textMethod = "ERR method not allowed: use HEAD, GET, POST or PUT"

// drainLimit is how many bytes of a body the server reads beyond its limit.
// Some clients write their whole body before they read the answer.
const drainLimit = 64 << 20

// mostAnnounced is the most bytes of memory a Content-Length alone gets a
// request. The rest is allocated as the body arrives.
const mostAnnounced = 1 << 20

// answer is a whole response.
type answer struct {
	status      int
	contentType string
	syncToken   string
	body        []byte
}

// request is a request after all checks.
type request struct {
	wire.Batch
	readOnly bool
	enc      wire.Encoding
	token    string // the sync token, for reading one's own writes
	arrival  string // the address where it arrived
}

// serve answers one request. It checks the method, the token, the size, the
// encoding and the form, in this order. Then it draws the fault and runs the
// commands.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	handle(r.Context().Value(connKey{}), true)
	s.count.requests.Add(1)
	defer s.sayPanic()
	allowOrigins(w.Header())
	if r.Method == http.MethodOptions {
		preflight(w, r)
		return
	}
	if s.faults.early() {
		s.refuseEarly(w)
		return
	}
	q, refusal := s.parse(r)
	if refusal != nil {
		s.write(w, *refusal)
		return
	}
	f := s.faults.next(q.Batch, func() RequestInfo { return s.info(q) })
	var a answer
	if f.Executes() {
		a = s.execute(r.Context(), q, f)
	}
	s.reply(w, r, q, f, a)
}

// sayPanic fails the test if a function of its own panics. net/http would only close
// the connection, as faults do.
func (s *Server) sayPanic() {
	if p := recover(); p != nil {
		if p != http.ErrAbortHandler {
			s.fail("a request panicked: %v\n%s", p, debug.Stack())
		}
		panic(p)
	}
}

// parse checks a request and reads its commands. If a check fails, it returns
// the refusal.
func (s *Server) parse(r *http.Request) (request, *answer) {
	var q request
	var ok bool
	switch r.Method {
	case http.MethodHead, http.MethodGet, http.MethodPost, http.MethodPut:
	default:
		return q, refuse(q.enc, http.StatusMethodNotAllowed, textMethod)
	}
	if q.readOnly, ok = s.authorize(r); !ok {
		return q, refuse(q.enc, http.StatusUnauthorized, textUnauthorized)
	}
	body, tooLong, err := s.readBody(r)
	if err != nil { // cut short, and the missing bytes could change the command
		return q, refuse(q.enc, http.StatusBadRequest, "ERR the request body ended too early")
	}
	if tooLong > 0 {
		return q, refuse(q.enc, http.StatusRequestEntityTooLarge, tooLarge(s.cfg.maxRequest, tooLong))
	}
	enc, err := wire.ParseEncoding(r.Header)
	if err != nil {
		return q, refuse(q.enc, http.StatusBadRequest, err.Error())
	}
	if q.Batch, err = wire.Parse(r, body); err != nil {
		return q, refuse(enc, http.StatusBadRequest, err.Error())
	}
	if enc.RESP2 && q.Form == wire.MultiExec {
		return q, refuse(q.enc, http.StatusBadRequest,
			"ERR the resp2 response format is not supported for /multi-exec")
	}
	q.enc, q.token, q.arrival = enc, r.Header.Get(wire.HeaderSyncToken), arrival(r)
	return q, nil
}

// readBody reads the body, or returns its length if it is above the limit.
func (s *Server) readBody(r *http.Request) (body []byte, tooLong int64, err error) {
	var read bytes.Buffer
	read.Grow(int(max(0, min(r.ContentLength, mostAnnounced))) + bytes.MinRead)
	_, err = read.ReadFrom(io.LimitReader(r.Body, s.cfg.maxRequest+1))
	body = read.Bytes()
	s.count.bytesIn.Add(int64(len(body)))
	if err != nil || int64(len(body)) <= s.cfg.maxRequest {
		return body, 0, err
	}
	rest, _ := io.Copy(io.Discard, io.LimitReader(r.Body, drainLimit))
	s.count.bytesIn.Add(rest)
	return nil, max(r.ContentLength, int64(len(body))+rest), nil
}

func tooLarge(limit, actual int64) string {
	return fmt.Sprintf("ERR max request size exceeded. Limit: %d bytes, Actual: %d bytes. "+
		"See https://upstash.com/docs/redis/troubleshooting/max_request_size_exceeded for details",
		limit, actual)
}

func refuse(e wire.Encoding, status int, text string) *answer {
	return &answer{status: status, contentType: e.ContentType(), body: e.Failure(text)}
}

func (s *Server) write(w http.ResponseWriter, a answer) {
	s.writeHeader(w, a)
	_, _ = w.Write(a.body)
}

// writeHeader sends all but the body. It counts the body first: a client that
// has read the answer must find it counted.
func (s *Server) writeHeader(w http.ResponseWriter, a answer) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	if a.syncToken != "" {
		h.Set(wire.HeaderSyncToken, a.syncToken)
	}
	s.count.bytesOut.Add(int64(len(a.body)))
	w.WriteHeader(a.status)
}

const textUnauthorized = "WRONGPASS invalid or missing auth token"

// authorize reads the token from the header or, if there is none, from the
// query, and reports what it allows.
func (s *Server) authorize(r *http.Request) (readOnly, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = queryToken(r.URL.RawQuery)
	}
	if same(token, s.cfg.token) {
		return false, true
	}
	readOnly = same(token, s.cfg.readOnlyToken)
	return readOnly, readOnly
}

func queryToken(query string) string {
	for part := range strings.SplitSeq(query, "&") {
		if v, ok := strings.CutPrefix(part, wire.TokenParameter+"="); ok {
			token, _ := url.QueryUnescape(v)
			return token
		}
	}
	return ""
}

// same reports whether a token is the wanted one. It never accepts an empty
// token, because a server may have no read-only token.
func same(got, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// The service lets web pages of any origin call it with a read-only token. It
// does not document the headers it sends for that. These let a browser send
// every form of a request.

// allowOrigins lets pages of any origin read the answer.
func allowOrigins(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", wire.HeaderSyncToken+", Retry-After")
}

// preflight answers OPTIONS, which a browser sends first, without a token.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "HEAD, GET, POST, PUT, OPTIONS")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

const errExecAbort = database.Failure("EXECABORT Transaction discarded because of previous errors.")

// outcome is the result of a request's commands.
type outcome struct {
	replies   database.Array   // one for each command
	discarded database.Failure // why a transaction did not run; replies is then empty
	lost      database.Lost    // why the outcome of a command is unknown
	state     uint64           // named by the answer's sync token
	latency   time.Duration    // a round trip to the primary
}

// execute runs a request's commands and makes the answer, with the replies
// changed as the fault says.
func (s *Server) execute(ctx context.Context, q request, f Fault) answer {
	o, err := s.run(ctx, q, f)
	if err != nil {
		return *refuse(q.enc, http.StatusServiceUnavailable, "ERR "+err.Error())
	}
	s.pause(ctx, o.latency)
	a := answer{
		status:      http.StatusOK,
		contentType: q.enc.ContentType(),
		syncToken:   formatToken(o.state),
	}
	if o.lost != "" {
		return *refuse(q.enc, http.StatusInternalServerError, string(o.lost))
	}
	if o.discarded != "" {
		a.status, a.body = http.StatusBadRequest, q.enc.Failure(string(o.discarded))
		return a
	}
	if _, bad := o.replies[0].(database.Failure); bad && q.Form == wire.Command {
		a.status = http.StatusBadRequest
	}
	a.body = q.enc.Answer(q.Form, f.bend(q.Form, o.replies))
	return a
}

// run executes the commands of a request. No command of another request runs
// between them. The outcome's state is at least as new as the one in the
// client's sync token.
func (s *Server) run(ctx context.Context, q request, f Fault) (outcome, error) {
	if err := s.begin(ctx); err != nil {
		return outcome{}, err
	}
	defer s.end()
	s.db.ForReader(q.readOnly)
	if f.kind == kindEvict {
		s.evict(q.Batch)
	}
	seen := parseToken(q.token)
	refused, discarded := s.vetAll(q, f)
	if discarded {
		return outcome{discarded: errExecAbort, state: max(seen, s.state)}, nil
	}
	near := s.regionAt(q.arrival)
	db := s.choose(near, q.Batch, seen)
	o := s.runOn(db, q.Batch, refused)
	state := s.state
	if db != s.db {
		state = near.state
	} else if near != nil {
		o.latency = near.Latency
	}
	o.state = max(seen, state)
	return o, nil
}

// vetAll returns the refusal of each command, or "". One discards a transaction.
func (s *Server) vetAll(q request, f Fault) (refused []database.Failure, discarded bool) {
	multi := q.Form == wire.MultiExec
	refused = make([]database.Failure, len(q.Cmds))
	for i, cmd := range q.Cmds {
		refused[i] = s.vet(cmd, q.readOnly, f)
		if refused[i] == "" && s.full && (database.Grows(cmd) || multi) {
			refused[i] = database.ErrFull
		}
		if refused[i] != "" && multi {
			return nil, true
		}
	}
	return refused, false
}

// runOn runs the commands that are not refused on db.
func (s *Server) runOn(db database.DB, b wire.Batch, refused []database.Failure) (o outcome) {
	if b.Form == wire.MultiExec {
		o = s.runMulti(db, b.Cmds)
	} else {
		o.replies = make(database.Array, len(b.Cmds))
		for i, cmd := range b.Cmds {
			o.replies[i] = s.runOne(db, cmd, refused[i])
		}
	}
	for _, r := range o.replies {
		if lost, bad := r.(database.Lost); bad {
			o.lost = lost
		}
	}
	return o
}

// vet returns the refusal of a command that may not run, or "".
func (s *Server) vet(cmd []string, readOnly bool, f Fault) database.Failure {
	if refusal := s.db.Table().Vet(cmd, readOnly); refusal != "" {
		return refusal
	}
	denied := f.kind == kindNoPerm && strings.EqualFold(cmd[0], f.text)
	if denied || s.deny != nil && s.deny(cmd) {
		return database.NoPermission(cmd[0])
	}
	return ""
}

// evict deletes the keys of the commands, as the fault Evict promises.
func (s *Server) evict(b wire.Batch) {
	for _, cmd := range b.Cmds {
		for _, key := range database.Keys(cmd) {
			del := []string{"DEL", key}
			s.noteWrite(del, s.db.Do(del))
		}
	}
}

// runOne runs a single command. Only a command that reaches the database is
// counted.
func (s *Server) runOne(db database.DB, cmd []string, refused database.Failure) database.Reply {
	if refused == "" {
		refused = database.OverLimit(db, cmd, uint64(s.cfg.maxRecord))
	}
	if refused != "" {
		return refused
	}
	before := db.Called()
	r := db.Do(cmd)
	s.bill(cmd, db.Called().Minus(before))
	s.noteWrite(cmd, r)
	return r
}

// runMulti runs a transaction. A command over a limit fails alone, like one
// that fails when it runs.
func (s *Server) runMulti(db database.DB, cmds [][]string) outcome {
	switch db := db.(type) {
	case *database.Redis:
		return s.runInRedis(db, cmds)
	case *database.Memory:
		defer db.Freeze()()
	}
	replies := make(database.Array, len(cmds))
	for i, cmd := range cmds { // no other command can run in between
		replies[i] = s.runOne(db, cmd, "")
	}
	return outcome{replies: replies}
}

func (s *Server) runInRedis(db *database.Redis, cmds [][]string) outcome {
	replies := make(database.Array, len(cmds))
	var run [][]string
	var at []int
	for i, cmd := range cmds {
		if f := database.OverLimit(db, cmd, uint64(s.cfg.maxRecord)); f != "" {
			replies[i] = f
			continue
		}
		run, at = append(run, cmd), append(at, i)
	}
	if len(run) == 0 {
		return outcome{replies: replies}
	}
	before := db.Called()
	r := db.Multi(run)
	called := db.Called().Minus(before)
	switch r := r.(type) {
	case database.Failure:
		return outcome{discarded: r}
	case database.Lost:
		return outcome{lost: r}
	}
	for i, el := range r.(database.Array) {
		s.bill(run[i], called)
		called = database.Calls{} // the first command's bill has those of all scripts
		s.noteWrite(run[i], el)
		replies[at[i]] = el
	}
	return outcome{replies: replies}
}

// bill counts a command after it ran, and those of its script if it has one.
func (s *Server) bill(cmd []string, called database.Calls) {
	copies := int64(1 + len(s.regions))
	own := int64(1)
	if s.db.Table().IsWrite(cmd) && !database.RunsScript(cmd) {
		own = copies
	}
	s.count.commands.Add(1)
	s.count.called.Add(called.Reads + called.Writes)
	s.count.billed.Add(own + called.Reads + called.Writes*copies)
}

func (s *Server) info(q request) RequestInfo {
	names := make([]string, len(q.Cmds))
	for i, c := range q.Cmds {
		names[i] = strings.ToUpper(c[0])
	}
	return RequestInfo{
		Form: string(q.Form), Commands: names,
		Writes: slices.ContainsFunc(q.Cmds, s.db.Table().MayChange),
	}
}
