package upstashtest

import "sync/atomic"

// Stats counts what a Server has seen. It is a plain value.
type Stats struct {
	// Requests counts every request that reached the server, refused and
	// malformed ones too.
	Requests int64
	// Commands counts the commands that were executed, as Upstash bills them:
	// each command of a pipeline and of a transaction, those that gave an
	// error too, but none that was refused before it ran.
	Commands int64
	// BytesIn and BytesOut count the bytes of request and response bodies.
	BytesIn, BytesOut int64
}

// counters is Stats under construction: atomic.Int64 is aligned on 32-bit
// platforms too.
type counters struct {
	requests, commands, bytesIn, bytesOut atomic.Int64
}

// Stats returns the counters. It is safe for concurrent use; the counts of a
// request are complete once its response has been read.
func (s *Server) Stats() Stats {
	return Stats{
		Requests: s.count.requests.Load(),
		Commands: s.count.commands.Load(),
		BytesIn:  s.count.bytesIn.Load(),
		BytesOut: s.count.bytesOut.Load(),
	}
}

// ResetStats sets all counters of Stats to zero.
func (s *Server) ResetStats() {
	for _, n := range []*atomic.Int64{
		&s.count.requests, &s.count.commands, &s.count.bytesIn, &s.count.bytesOut,
	} {
		n.Store(0)
	}
}
