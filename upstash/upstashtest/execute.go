package upstashtest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

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
	b, seen := q.Batch, parseToken(q.token)
	if err := s.begin(ctx); err != nil {
		return outcome{}, err
	}
	defer s.end()
	s.db.ForReader(q.readOnly)
	if f.kind == kindEvict {
		s.evict(b)
	}
	vetted := make([]database.Failure, len(b.Cmds))
	for i, cmd := range b.Cmds {
		vetted[i] = s.vet(cmd, q.readOnly, f)
		if vetted[i] == "" && s.full && (database.Grows(cmd) || b.Form == wire.MultiExec) {
			vetted[i] = database.ErrFull
		}
		if vetted[i] != "" && b.Form == wire.MultiExec {
			return outcome{discarded: errExecAbort, state: max(seen, s.state)}, nil
		}
	}
	r := s.regionAt(q.arrival)
	db, state := s.choose(r, b, seen)
	var o outcome
	if b.Form == wire.MultiExec {
		o = s.runMulti(db, b.Cmds)
	} else {
		o.replies = make(database.Array, len(b.Cmds))
		for i, cmd := range b.Cmds {
			o.replies[i] = s.runOne(db, cmd, vetted[i])
		}
	}
	for _, r := range o.replies {
		if lost, bad := r.(database.Lost); bad {
			o.lost = lost
		}
	}
	if db == s.db {
		state = s.state
		if r != nil {
			o.latency = r.Latency
		}
	}
	o.state = max(seen, state)
	return o, nil
}

// vet returns the refusal of a command that may not run, or "".
func (s *Server) vet(cmd []string, readOnly bool, f Fault) database.Failure {
	refusal := s.db.Table().Vet(cmd, readOnly)
	if isOwn(cmd) {
		refusal = ""
		if readOnly {
			refusal = database.NoPermission(cmd[0])
		}
	}
	if refusal != "" {
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
			s.db.Do(del)
			s.noteWrite(del)
		}
	}
}

// runOne runs a single command. Only a command that reaches the database is
// counted.
func (s *Server) runOne(db database.DB, cmd []string, refused database.Failure) database.Reply {
	if refused == "" && !isOwn(cmd) {
		refused = database.OverLimit(db, cmd, uint64(s.cfg.maxRecord))
	}
	if refused != "" {
		return refused
	}
	if r, ok := s.own(cmd); ok {
		s.bill(cmd, database.Calls{})
		return r
	}
	before := db.Called()
	r := db.Do(cmd)
	s.bill(cmd, db.Called().Minus(before))
	s.noteWrite(cmd)
	return r
}

// runMulti runs a transaction. A command over a limit fails alone, like one
// that fails when it runs.
func (s *Server) runMulti(db database.DB, cmds [][]string) outcome {
	replies := make(database.Array, len(cmds))
	if _, ok := db.(*database.Memory); ok { // no other command can run in between
		for i, cmd := range cmds {
			replies[i] = s.runOne(db, cmd, "")
		}
		return outcome{replies: replies}
	}
	var run [][]string
	var at []int
	for i, cmd := range cmds {
		if r, ok := s.own(cmd); ok {
			s.bill(cmd, database.Calls{})
			replies[i] = r
			continue
		}
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
		s.noteWrite(run[i])
		replies[at[i]] = el
	}
	return outcome{replies: replies}
}
