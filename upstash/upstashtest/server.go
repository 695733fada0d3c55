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
	if cfg.redis != nil {
		return database.DialRedis(*cfg.redis, limits)
	}
	return database.OpenMemory(limits)
}

func (s *Server) listen() error {
	if s.cfg.tls {
		s.cert = newCertificate()
	}
	s.http = &http.Server{
		Handler:   http.HandlerFunc(s.serve),
		ConnState: s.conns.track,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
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
	l = plainListener{l}
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
			s.conns.Wait()
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

// Stats holds the counters of a Server. It is a plain value and may be copied.
type Stats struct {
	// Requests counts every request that reached the server, including refused
	// and malformed ones.
	Requests int64
	// Commands counts the commands that ran, successful or not, and each one of
	// a pipeline or transaction.
	Commands int64
	// Called counts the commands called by scripts. With WithRedis the count is
	// exact if no other client uses that Redis.
	Called int64
	// Billed is the number of commands Upstash bills for Commands and Called,
	// according to its documentation: a read once, a write once for the primary
	// and once for each read region. A script is one, and its own commands
	// count by the same rules. BITFIELD is a write even if it only reads.
	Billed int64
	// BytesIn and BytesOut count the bytes of request and response bodies.
	BytesIn, BytesOut int64
}

// String returns the counters with their names, as %+v writes them.
func (s Stats) String() string {
	type plain Stats
	return fmt.Sprintf("%+v", plain(s))
}

// counters counts what Stats returns. An atomic.Int64 is aligned on 32-bit
// platforms as well.
type counters struct {
	requests, commands, called, billed, bytesIn, bytesOut atomic.Int64
}
