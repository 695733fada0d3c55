package upstashtest

import (
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// replica is a copy that applies the primary's writes late.
type replica struct {
	db      *database.Memory
	pending []write // not applied yet, oldest first
	state   uint64  // writes applied
}

// write is a command that ran on the primary.
type write struct {
	cmd  []string
	full bool // the database was full: a script may have been refused
}

// apply runs pending writes until only keep are left.
func (r *replica) apply(keep int) {
	for len(r.pending) > keep {
		r.db.Again(r.pending[0].cmd, r.pending[0].full)
		r.pending = r.pending[1:]
		r.state++
	}
}

// reset empties the replica and sets its state.
func (r *replica) reset(state uint64) error {
	r.pending, r.state = nil, state
	return r.db.Flush()
}

// noteWrite is called after a command ran on the primary. If it is a write, it
// advances the state and passes the write on to the regions.
func (s *Server) noteWrite(cmd []string) {
	if !s.db.Table().IsWrite(cmd) {
		return
	}
	s.state++
	for _, r := range s.regions {
		r.pending = append(r.pending, write{cmd, s.full})
		r.apply(r.Lag)
	}
}

// A sync token is the number of writes a database has applied, as 16
// hexadecimal digits. Compared as strings, tokens have the order of their
// states. To clients a token is opaque.

func formatToken(state uint64) string { return fmt.Sprintf("%016x", state) }

// parseToken returns the state in a token, or 0 for an empty or garbled one. A
// client that garbles its token then reads stale data.
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
