package database

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Redis is a real Redis behind the server: one connection, used by one
// command at a time.
type Redis struct {
	addr   string
	limits Limits
	link   *link
	table  Table
	within time.Duration // how long connecting may take
	used   time.Time     // the time of the last reply
	called Calls
	users  users
	// readOnly is set for the scripts of a read-only token.
	readOnly bool
	// renamed holds Redis' sum of a script, by the sum of the text as sent, if
	// the two differ.
	renamed map[string]string

	mu     sync.Mutex
	socket net.Conn // the one of link, for Interrupt
	ended  bool
}

var errClosed = errors.New("the server is closed")

const (
	// dialLimit is how long connecting may take, and the first answer at least.
	dialLimit = 5 * time.Second
	// idleLimit is how long a connection is trusted without a PING.
	idleLimit = 10 * time.Millisecond
)

// DialRedis connects to the Redis at addr, which is a host:port.
func DialRedis(addr string, limits Limits) (*Redis, error) {
	r := &Redis{addr: addr, limits: limits, within: dialLimit, renamed: make(map[string]string)}
	if err := r.dial(); err != nil {
		return nil, err
	}
	patience := max(dialLimit, limits.Timeout) // a Redis that has just started is slow
	commands, _ := r.link.do(patience, "COMMAND")
	if r.table = tableOf(commands); len(r.table) == 0 {
		_ = r.link.conn.Close()
		return nil, fmt.Errorf("the Redis at %s does not answer COMMAND", addr)
	}
	r.makeUsers()
	r.within = min(dialLimit, limits.Timeout) // a command has no more time
	return r, nil
}

// Table returns the commands of the Redis that work over REST.
func (r *Redis) Table() Table { return r.table }

func (r *Redis) dial() error {
	conn, err := r.connect()
	if err != nil {
		return fmt.Errorf("no Redis at %s: %w", r.addr, err)
	}
	r.link, r.used = newLink(conn, r.limits.Timeout), time.Now()
	return nil
}

// connect dials, and keeps the socket for Interrupt.
func (r *Redis) connect() (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", r.addr, r.within)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		_ = conn.Close()
		return nil, errClosed
	}
	r.socket = conn
	return conn, nil
}

// revive dials again if the connection is lost. Only the next use of an idle
// connection shows whether Redis closed it. That use must be a PING: nobody
// could know whether another command ran.
func (r *Redis) revive() error {
	if r.link.err == nil && time.Since(r.used) > idleLimit {
		_, _ = r.link.do(r.limits.Timeout, "PING")
	}
	if r.link.err == nil {
		return nil
	}
	_ = r.link.conn.Close()
	if err := r.dial(); err != nil {
		return err
	}
	r.makeUsers() // it may be a Redis that was started anew
	return nil
}

// Do runs one command.
func (r *Redis) Do(args []string) Reply {
	t := r.translate(args)
	return t.finish(r.exchange([][]string{t.cmd}, t.script)[0])
}

// Multi runs the commands between MULTI and EXEC. EXEC's reply is the
// transaction's: EXECABORT if Redis refused to queue a command.
func (r *Redis) Multi(cmds [][]string) Reply {
	all, script := [][]string{{"MULTI"}}, false
	finish := make([]func(Reply) Reply, len(cmds))
	for i, c := range cmds {
		t := r.translate(c)
		all, finish[i], script = append(all, t.cmd), t.finish, script || t.script
	}
	replies := r.exchange(append(all, []string{"EXEC"}), script)
	last := replies[len(replies)-1]
	if list, ok := last.(Array); ok && len(list) == len(finish) {
		for i := range list {
			list[i] = finish[i](list[i])
		}
	}
	return last
}

// exchange sends the commands together and reads a reply to each. If the
// connection breaks, all replies are lost. If a script is among them, they run
// as a user, and it reads Redis' own statistics before and after, to count the
// commands of scripts.
func (r *Redis) exchange(cmds [][]string, script bool) Array {
	var before, after [][]string
	if script {
		before, after = [][]string{infoCalls}, [][]string{infoCalls}
		if user := r.user(); user != "" {
			before = append(before, []string{"AUTH", user, ""})
			after = [][]string{{"AUTH", "default", ""}, infoCalls}
		}
	}
	cmds = slices.Concat(before, cmds, after)
	replies, err := r.roundTrip(cmds)
	r.used = time.Now()
	n := len(replies) - 1
	switch {
	case err != nil:
		if script {
			r.killScript(err)
		}
		for i := range replies {
			replies[i] = lost(err)
		}
		return replies
	case !script:
		return replies
	}
	between := callsIn(r.table, replies[n]).Minus(callsIn(r.table, replies[0]))
	for _, c := range cmds[:n] { // all but the last INFO, which counts itself later
		between.add(r.table, c[0], -1)
	}
	r.called.Reads += max(0, between.Reads)
	r.called.Writes += max(0, between.Writes)
	return replies[len(before) : len(replies)-len(after)]
}

func (r *Redis) roundTrip(cmds [][]string) (Array, error) {
	replies := make(Array, len(cmds))
	if err := r.revive(); err != nil {
		return replies, err
	}
	for _, c := range cmds {
		if err := r.link.write(c); err != nil {
			return replies, err
		}
	}
	if err := r.link.flush(); err != nil {
		return replies, err
	}
	for i := range replies {
		var err error
		if replies[i], err = r.link.read(r.limits.Timeout); err != nil {
			return replies, err
		}
	}
	return replies, nil
}

// ForReader makes Redis check scripts as those of a read-only token, or ends
// that.
func (r *Redis) ForReader(yes bool) { r.readOnly = yes }

// Called returns how many commands scripts have called so far. It includes
// other clients' commands in the same Redis during the scripts.
func (r *Redis) Called() Calls { return r.called }

// Flush removes all keys of database 0.
func (r *Redis) Flush() error {
	if err, bad := r.Do([]string{"FLUSHDB"}).(error); bad {
		return err
	}
	return nil
}

// SetFull is refused: a Redis counts its memory.
func (r *Redis) SetFull(bool) error {
	return errors.New("a Redis behind WithRedis counts its own memory: set its maxmemory to 1 byte")
}

// FastForward is refused: a Redis follows its own clock.
func (r *Redis) FastForward(time.Duration) error {
	return errors.New("a real Redis cannot be fast-forwarded: use the default backend, " +
		"or short times to live")
}

// Broken returns nil: a lost connection is dialed again.
func (r *Redis) Broken() error { return nil }

// Interrupt closes the connection, and prevents another one.
func (r *Redis) Interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	_ = r.socket.Close()
}

// Close closes the connection, and removes the users. The data stay in Redis.
func (r *Redis) Close() error {
	r.Interrupt()
	if r.users.all != "" {
		r.asOperator(dialLimit, "ACL", "DELUSER", r.users.all, r.users.reader)
	}
	return r.link.conn.Close()
}

// asOperator runs a command over a connection of its own, as Redis' default
// user.
func (r *Redis) asOperator(limit time.Duration, command ...string) {
	conn, err := net.DialTimeout("tcp", r.addr, dialLimit)
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = newLink(conn, limit).do(limit, command...)
}

// lost returns the reply to a command whose outcome is unknown, because the
// connection to Redis broke or the time was over.
func lost(err error) Lost { return Lost("ERR the Redis behind the server: " + err.Error()) }
