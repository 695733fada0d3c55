package upstashtest

import (
	"crypto/rand"
	"errors"
	"net"
	"time"

	"github.com/upbloom/upbloom/internal/door"
)

// The limits of the free and pay-as-you-go plans.
const (
	defaultMaxRequest = 10 << 20
	defaultMaxRecord  = 100_000_000
)

// defaultTimeout is far more than a command of a test needs.
const defaultTimeout = 30 * time.Second

// headerLimit is how long a request's header may take. Nothing is known of its
// sender before.
const headerLimit = 30 * time.Second

// closeLimit is how long Close waits for running commands. Scripts, stalls and
// pauses end at once, but a command cannot be interrupted.
const closeLimit = 5 * time.Second

// Option changes how NewServer and Start set a Server up. If an option is given
// twice, the last one counts; the regions of several WithRegions add up.
type Option func(*config)

type config struct {
	addr          string
	listener      net.Listener
	token         string
	readOnlyToken string
	redis         *string // nil without WithRedis
	maxRequest    int64
	maxRecord     int64
	timeout       time.Duration
	closeLimit    time.Duration
	headerLimit   time.Duration
	regions       []Region
	tls           bool
}

func newConfig(opts []Option) config {
	c := config{
		addr:          "127.0.0.1:0",
		token:         rand.Text(),
		readOnlyToken: rand.Text(),
		maxRequest:    defaultMaxRequest,
		maxRecord:     defaultMaxRecord,
		timeout:       max(defaultTimeout, door.Patience),
		closeLimit:    max(closeLimit, door.Patience),
		headerLimit:   max(headerLimit, door.Patience),
	}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// check reports a value out of range.
func (c config) check() error {
	switch {
	case c.maxRequest < 0:
		return errors.New("WithMaxRequest: use 0 bytes or more")
	case c.maxRecord < 0:
		return errors.New("WithMaxRecord: use 0 bytes or more")
	case c.redis != nil && *c.redis == "": // of a variable that is not set
		return errors.New("WithRedis: the address is empty: use host:port")
	case c.timeout <= 0:
		return errors.New("WithTimeout: use a duration above 0")
	}
	return nil
}

// WithAddr sets the host:port to listen on; the default is 127.0.0.1:0, a free
// port on the loopback interface.
func WithAddr(addr string) Option { return func(c *config) { c.addr = addr } }

// WithListener serves on l, which the server closes. WithAddr then has no
// effect. If l belongs to a network in memory, a server with the default
// database can run in a bubble of testing/synctest, in which no timeout takes real
// time. Any other server must start outside: inside, the bubble's time stands still.
func WithListener(l net.Listener) Option { return func(c *config) { c.listener = l } }

// WithToken sets the token for every command; the default is random. An empty
// token is never accepted.
func WithToken(token string) Option { return func(c *config) { c.token = token } }

// WithReadOnlyToken sets the token for reads alone, except KEYS and SCAN; the
// default is random. An empty token is never accepted.
func WithReadOnlyToken(token string) Option {
	return func(c *config) { c.readOnlyToken = token }
}

// WithRedis puts database 0 of the real Redis at host:port behind the server,
// over one connection as its default user. Close leaves its keys in place.
// Without this option the database is in memory and ends with the server.
func WithRedis(addr string) Option { return func(c *config) { c.redis = &addr } }

// WithMaxRequest sets the longest request body in bytes, 0 or more; the default
// is 10485760 (10 MB), the limit of the free and pay-as-you-go plans. The
// server answers a longer one with status 413.
func WithMaxRequest(n int64) Option { return func(c *config) { c.maxRequest = n } }

// WithMaxRecord sets the longest string a command may leave behind, in bytes, 0
// or more; the default is 100000000 (100 MB), which every plan allows. The
// server checks it before the command allocates anything.
//
// With [WithRedis] the limit does not apply to a script's commands, and an APPEND in
// a transaction is measured with the string as it was before the transaction. To
// test the limit, use the database in memory.
func WithMaxRecord(n int64) Option { return func(c *config) { c.maxRecord = n } }

// WithTimeout sets how long a command may run, and how long it may wait for
// those before it. It must be above 0; the default is 30 seconds. If a command
// takes longer, the answer is a 5xx status: it may have run. A script ends then,
// but Redis, of [WithRedis], ends none that has written, nor a long command.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithTLS serves https with a certificate for 127.0.0.1 and ::1.
// [Server.Client] trusts it, if it has the default transport, and so does
// [Server.CertPool], for others.
func WithTLS() Option { return func(c *config) { c.tls = true } }

// Region is a read region of a global database.
type Region struct {
	// Name is the argument of RegionURL and RegionClient.
	Name string
	// Latency is the round trip between the region and the primary. It is added
	// to each answer of the primary to a client of the region.
	Latency time.Duration
	// Lag is how many writes the region stays behind the primary. With
	// math.MaxInt it applies no write until CatchUp.
	Lag int
}

// WithRegions makes the database a global one. The server's URL is near the
// primary, and each region has its own URL. It needs the database in memory.
//
// A region answers a request without a write, unless the request's
// upstash-sync-token names a state that it has not reached. The primary answers all
// others. A BITFIELD counts as a write even if it only reads. A script with writes
// runs again in every region: if it uses random numbers, the regions differ.
func WithRegions(regions ...Region) Option {
	return func(c *config) { c.regions = append(c.regions, regions...) }
}
