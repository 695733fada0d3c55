package upstashtest

import (
	"fmt"
	"strconv"
)

// A sync token is the number of writes that the database has seen, as 16
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

// noteWrite advances the state after a command ran on the primary.
func (s *Server) noteWrite(cmd []string) {
	if isWrite(cmd) {
		s.state++
	}
}

// choose picks the database that answers a request.
func (s *Server) choose(_ batch, _ uint64) backend { return s.db }

// stateOf names how far db has come.
func (s *Server) stateOf(backend) uint64 { return s.state }
