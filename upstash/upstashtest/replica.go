package upstashtest

import (
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// replica is a copy that applies the primary's writes late.
type replica struct {
	db      *database.Memory
	pending [][]string // writes not applied yet, oldest first
	state   uint64     // writes applied
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
	if !s.db.Table().IsWrite(cmd) {
		return
	}
	s.state++
	for _, r := range s.regions {
		r.pending = append(r.pending, cmd)
		r.apply(r.Lag)
	}
}

// A sync token is the number of writes that a database has seen, as 16
// hexadecimal digits: tokens sort as strings in the order of the states that
// they name. To clients it is opaque.

func formatToken(state uint64) string { return fmt.Sprintf("%016x", state) }

// parseToken returns the state that a token names: 0 for none, and for what is
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
