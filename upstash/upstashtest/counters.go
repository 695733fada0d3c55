package upstashtest

import (
	"sync/atomic"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// Stats counts what a Server has seen. It is a plain value.
type Stats struct {
	// Requests counts every request that reached the server, refused and
	// malformed ones too.
	Requests int64
	// Commands counts the commands that were executed: each command of a
	// pipeline and of a transaction, those that returned an error too, but none
	// that was refused before it ran.
	Commands int64
	// Called counts the commands that scripts called. With WithRedis it is
	// exact as long as nobody else uses that Redis.
	Called int64
	// Billed is what Upstash bills for both, by its documentation: a read is
	// one, a write is one for the primary and one for each read region, and a
	// script is one beside what it calls. BITFIELD is a write, whatever its
	// operations are.
	Billed int64
	// BytesIn and BytesOut count the bytes of request and response bodies.
	BytesIn, BytesOut int64
}

// counters is Stats under construction: atomic.Int64 is aligned on 32-bit
// platforms too.
type counters struct {
	requests, commands, called, billed, bytesIn, bytesOut atomic.Int64
}

// Stats returns the counters. It is safe for concurrent use; the counts of a
// request are complete once its response has been read.
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

// bill counts a command that ran, and what it called if it was a script.
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
