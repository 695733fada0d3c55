package upstashtest

import (
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// Client returns a client of this server with its Token, whose clock follows
// [Server.FastForward]. opts are the client's own options; a bad one ends the
// test. NewServer closes the client at the end of the test. After Start the
// caller closes it.
func (s *Server) Client(opts ...upstash.Option) *upstash.Client {
	return s.client(s.URL, s.Token, opts)
}

// ReadOnlyClient is Client with the ReadOnlyToken and upstash.WithReadOnly.
func (s *Server) ReadOnlyClient(opts ...upstash.Option) *upstash.Client {
	return s.client(s.URL, s.ReadOnlyToken, append([]upstash.Option{upstash.WithReadOnly()}, opts...))
}

func (s *Server) client(url, token string, opts []upstash.Option) *upstash.Client {
	c, err := upstash.New(url, token, append([]upstash.Option{s.clock()}, opts...)...)
	if err != nil {
		s.fatal("making a client: %v", err)
	}
	if s.tb != nil {
		s.tb.Cleanup(func() { _ = c.Close() })
	}
	return c
}

// clock gives a client the machine's clock, set ahead by FastForward like that
// of the database.
func (s *Server) clock() upstash.Option {
	start := time.Now()
	ahead := func() time.Duration { return time.Duration(s.ahead.Load()) }
	return upstash.WithClock(
		func() time.Time { return time.Now().Add(ahead()) },
		func() time.Duration { return time.Since(start) + ahead() },
	)
}
