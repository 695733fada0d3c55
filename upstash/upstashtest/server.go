package upstashtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// Server is an Upstash-compatible REST server in this process. Make one with
// NewServer or Start; the zero value is not usable. It is safe for concurrent
// use and must not be copied.
type Server struct {
	// URL is the server's address, such as http://127.0.0.1:41234.
	URL string
	// Token allows every command, ReadOnlyToken only reads, except KEYS and
	// SCAN.
	Token, ReadOnlyToken string

	tb    testing.TB // nil after Start
	cfg   config
	http  *http.Server
	cert  *certificate // nil without WithTLS
	count counters

	// turn makes the database single-threaded, as Redis is. It guards the fields
	// from here to the blank line.
	turn    turn
	db      database.DB
	state   uint64    // writes so far: what sync tokens name
	regions []*region // of WithRegions, and of SetReplicaLag the one for URL
	deny    func(command []string) bool
	full    bool // by SetFull
	told    bool // the test knows that the database is lost

	faults faultQueue
	ahead  atomic.Int64 // the sum of FastForward, a time.Duration

	closing   chan struct{} // closed by Close
	closeOnce sync.Once
	serving   sync.WaitGroup // the accept loop
	conns     connections
}

var (
	errClosed = errors.New("upstashtest: the server is closed")
	errBusy   = errors.New("upstashtest: the database is busy with another command")
)

// turn is a mutex. Unlike a sync.Mutex, it lets a waiting caller give up.
type turn chan struct{}

// NewServer starts a server that is closed at the end of the test or
// benchmark. An error ends the test.
func NewServer(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s, err := Start(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	s.tb = tb
	tb.Cleanup(s.Close)
	return s
}

// Start starts a server outside of a test. The caller closes it. The error
// names the option with a bad value, or the address or the Redis that failed.
func Start(opts ...Option) (*Server, error) {
	cfg := newConfig(opts)
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("upstashtest: %w", err)
	}
	s := &Server{
		Token:         cfg.token,
		ReadOnlyToken: cfg.readOnlyToken,
		cfg:           cfg,
		turn:          make(turn, 1),
		closing:       make(chan struct{}),
	}
	var err error
	if s.db, err = openDatabase(cfg); err != nil {
		return nil, fmt.Errorf("upstashtest: opening the database: %w", err)
	}
	if err = s.openRegions(cfg.regions); err == nil {
		err = s.listen()
	}
	if err != nil {
		_ = s.db.Close()
		return nil, fmt.Errorf("upstashtest: %w", err)
	}
	return s, nil
}

func openDatabase(cfg config) (database.DB, error) {
	limits := database.Limits{MaxRecord: uint64(cfg.maxRecord), Timeout: cfg.timeout}
	if cfg.redis != "" {
		return database.DialRedis(cfg.redis, limits)
	}
	return database.OpenMemory(limits)
}

func (s *Server) listen() error {
	if s.cfg.tls {
		var err error
		if s.cert, err = newCertificate(); err != nil {
			return err
		}
	}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ConnState:         s.conns.track,
		ConnContext:       withBundle,
		MaxHeaderBytes:    1 << 20, // the path form carries values in its first line
		ReadHeaderTimeout: s.cfg.headerLimit,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	var err error
	if s.cfg.listener != nil {
		s.URL = s.serveOn(s.cfg.listener)
	} else {
		s.URL, err = s.listenOn(s.cfg.addr)
	}
	for _, r := range s.regions {
		if err == nil {
			r.url, err = s.listenOn("127.0.0.1:0")
		}
	}
	if err != nil {
		_ = s.http.Close()
		s.serving.Wait()
	}
	return err
}

// listenOn serves at addr and returns the URL to reach it.
func (s *Server) listenOn(addr string) (string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listening on %s: %w", addr, err)
	}
	return s.serveOn(l), nil
}

func (s *Server) serveOn(l net.Listener) (url string) {
	url = "http://" + reachable(l.Addr())
	l = bundler{l}
	if s.cert != nil {
		url = "https://" + reachable(l.Addr())
		l = s.cert.wrap(l)
	}
	s.serving.Go(func() { _ = s.http.Serve(l) })
	return url
}

// reachable returns the host:port to dial: if a server listens on all
// addresses, it is reached over the loopback interface.
func reachable(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return a.String()
}

// begin waits for the database, for as long as a command may take. If it
// returns no error, the caller must call end.
func (s *Server) begin(ctx context.Context) error {
	select {
	case <-s.closing:
		return errClosed
	default:
	}
	limit := time.NewTimer(s.cfg.timeout)
	defer limit.Stop()
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-s.closing:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return errBusy
	}
}

// end lets the next command run. If the database was lost meanwhile, the test
// fails.
func (s *Server) end() {
	if err := s.db.Broken(); err != nil && !s.told {
		s.told = true
		s.fail("%v. Every later command is answered with status 500", err)
	}
	<-s.turn
}

// closeLimit is how long Close waits for running commands. Scripts, stalls and
// pauses end at once, but a command cannot be interrupted.
const closeLimit = 5 * time.Second

// Close stops the server, ends stalled and running requests, and drops the
// database in memory. It returns when no goroutine of the server is left, or
// after 5 seconds if a command still runs: then the test fails. Calling Close
// again does nothing. A bubble of testing/synctest must not close a server from
// outside of it: to take the database away there, let InjectFunc return Drop.
func (s *Server) Close() {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.db.Interrupt()
		_ = s.http.Close()
		over := make(chan struct{})
		go func() {
			defer close(over)
			s.serving.Wait()
			s.conns.wait()
			s.turn <- struct{}{} // waits for a command of Exec
			_ = s.db.Close()
		}()
		limit := time.NewTimer(s.cfg.closeLimit)
		defer limit.Stop()
		select {
		case <-over:
		case <-limit.C:
			s.fail("Close: a command still runs after %v", s.cfg.closeLimit)
		}
	})
}

// fail fails the test of NewServer. After Start, the answers alone tell.
func (s *Server) fail(format string, args ...any) {
	if s.tb != nil {
		s.tb.Helper()
		s.tb.Errorf("upstashtest: "+format, args...)
	}
}

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
	s.noteWrite(args)
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
			if err := r.reset(s.state); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetFull makes the database full, or ends that. A full database refuses what a
// Redis refuses that has used its maxmemory and may not evict: each command that
// can take memory, such as SET, or BITFIELD even if it only reads, with
// "OOM command not allowed when used memory > 'maxmemory'."; each transaction
// with EXECABORT; and of a script the commands that can take memory, until it
// has written. It still looks up with BITFIELD_RO, deletes, and sets times to
// live. Refused commands are not counted. [Server.Exec] meets no limit, but for
// its scripts. With [WithRedis] SetFull ends the test: set the maxmemory of that
// Redis to 1 byte.
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
// ([Server.Client] and its like) follow. Other clients do not: a bloom.Window
// of such a client may forget later, or not at all. The copy of a bloom.Mirror
// does not grow older either, because its ages are those of the machine. The
// doc of bloom.Mirror says how a test makes it older. A Redis of [WithRedis]
// follows its own clock: there FastForward ends the test.
func (s *Server) FastForward(d time.Duration) {
	s.alone("moving the clock", func() error {
		err := s.db.FastForward(d)
		if err == nil {
			s.ahead.Add(int64(d))
		}
		return err
	})
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

// fatal reports a wrong use of the Server's own methods. It ends the test, or
// panics if the Server was made by Start.
func (s *Server) fatal(format string, args ...any) {
	text := "upstashtest: " + fmt.Sprintf(format, args...)
	if s.tb == nil {
		panic(text)
	}
	s.tb.Helper()
	s.tb.Fatal(text)
}
