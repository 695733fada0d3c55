package upstashtest

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// replica simulates the nearest region of a global database: a copy that
// applies the primary's writes late.
type replica struct {
	db      *database.Memory
	lag     int        // writes that it stays behind
	pending [][]string // writes not applied yet, oldest first
	state   uint64     // writes applied
}

// SetReplicaLag makes reads see the database as it was the given number of
// writes ago; math.MaxInt keeps it as it is until CatchUp. 0, the default, ends
// it. It works on the default backend only, else it ends the test.
//
// A request in which no command is a write goes to the replica, unless its
// upstash-sync-token names a state that the replica has not reached: then it
// goes to the primary, as does every request with a write, a BITFIELD that
// only reads among them. An answer's token names a state at least as new as the
// request's. Scripts and commands that choose at random may leave the replica
// with other data than the primary.
func (s *Server) SetReplicaLag(writes int) {
	s.alone("making a replica", func() error {
		if writes <= 0 {
			s.replica = nil
			return nil
		}
		if s.replica == nil {
			primary, ok := s.db.(*database.Memory)
			if !ok {
				return errors.New("a real Redis has no lagging replica here: use the default backend")
			}
			s.replica = &replica{db: primary.Copy(1), state: s.state}
		}
		s.replica.lag = writes
		s.replica.apply(writes)
		return nil
	})
}

// CatchUp lets the replica apply all writes so far. Without a lagging replica
// it does nothing.
func (s *Server) CatchUp() {
	s.alone("catching up", func() error {
		if s.replica != nil {
			s.replica.apply(0)
		}
		return nil
	})
}

// apply runs pending writes until only keep are left.
func (r *replica) apply(keep int) {
	for len(r.pending) > keep {
		r.db.Do(r.pending[0])
		r.pending = r.pending[1:]
		r.state++
	}
}

// reset empties the replica, which then is at the given state.
func (r *replica) reset(state uint64) error {
	r.pending, r.state = nil, state
	return r.db.Flush()
}

// noteWrite advances the state after a command ran on the primary, and passes
// writes on.
func (s *Server) noteWrite(cmd []string) {
	if !database.IsWrite(cmd) {
		return
	}
	s.state++
	if r := s.replica; r != nil {
		r.pending = append(r.pending, cmd)
		r.apply(r.lag)
	}
}

// choose picks the database for a request whose token names the state seen.
func (s *Server) choose(b batch, seen uint64) database.DB {
	if s.replica == nil || b.writes() || seen > s.replica.state {
		return s.db
	}
	return s.replica.db
}

// stateOf names how far db has come.
func (s *Server) stateOf(db database.DB) uint64 {
	if s.replica != nil && db == s.replica.db {
		return s.replica.state
	}
	return s.state
}

// A sync token is the number of writes that a database has seen, as 16
// hexadecimal digits: tokens sort as strings in the order of the states that
// they name. To clients it is opaque.

func formatToken(state uint64) string { return fmt.Sprintf("%016x", state) }

// parseToken gives the state that a token names: 0 for none, and for what is
// no token of a Server, so that a client which garbles it reads stale data.
func parseToken(token string) uint64 {
	if len(token) != 16 {
		return 0
	}
	state, err := strconv.ParseUint(token, 16, 64)
	if err != nil {
		return 0
	}
	return state
}
