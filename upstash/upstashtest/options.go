package upstashtest

import (
	"net"
	"time"
)

// The limits of the free and pay-as-you-go plans.
const (
	defaultMaxRequest = 10 << 20
	defaultMaxRecord  = 100 << 20
)

// defaultTimeout is far above what a command of a test takes.
const defaultTimeout = 30 * time.Second

// Option changes how a Server is set up.
type Option func(*config)

type config struct {
	addr          string
	listener      net.Listener
	token         string
	readOnlyToken string
	redis         string
	maxRequest    int64
	maxRecord     int64
	timeout       time.Duration
	floatNumbers  bool
	regions       []Region
	tls           bool
}

func newConfig(opts []Option) config {
	c := config{
		addr:          "127.0.0.1:0",
		token:         randomToken(),
		readOnlyToken: randomToken(),
		maxRequest:    defaultMaxRequest,
		maxRecord:     defaultMaxRecord,
		timeout:       defaultTimeout,
	}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// WithAddr sets the host:port to listen on; the default is 127.0.0.1:0, a free
// port on the loopback interface.
func WithAddr(addr string) Option { return func(c *config) { c.addr = addr } }

// WithListener serves on l, which the server closes, and WithAddr has no
// effect. With a network in memory and the default backend a server runs in a
// bubble of testing/synctest.
func WithListener(l net.Listener) Option { return func(c *config) { c.listener = l } }

// WithToken sets the token that may do everything; the default is random.
func WithToken(token string) Option { return func(c *config) { c.token = token } }

// WithReadOnlyToken sets the token that may only read; the default is random.
func WithReadOnlyToken(token string) Option {
	return func(c *config) { c.readOnlyToken = token }
}

// WithRedis puts a real Redis at host:port behind the server, database 0, over
// one connection. Nothing in it is removed unless FlushAll is called. Without
// this option the database is in memory and ends with the server.
func WithRedis(addr string) Option { return func(c *config) { c.redis = addr } }

// WithMaxRequest sets the longest request body in bytes; the default is
// 10485760, the limit of the free and pay-as-you-go plans. A longer one is
// answered with status 413.
func WithMaxRequest(n int64) Option { return func(c *config) { c.maxRequest = n } }

// WithMaxRecord sets the longest value that a string command may leave behind,
// in bytes; the default is 104857600 (100 MB). It is checked before anything
// is allocated.
func WithMaxRecord(n int64) Option { return func(c *config) { c.maxRecord = n } }

// WithTimeout sets how long a command may run, and how long it may wait for
// those before it; the default is 30 seconds. What takes longer is answered
// with a 5xx status: it may have run.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithFloatNumbers reads JSON numbers as float64 and writes them as Go prints
// them, as some servers by others do: 1000000 becomes 1e+06, which a command
// refuses or, worse, stores. It catches a client that sends numbers; without
// it, as in the service, the argument is the number's own text.
func WithFloatNumbers() Option { return func(c *config) { c.floatNumbers = true } }

// WithTLS serves https with a certificate made for this server; CertPool
// returns the pool that trusts it.
func WithTLS() Option { return func(c *config) { c.tls = true } }
