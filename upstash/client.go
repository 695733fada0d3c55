package upstash

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// Client sends commands to one database. It is safe for concurrent use, must
// not be copied, and prints as its URL. The zero value is not usable.
type Client struct {
	sender

	owned  bool // New made the transport, and Close closes it
	closed atomic.Bool

	serverClock serverClock
}

// New makes a client for the REST URL and token of a database, without I/O. Its
// errors wrap [ErrArgument], or are [ErrProxy]. http:// is for loopback addresses,
// unless [WithInsecureHTTP] is set. The URL may have the path of a proxy, which
// must not repeat a POST: the command would run twice, unnoticed.
func New(url, token string, opts ...Option) (*Client, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	e, err := parseEndpoint(url, s.allowHTTP)
	if err != nil {
		return nil, err
	}
	if why := notToken(token); why != "" {
		return nil, fmt.Errorf("%w: token: %s", ErrArgument, why)
	}
	c := &Client{sender: sender{
		settings: s, endpoint: e, root: e.base + "/", auth: hide(auth{token, "Bearer " + token}),
		transport: s.transport,
	}, serverClock: serverClock{learning: make(chan struct{}, 1)}}
	c.budget.limit(s.retryBudget)
	if c.transport == nil {
		if !isLoopback(e.host) && conn.HasProxy(e.host, e.port, e.tls) {
			return nil, ErrProxy
		}
		c.transport, c.owned = newDefaultTransport(e, s.maxConns), true
	}
	c.timed, _ = c.transport.(timedTransport)
	return c, nil
}

// FromEnv makes a client from UPSTASH_REDIS_REST_URL and
// UPSTASH_REDIS_REST_TOKEN, or, if both are empty, from KV_REST_API_URL and
// KV_REST_API_TOKEN. If one of a pair is empty, it returns [ErrArgument].
func FromEnv(opts ...Option) (*Client, error) {
	pairs := [][2]string{
		{"UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"}, {"KV_REST_API_URL", "KV_REST_API_TOKEN"},
	}
	why := fmt.Sprintf("set %s and %s, or %s and %s", pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1])
	for _, names := range pairs {
		url, token := os.Getenv(names[0]), os.Getenv(names[1])
		if url != "" && token != "" {
			return New(url, token, opts...)
		}
		if url != "" {
			names[0], names[1] = names[1], names[0]
		}
		if url != "" || token != "" {
			why = fmt.Sprintf("%s is empty, and %s is set: set both", names[0], names[1])
			break
		}
	}
	return nil, fmt.Errorf("%w: %s (the console shows both under REST API)", ErrArgument, why)
}

// Do sends one command in one request.
func (c *Client) Do(ctx context.Context, cmd Command) (Reply, error) {
	if err := c.check(cmd); err != nil {
		return Reply{}, err
	}
	x := calls.Get().(*call) // zero, and filled in place: it is large
	x.name, x.commands, x.traits, x.path = cmd.name, 1, cmd.traits, "/"
	x.json, x.birth = cmd.body(), cmd.birth
	x.resp2, x.timeout, x.kept = cmd.binary, cmd.timeout, new(kept)
	if cmd.script != nil {
		x.script, x.form = cmd.script, c.scripts.form(cmd)
	}
	if cmd.raw != nil {
		x.raw, x.rawBody = (*cmd.raw).v.path, (*cmd.raw).v.body
	}
	k, err := x.kept, c.run(ctx, x)
	if c.timed != nil { // this transport touches nothing of a call that has ended
		*x = call{}
		calls.Put(x)
	}
	if err != nil {
		return Reply{}, err
	}
	return newReply(&k.hidden), nil
}

// ReadOnly reports whether [WithReadOnly] is set.
func (c *Client) ReadOnly() bool { return c.readOnly }

// Close closes idle connections, but not a transport of [WithTransport]. Calls
// in progress end as usual; later ones return [ErrClosed].
func (c *Client) Close() error {
	if c.closed.Swap(true) || !c.owned {
		return nil
	}
	if t, ok := c.transport.(interface{ Close() error }); ok {
		return t.Close()
	}
	return nil
}

// check returns the errors known before anything is sent.
func (c *Client) check(cmd Command) error {
	switch {
	case cmd.err != nil:
		return cmd.err
	case cmd.json == nil:
		return argumentError("Command", "the zero value cannot be sent: make one with Cmd")
	case c.readOnly && cmd.traits&traitRead == 0:
		return &CallError{Command: cmd.name, Err: ErrReadOnly, outcome: outcomeNotSent}
	case c.closed.Load():
		return ErrClosed
	}
	return nil
}

func (c *Client) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "upstash.Client(%s)", c.endpoint.base)
}

func (c *Client) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(c)), nil }

// Pipeline sends several commands in one request and returns a reply for each,
// in order. Commands of other clients may run in between. If a command fails,
// [Reply.Err] returns its error, and the others still run. Without commands
// nothing is sent.
//
// A batch is tried again as a whole: after an unknown outcome only if all its
// commands are repeatable, and never once some of them have run. Only a [Script]
// that the server refused for its form is sent again by itself.
func (c *Client) Pipeline(ctx context.Context, cmds ...Command) ([]Reply, error) {
	forms := c.forms(cmds)
	for i := range forms {
		if cmds[i].script != nil && followed(cmds[i:]) {
			forms[i] &^= shortForm // no server refuses this one
		}
	}
	return c.pipeline(ctx, cmds, forms, 0, false)
}

// MultiExec is [Client.Pipeline] as one transaction: no command of another
// client runs in between. If the server discards it, the error is a [*Error].
func (c *Client) MultiExec(ctx context.Context, cmds ...Command) ([]Reply, error) {
	forms := c.forms(cmds)
	for i, form := range forms { // the others would run without a script that is refused for its form
		if form&bySum == 0 { // the server has not run it yet
			forms[i] &^= withFlags
		}
		forms[i] &^= bySum
	}
	return c.sendBatch(ctx, "/multi-exec", transaction, cmds, forms, 0, false)
}

// forms returns the forms of the scripts in a batch, or nil if it has none.
func (c *Client) forms(cmds []Command) (forms []scriptForm) {
	for i, cmd := range cmds {
		if cmd.script == nil {
			continue
		}
		if forms == nil {
			forms = make([]scriptForm, len(cmds))
		}
		forms[i] = c.scripts.form(cmd)
	}
	return forms
}

// pipeline sends commands, with the scripts among them in these forms. If the
// server refuses the form of some, these are sent once more, without the others.
// mayHaveRun says that they may have run before, in so many attempts.
func (c *Client) pipeline(ctx context.Context, cmds []Command, forms []scriptForm, earlier int, mayHaveRun bool,
) ([]Reply, error) {
	replies, err := c.sendBatch(ctx, "/pipeline", "PIPELINE", cmds, forms, earlier, mayHaveRun)
	if err != nil || forms == nil {
		return replies, err
	}
	var at []int
	var again []Command
	var next []scriptForm
	for i, cmd := range cmds {
		if cmd.script == nil {
			continue
		}
		var e ending
		if server, bad := replies[i].of().err.(*Error); bad {
			e = answerEnding(cmd.traits, server)
		}
		c.scripts.learn(cmd.script, forms[i], cmd.traits, &e)
		if e.again {
			at, again, next = append(at, i), append(again, cmd), append(next, e.form)
			mayHaveRun = mayHaveRun || replies[i].MaybeRepeated() || e.outcome == outcomeUnknown
		}
	}
	if len(again) == 0 {
		return replies, nil
	}
	rest, err := c.pipeline(ctx, again, next, earlier+int(replies[0].of().attempts), mayHaveRun)
	for n, i := range at {
		if err != nil {
			replies[i] = failedReply(cmds[i].name, err)
		} else {
			replies[i] = rest[n]
		}
	}
	return replies, nil
}

// followed reports whether another command than the same script for other keys
// comes after the first. If that script were refused for its form, the others
// would run before it.
func followed(cmds []Command) bool {
	first := cmds[0]
	return slices.ContainsFunc(cmds[1:], func(c Command) bool {
		return c.script != first.script || c.keysEnd == first.keysEnd &&
			bytes.Equal(c.body()[:c.keysEnd], first.body()[:c.keysEnd])
	})
}

// sendBatch sends several commands in one request.
func (c *Client) sendBatch(ctx context.Context, path, name string, cmds []Command, forms []scriptForm,
	earlier int, mayHaveRun bool,
) ([]Reply, error) {
	x := &call{earlierMayHaveRun: mayHaveRun}
	x.name, x.commands, x.path, x.before = name, len(cmds), path, earlier
	x.traits = traitRead | traitRepeatable
	for _, cmd := range cmds {
		if err := c.check(cmd); err != nil {
			return nil, err
		}
		if cmd.raw != nil {
			return nil, argumentError(cmd.name, "a command with a raw body has a request of its own: use Do")
		}
		x.timeout = max(x.timeout, cmd.timeout)
		// The batch only reads, or is repeatable, if all of its commands are;
		// it is a script if one of them is.
		x.traits = x.traits&cmd.traits&(traitRead|traitRepeatable) | (x.traits|cmd.traits)&traitScript
		x.base64 = x.base64 || cmd.binary
	}
	if len(cmds) == 0 {
		return nil, nil
	}
	x.batch, x.forms = cmds, forms
	x.json = joinCommands(cmds, forms, earlier)
	if err := c.run(ctx, x); err != nil {
		return nil, err
	}
	return x.repliesTo(cmds, forms), nil
}

const (
	// maxTimeTrip is the longest round trip of a TIME whose answer is used. The
	// server's clock is known to half of it.
	maxTimeTrip  = 2 * time.Second
	maxTimeTries = 5
	// timeLearnedFor bounds the drift of the process's clock.
	timeLearnedFor = 10 * time.Minute
)

// serverClock is what a client knows of its server's clock. One caller at a
// time learns it; learning is full meanwhile.
type serverClock struct {
	learning chan struct{}
	learned  atomic.Pointer[learnedTime]
}

// learnedTime is the server's time at a moment of both clocks of the process.
type learnedTime struct {
	server, wall time.Time
	elapsed      time.Duration
	// doubted is set once the clocks have run apart: they may agree again, and both
	// be wrong.
	doubted atomic.Bool
}

// ServerTime returns the server's time, right to a second. It sends TIME at
// most once in ten minutes, unless the process was frozen, and up to five times
// if the answer takes more than two seconds.
func (c *Client) ServerTime(ctx context.Context) (time.Time, error) {
	if t, ok := c.knownServerTime(); ok {
		return t, nil
	}
	if err := c.serverClock.enter(ctx); err != nil {
		return time.Time{}, &CallError{Command: "TIME", Err: err, outcome: outcomeNotSent}
	}
	defer func() { <-c.serverClock.learning }()
	for range maxTimeTries {
		if t, ok := c.knownServerTime(); ok { // another caller has learned it
			return t, nil
		}
		if err := c.learnTime(ctx); err != nil {
			return time.Time{}, err
		}
	}
	if t, ok := c.knownServerTime(); ok {
		return t, nil
	}
	return time.Time{}, &CallError{Command: "TIME", outcome: outcomeRead, Err: fmt.Errorf(
		"no answer came within %v in %d attempts, so that the server's clock is not known",
		maxTimeTrip, maxTimeTries)}
}

// enter begins to learn the time. It waits for another caller until ctx ends, and
// returns why it did.
func (c *serverClock) enter(ctx context.Context) error {
	select {
	case c.learning <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.learning <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx, nil)
	}
}

// knownServerTime is ServerTime without a request. If that is not
// known, it returns the process's own, and false.
func (c *Client) knownServerTime() (t time.Time, ok bool) {
	known := c.serverClock.learned.Load()
	if known == nil {
		return c.clock.now(), false
	}
	passed := c.clock.elapsed() - known.elapsed
	if passed < 0 || passed > timeLearnedFor || c.clock.ranApart(known.wall, passed) {
		known.doubted.Store(true)
	}
	if known.doubted.Load() {
		return c.clock.now(), false
	}
	return known.server.Add(passed), true
}

// serverTimeBounds returns the earliest and the latest time that the server's
// clock may show. The monotonic clock may stand still while the process is
// frozen, the wall clock may be set. In a process that runs, neither is wrong by
// more than a thousandth.
func (c *Client) serverTimeBounds() (earliest, latest time.Time, ok bool) {
	known := c.serverClock.learned.Load()
	if known == nil {
		return time.Time{}, time.Time{}, false
	}
	least := max(c.clock.elapsed()-known.elapsed, 0)
	most := max(c.clock.now().Round(0).Sub(known.wall), least)
	return known.server.Add(least - least/1000), known.server.Add(most + most/1000), true
}

// learnTime asks once, and keeps the answer if it came soon enough.
func (c *Client) learnTime(ctx context.Context) error {
	sent, wall := c.clock.elapsed(), c.clock.now()
	reply, err := c.Do(ctx, Cmd("TIME"))
	if err != nil {
		return err
	}
	server, err := serverTime(reply)
	if err != nil {
		return err
	}
	came := c.clock.elapsed()
	// A freeze in the midst of the trip may have stopped the monotonic clock.
	if trip := came - sent; trip <= maxTimeTrip && !c.clock.ranApart(wall, trip) {
		c.serverClock.learned.Store(&learnedTime{
			server: server.Add(trip / 2), wall: c.clock.now().Round(0), elapsed: came,
		})
	}
	return nil
}

// serverTime reads the answer to TIME: seconds and microseconds, as strings.
func serverTime(r Reply) (time.Time, error) {
	parts, err := r.Array()
	if err != nil || len(parts) != 2 {
		return time.Time{}, r.bad("not two numbers")
	}
	var n [2]int64
	for i, p := range parts {
		text, err := p.Text()
		if err == nil {
			n[i], err = strconv.ParseInt(text, 10, 64)
		}
		if err != nil || n[i] < 0 {
			return time.Time{}, r.bad("not a number of seconds")
		}
	}
	return time.Unix(n[0], n[1]*1000), nil
}

func init() {
	door.MaxRequest = func(client any) int { return client.(*Client).maxRequest }
	door.Observed = func(client any) bool { return client.(*Client).observed() }
	door.KnownServerTime = func(client any) (time.Time, bool) { return client.(*Client).knownServerTime() }
	door.ServerTimeBounds = func(client any) (earliest, latest time.Time, ok bool) {
		return client.(*Client).serverTimeBounds()
	}
	door.WithClock = func(now func() time.Time, elapsed func() time.Duration) any {
		return withClock(now, elapsed)
	}
	door.WithRetryBudget = func(tokens int) any { return withRetryBudget(tokens) }
}
