package database

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
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
	used   time.Time // the time of the last reply
	called Calls
	users  users
	made   bool // the users, for this connection
	// readOnly is set for the scripts of a read-only token.
	readOnly bool
	// patience is lua-time-limit as Redis had it; "" if it need not be lowered.
	patience string
	// renamed holds Redis' sum of a script, by the sum of the text as sent, if
	// the two differ.
	renamed map[string]string

	mu     sync.Mutex
	socket net.Conn // the one of link, for Interrupt
	ended  bool
}

var errClosed = errors.New("the server is closed")

const (
	// dialLimit is how long connecting may take, if a command may take as long, and
	// the first answer at least.
	dialLimit = 5 * time.Second
	// idleLimit is how long a connection is trusted without a PING.
	idleLimit = 10 * time.Millisecond
	// killLimit is how long Redis may take to end a script.
	killLimit = 10 * time.Second
)

// DialRedis connects to the Redis at addr, which is a host:port.
func DialRedis(addr string, limits Limits) (*Redis, error) {
	r := &Redis{addr: addr, limits: limits, renamed: make(map[string]string)}
	if err := r.dial(); err != nil {
		return nil, err
	}
	patience := max(dialLimit, limits.Timeout) // a Redis that has just started is slow
	commands, _ := r.link.do(patience, "COMMAND")
	if r.table = tableOf(commands); len(r.table) == 0 {
		_ = r.link.conn.Close()
		return nil, fmt.Errorf("the Redis at %s does not answer COMMAND", addr)
	}
	name := "upstashtest-" + rand.Text()
	r.users = users{all: name + "-all", reader: name + "-reader"}
	r.makeUsers()
	if !r.made {
		r.forgoUsers()
	}
	r.learnPatience()
	return r, nil
}

// Table returns the commands of the Redis that work over REST.
func (r *Redis) Table() Table { return r.table }

func (r *Redis) dial() error {
	conn, err := net.DialTimeout("tcp", r.addr, min(dialLimit, r.limits.Timeout)) // a command has no more time
	if err != nil {
		return fmt.Errorf("no Redis at %s: %w", r.addr, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		_ = conn.Close()
		return errClosed
	}
	r.socket, r.link, r.used = conn, newLink(conn, r.limits.Timeout), time.Now()
	return nil
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
	r.made = false // it may be a Redis that was started anew
	return nil
}

// reviveForScript is revive, and makes the users if there are to be any.
func (r *Redis) reviveForScript() error {
	if err := r.revive(); err != nil || r.made || r.users.all == "" {
		return err
	}
	r.makeUsers()
	if !r.made {
		return errors.New("it makes no users for scripts now")
	}
	return nil
}

// Do runs one command.
func (r *Redis) Do(args []string) Reply {
	t := r.translate(args)
	return t.finish(r.exchange([][]string{t.cmd}, t.script)[0])
}

// Multi runs the commands between MULTI and EXEC. It returns an Array with a reply
// to each, a Failure if Redis refused to queue a command, which discards the
// transaction, or Lost.
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
// connection breaks, all replies are lost.
func (r *Redis) exchange(cmds [][]string, script bool) Array {
	if script {
		return r.asScript(cmds)
	}
	return orLost(r.roundTrip(cmds))
}

// asScript is exchange if a script is among the commands. They run as a user,
// between two looks at Redis' own statistics, which count the commands of scripts.
func (r *Redis) asScript(cmds [][]string) Array {
	if err := r.reviveForScript(); err != nil {
		return orLost(make(Array, len(cmds)), err)
	}
	before, after := [][]string{infoCalls}, [][]string{infoCalls}
	if r.patience != "" {
		before = append(before, patienceOf(strconv.FormatInt(max(1, r.limits.Timeout.Milliseconds()), 10)))
		after = [][]string{patienceOf(r.patience), infoCalls}
	}
	user := r.users.all
	if r.readOnly {
		user = r.users.reader
	}
	if user != "" {
		before = append(before, []string{"AUTH", user, ""})
		after = append([][]string{{"AUTH", "default", ""}}, after...)
	}
	all := slices.Concat(before, cmds, after)
	replies, err := r.roundTrip(all)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) { // by Interrupt
		// It could keep Redis busy for ever. Redis does not end a script after
		// its first write.
		r.asOperator(killLimit, "SCRIPT", "KILL")
		if r.patience != "" {
			r.asOperator(dialLimit, patienceOf(r.patience)...)
		}
	}
	own := orLost(replies[len(before):][:len(cmds)], err)
	if err != nil {
		return own
	}
	last := len(all) - 1
	between := callsIn(r.table, replies[last]).Minus(callsIn(r.table, replies[0]))
	for _, c := range all[:last] { // all but the last INFO, which counts itself later
		between.add(r.table, c[0], -1)
	}
	r.called.Reads += max(0, between.Reads)
	r.called.Writes += max(0, between.Writes)
	return own
}

// orLost returns the replies. After an error all are lost.
func orLost(replies Array, err error) Array {
	if err != nil {
		for i := range replies {
			replies[i] = Lost("ERR the Redis behind the server: " + err.Error())
		}
	}
	return replies
}

func (r *Redis) roundTrip(cmds [][]string) (Array, error) {
	defer func() { r.used = time.Now() }()
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

// learnPatience asks how many milliseconds a script runs before Redis lets others
// end it, 5,000 by default. If a command has more time here, that need not be lowered.
func (r *Redis) learnPatience() {
	reply, _ := r.link.do(r.limits.Timeout, "CONFIG", "GET", "lua-time-limit")
	list, _ := reply.(Array)
	if len(list) != 2 {
		return
	}
	text, _ := list[1].(Bulk)
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && (n == 0 || n > r.limits.Timeout.Milliseconds()) {
		r.patience = string(text)
	}
}

func patienceOf(milliseconds string) []string {
	return []string{"CONFIG", "SET", "lua-time-limit", milliseconds}
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
// user. While a script keeps Redis busy, such as one that is just being ended, it
// tries again.
func (r *Redis) asOperator(limit time.Duration, command ...string) {
	conn, err := net.DialTimeout("tcp", r.addr, dialLimit)
	if err != nil {
		return
	}
	defer conn.Close()
	over := newLink(conn, limit)
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		reply, _ := over.do(limit, command...)
		if f, _ := reply.(Failure); !strings.HasPrefix(string(f), "BUSY ") {
			return
		}
	}
}

// infoCalls is the command that returns how often each command ran so far.
var infoCalls = []string{"INFO", "commandstats"}

// callsIn adds up the reply to infoCalls, of lines such as
// "cmdstat_get:calls=21,usec=175,...".
func callsIn(t Table, r Reply) (sum Calls) {
	text, _ := r.(Bulk)
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		calls, _, _ := strings.Cut(rest, ",")
		name, _, _ = strings.Cut(name, "|")
		if n, err := strconv.ParseInt(calls, 10, 64); err == nil {
			sum.add(t, name, n)
		}
	}
	return sum
}

// translated is a command as it is sent to Redis.
type translated struct {
	cmd    []string
	script bool              // it runs a script
	finish func(Reply) Reply // turns Redis' reply into that of the service
}

// translate turns a command of the service into one of Redis 7.0. A script
// loses the service's own flag. To clients it keeps the sum of the text they
// sent.
func (r *Redis) translate(args []string) translated {
	t := translated{cmd: args, finish: func(reply Reply) Reply { return reply }}
	name := strings.ToUpper(args[0])
	byText, byName := runsScript(name)
	t.script = RunsScript(args)
	switch {
	case name == "SCAN":
		cmd, types := withoutType(args)
		t.cmd = cmd
		t.finish = func(reply Reply) Reply {
			if types {
				return addTypes(reply, r.Do)
			}
			return reply
		}
	case name == "COPY":
		t.finish = func(reply Reply) Reply {
			if reply == errSameObject {
				return int64(0) // as the service answers
			}
			return reply
		}
	case byText:
		t.cmd = with(args, 1, r.rename(args[1]))
	case byName:
		t.cmd = with(args, 1, r.sum(args[1]))
	case name != "SCRIPT" || len(args) < 3:
	case strings.EqualFold(args[1], "LOAD"):
		t.cmd = with(args, 2, r.rename(args[2]))
		t.finish = func(reply Reply) Reply {
			if _, ok := reply.(Bulk); ok {
				return Bulk(scriptSum(args[2]))
			}
			return reply
		}
	case strings.EqualFold(args[1], "EXISTS"):
		for i := 2; i < len(args); i++ {
			t.cmd = with(t.cmd, i, r.sum(args[i]))
		}
	}
	return t
}

// rename returns the script for Redis, and keeps Redis' sum of it if that
// differs.
func (r *Redis) rename(text string) string {
	body := withoutKeyLocking(text)
	if body != text {
		r.renamed[scriptSum(text)] = scriptSum(body)
	}
	return body
}

// sum returns Redis' sum of a script.
func (r *Redis) sum(sent string) string {
	if sum, ok := r.renamed[strings.ToLower(sent)]; ok {
		return sum
	}
	return sent
}

// Redis itself vets what scripts call: they run as one of two users of its ACL,
// who may run the commands of the table. A Redis that lets no users be made has
// none: then a read-only token runs no script.

// users are the names of the two, or "" if there are to be none.
type users struct{ all, reader string }

// transaction is what a user needs beside the table.
var transaction = []string{"MULTI", "EXEC", "DISCARD"}

func (r *Redis) makeUsers() {
	r.made = r.makeUser(r.users.all, func(string) bool { return true }) &&
		r.makeUser(r.users.reader, r.table.readable)
}

// forgoUsers refuses the scripts of a read-only token.
func (r *Redis) forgoUsers() {
	r.users = users{}
	for name, c := range r.table {
		if strings.HasSuffix(name, "_RO") && RunsScript([]string{name}) {
			c.write = true
			r.table[name] = c
		}
	}
}

// makeUser makes one user, or sets its commands again. It reports whether Redis
// did.
func (r *Redis) makeUser(name string, may func(command string) bool) bool {
	rules := []string{"ACL", "SETUSER", name, "reset", "on", "nopass", "~*", "&*"}
	for _, command := range slices.Concat(transaction, slices.Sorted(maps.Keys(r.table))) {
		if may(command) {
			rules = append(rules, "+"+command)
		}
	}
	reply, err := r.link.do(r.limits.Timeout, append(rules, "-memory|purge")...)
	return err == nil && reply == Status("OK")
}

// tableOf reads the reply to COMMAND. It has the name, arity and flags of each
// command, and since Redis 7.0 those of its subcommands. Whether a command
// counts as a write is as in memory, if it is known there.
func tableOf(r Reply) Table {
	list, _ := r.(Array)
	table := make(Table)
	for _, el := range list {
		row, _ := el.(Array)
		if len(row) < 3 {
			continue
		}
		name, _ := row[0].(Bulk)
		arity, _ := row[1].(int64)
		upper := strings.ToUpper(string(name))
		flags := flagsOf(row)
		if unfit(upper, flags) || refused[upper] {
			continue
		}
		c := command{arity: int(arity), write: flags["write"] || upper == "FCALL" || upper == "SPUBLISH"}
		if known, ok := inMemory[upper]; ok {
			c.write = known.write
		}
		table[upper] = c
	}
	return table
}

// flagsOf returns the flags of a command and of its subcommands.
func flagsOf(row Array) map[string]bool {
	flags := make(map[string]bool)
	own, _ := row[2].(Array)
	for _, f := range own {
		if s, ok := f.(Status); ok {
			flags[string(s)] = true
		}
	}
	if len(row) < 10 {
		return flags
	}
	subs, _ := row[9].(Array)
	for _, sub := range subs {
		if sub, ok := sub.(Array); ok && len(sub) > 2 {
			for f := range flagsOf(sub) {
				flags[f] = true
			}
		}
	}
	return flags
}

// unfit reports whether a command is for operators, needs a connection of its
// own, or waits. Those of a stream wait only if they are told to.
func unfit(name string, flags map[string]bool) bool {
	switch name {
	case "XREAD", "XREADGROUP", "WAIT", "PUBLISH", "SPUBLISH", "PUBSUB":
		return false
	case "ASKING", "LASTSAVE", "MIGRATE", "READONLY", "READWRITE", "RESTORE-ASKING", "ROLE", "SWAPDB":
		return true
	}
	return flags["admin"] || flags["blocking"] || flags["pubsub"]
}

// linkBuffer is how many bytes a link sends or reads at once.
const linkBuffer = 64 << 10

// link is a connection to a Redis.
type link struct {
	conn    net.Conn
	r       *bufio.Reader
	w       *bufio.Writer
	timeout time.Duration // of writing a command, and of a reply
	err     error         // why the connection is lost
}

func newLink(conn net.Conn, timeout time.Duration) *link {
	return &link{
		conn: conn, timeout: timeout,
		r: bufio.NewReaderSize(conn, linkBuffer), w: bufio.NewWriterSize(conn, linkBuffer),
	}
}

// write begins to send a command. flush sends the rest.
func (l *link) write(args []string) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.timeout)); err != nil {
		return l.lose(err)
	}
	_, err := l.w.Write(appendLength(l.w.AvailableBuffer(), '*', len(args)))
	for _, a := range args {
		_, _ = l.w.Write(appendLength(l.w.AvailableBuffer(), '$', len(a)))
		_, _ = l.w.WriteString(a)
		_, err = l.w.WriteString("\r\n") // the first error stays
	}
	return l.lose(err)
}

func (l *link) flush() error { return l.lose(l.w.Flush()) }

// read waits for a reply.
func (l *link) read(timeout time.Duration) (Reply, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, l.lose(err)
	}
	r, err := readReply(l.r)
	return r, l.lose(err)
}

// do sends a command and waits for its reply.
func (l *link) do(timeout time.Duration, args ...string) (Reply, error) {
	if err := l.write(args); err != nil {
		return nil, err
	}
	if err := l.flush(); err != nil {
		return nil, err
	}
	return l.read(timeout)
}

// lose notes the loss of the connection if there is an error.
func (l *link) lose(err error) error {
	if l.err == nil {
		l.err = err
	}
	return err
}
