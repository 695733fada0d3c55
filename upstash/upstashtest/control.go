package upstashtest

import (
	"context"
	"crypto/x509"
	"maps"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// Exec runs a command on the database directly. The command does not travel
// over HTTP, is not counted, and meets neither limits nor faults. Exec returns
// nil, an int64, a string or a []any of these; an error reply is the error. On
// a server with regions the command runs in the primary.
func (s *Server) Exec(args ...string) (any, error) {
	if len(args) == 0 {
		return nil, wire.ErrEmptyCommand
	}
	if f := s.db.Table().Vet(args, false); f != "" {
		return nil, f
	}
	if err := s.begin(context.Background()); err != nil {
		return nil, err
	}
	defer s.end()
	s.db.ForReader(false)
	r := s.db.Do(args)
	s.noteWrite(args, r)
	if err, bad := r.(error); bad { // a Failure or Lost
		return nil, err
	}
	return database.Plain(r), nil
}

// FlushAll removes every key. With WithRedis these are the keys of database 0.
func (s *Server) FlushAll() {
	s.alone("flushing the database", func() error {
		if err := s.db.Flush(); err != nil {
			return err
		}
		for _, r := range s.regions {
			r.pending, r.state = nil, s.state
			if err := r.db.Flush(); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetFull makes the database full, or ends that. Like a Redis that may not evict,
// a full database refuses each command that can take memory, such as SET, or
// BITFIELD even if it only reads, with upstash.ErrOutOfMemory; each transaction
// with EXECABORT; and in a script what can take memory, until the script has
// written. It still looks up with BITFIELD_RO, deletes, and sets times to live.
// Refused commands are not counted. [Server.Exec] meets this limit in scripts
// alone. With [WithRedis] SetFull ends the test: set the maxmemory of that Redis to
// 1 byte.
func (s *Server) SetFull(full bool) {
	s.alone("SetFull", func() error {
		if err := s.db.SetFull(full); err != nil {
			return err
		}
		s.full = full
		return nil
	})
}

// FastForward sets the clock of the database ahead by d: every time to live is
// shortened, TIME answers with the new time, and the clients of this server
// ([Server.Client] and its like) follow. Other clients do not. The copy of a
// bloom.Mirror grows no older: sleep for that in a bubble of testing/synctest
// that begins after [NewServer]. With [WithRedis] FastForward ends the test.
func (s *Server) FastForward(d time.Duration) {
	s.alone("moving the clock", func() error {
		err := s.db.FastForward(d)
		if err == nil {
			s.ahead.Add(int64(d))
		}
		return err
	})
}

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
	own := []upstash.Option{s.clock()}
	if door.Patience > 0 {
		own = append(own, upstash.WithTimeout(door.Patience))
	}
	c, err := upstash.New(url, token, append(own, opts...)...)
	if err != nil {
		s.fatal("making a client: %v", err)
	}
	if s.cert != nil && c != nil && door.TrustRoots != nil {
		door.TrustRoots(c, s.cert.pool)
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
	return door.WithClock(
		func() time.Time { return time.Now().Add(ahead()) },
		func() time.Duration { return time.Since(start) + ahead() },
	).(upstash.Option)
}

// CertPool returns a pool that trusts the server's certificate, or nil without
// [WithTLS]. It must not be changed.
func (s *Server) CertPool() *x509.CertPool {
	if s.cert == nil {
		return nil
	}
	return s.cert.pool
}

// SetReplicaLag puts a region near the clients of the server's own URL, with this
// [Region.Lag]. 0, the default, removes it. With [WithRedis] it ends the test.
func (s *Server) SetReplicaLag(writes int) {
	s.alone("making a replica", func() error {
		last := len(s.regions) - 1
		near := last >= 0 && s.regions[last].url == ""
		switch {
		case writes <= 0 && near:
			s.regions = s.regions[:last]
		case writes <= 0:
		case !near:
			return s.openRegion(Region{Lag: writes})
		default:
			s.regions[last].Lag = writes
			s.regions[last].apply(writes)
		}
		return nil
	})
}

// CatchUp makes each region apply all writes of the primary.
func (s *Server) CatchUp() {
	s.alone("catching up", func() error {
		for _, r := range s.regions {
			r.apply(0)
		}
		return nil
	})
}

// RegionURL returns the URL for clients near a region of WithRegions. An
// unknown name ends the test.
func (s *Server) RegionURL(name string) string {
	r := s.region(name)
	if r == nil || name == "" {
		s.fatal("there is no region %q: name it with WithRegions", name)
		return ""
	}
	return r.url
}

// RegionClient is Client for a client near a region of WithRegions.
func (s *Server) RegionClient(name string, opts ...upstash.Option) *upstash.Client {
	return s.client(s.RegionURL(name), s.Token, opts)
}

// Inject queues faults for the next requests, one for each, in order. Fault{}
// lets a request pass. Inject() takes back those that no request has met, and the
// refusal of a retry that the "lost-then-error" of EveryFault still owes, however it was
// injected. For faults with another end see [Server.InjectFunc]. If the server refuses a request before it
// executes anything, for example because of a wrong token or a malformed body,
// the request takes no fault from the queue, unless the next one is the
// "early-refusal" of EveryFault.
func (s *Server) Inject(faults ...Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if s.faults.queue = append(s.faults.queue, faults...); len(faults) == 0 {
		s.faults.queue, s.faults.repeated = nil, nil
	}
}

// InjectWrites is Inject for the next requests that write, as [RequestInfo.Writes]
// says. Others pass by, such as a look-up, or the TIME of a bloom.Window before its
// first Add. A write takes its fault from Inject's queue only if this one is empty.
// A retry is a request too. InjectWrites() takes back its own faults.
func (s *Server) InjectWrites(faults ...Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if s.faults.writes = append(s.faults.writes, faults...); len(faults) == 0 {
		s.faults.writes = nil
	}
}

// InjectFunc calls f for the fault of each request without a queued one. n
// counts the calls from 1. The calls do not overlap: f may call the server's
// methods, but not wait for a request of its own. InjectFunc(nil) ends it.
func (s *Server) InjectFunc(f func(n int64, r RequestInfo) Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.draw, s.faults.drawn = f, 0
}

// DenyFunc refuses each command for which f returns true with NOPERM, like a
// Redis whose token may not use the command or the key. f gets the command's
// name and arguments as the client sent them. It does not get the commands of
// scripts. Its calls do not overlap. They are made while the database waits, so f may
// not call Exec, DenyFunc and the like. DenyFunc(nil) ends it.
func (s *Server) DenyFunc(f func(command []string) bool) {
	s.alone("denying", func() error { s.deny = f; return nil })
}

// Injected returns how many requests met each fault so far, by its String.
func (s *Server) Injected() map[string]int64 {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return maps.Clone(s.faults.injected)
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

// alone runs f while no command runs. An error ends the test, as fatal does.
func (s *Server) alone(what string, f func() error) {
	err := s.begin(context.Background())
	if err == nil {
		if err = s.db.Broken(); err == nil {
			err = f()
		}
		s.end()
	}
	if err != nil {
		s.fatal("%s: %v", what, err)
	}
}
