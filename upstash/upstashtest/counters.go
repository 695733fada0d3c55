package upstashtest

import (
	"sync/atomic"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// Stats holds the counters of a Server. It is a plain value and may be copied.
type Stats struct {
	// Requests counts every request that reached the server, including refused
	// and malformed ones.
	Requests int64
	// Commands counts the commands that ran, successful or not, and each one of
	// a pipeline or transaction. It leaves out those refused before they ran.
	Commands int64
	// Called counts the commands called by scripts. With WithRedis the count is
	// exact if no other client uses that Redis.
	Called int64
	// Billed is the number of commands Upstash bills for Commands and Called,
	// according to its documentation. A read counts once. A write counts once
	// for the primary and once for each read region. A script counts once, and
	// its own commands count by the same rules. BITFIELD is a write even if it
	// only reads.
	Billed int64
	// BytesIn and BytesOut count the bytes of request and response bodies.
	BytesIn, BytesOut int64
}

// counters counts what Stats returns. An atomic.Int64 is aligned on 32-bit
// platforms as well.
type counters struct {
	requests, commands, called, billed, bytesIn, bytesOut atomic.Int64
}

// Stats returns the counters. The counts of a request are complete once the
// client has read its response.
func (s *Server) Stats() Stats {
	return Stats{
		Requests: s.count.requests.Load(),
		Commands: s.count.commands.Load(),
		Called:   s.count.called.Load(),
		Billed:   s.count.billed.Load(),
		BytesIn:  s.count.bytesIn.Load(),
		BytesOut: s.count.bytesOut.Load(),
	}
}

// ResetStats sets all counters of Stats to zero.
func (s *Server) ResetStats() {
	for _, n := range []*atomic.Int64{
		&s.count.requests, &s.count.commands, &s.count.called, &s.count.billed,
		&s.count.bytesIn, &s.count.bytesOut,
	} {
		n.Store(0)
	}
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
