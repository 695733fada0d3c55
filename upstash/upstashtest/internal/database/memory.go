package database

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// engine is a miniredis in this process, driven without a socket and without a
// goroutine of its own.
type engine struct {
	m       *miniredis.Miniredis
	limits  Limits
	scripts scripts
	written scripts // all that were ever in scripts, for Again
	called  Calls
	life    context.Context // ends scripts when the database closes
	end     context.CancelFunc

	now      time.Time     // in whole milliseconds, which are the unit of Redis
	ahead    time.Duration // how far it is ahead of the machine's clock
	ticked   time.Time     // by the machine's clock
	nextTick time.Time
	full     bool // see SetFull
	readOnly bool // see ForReader
	frozen   bool // a script or a transaction runs, in which no key expires
	broken   Lost // since the engine panicked: nothing may use it again
}

// Memory is the default backend: one logical database of an engine, with the
// commands of the table native added or replaced.
type Memory struct {
	*engine
	index int // 0 is the primary; each region has one of the others
	db    *miniredis.RedisDB
	peer  *server.Peer
	out   *bytes.Buffer
	read  *bufio.Reader // of out
	wire  *bufio.Writer
}

// native holds the commands that miniredis lacks, or in which it differs from
// Redis 7.0 and programs of this module would notice; native.go fills it. The
// arguments include the name, and their number has been checked.
var native map[string]func(*Memory, []string) Reply

// OpenMemory makes an empty database in this process.
func OpenMemory(limits Limits) (*Memory, error) {
	m := miniredis.NewMiniRedis()
	c, err := m.Dial() // starts it without a listener
	if err != nil {
		return nil, err
	}
	_ = c.Close()
	m.ClockTTL(true)
	e := &engine{m: m, limits: limits, scripts: make(scripts), written: make(scripts)}
	e.life, e.end = context.WithCancel(context.Background())
	e.tick()
	return e.open(0), nil
}

// open makes a handle to the logical database i.
func (e *engine) open(i int) *Memory {
	d := &Memory{engine: e, index: i, db: e.m.DB(i), out: new(bytes.Buffer)}
	d.read, d.wire = bufio.NewReader(d.out), bufio.NewWriter(d.out)
	d.peer = server.NewPeer(d.wire)
	d.dispatch([]string{"SELECT", strconv.Itoa(i)})
	return d
}

// Copy makes a handle to the logical database i, with the present keys of d.
func (d *Memory) Copy(i int) *Memory {
	c := d.open(i)
	c.db.FlushDB()
	for _, key := range d.db.Keys() {
		_ = d.m.Copy(d.index, key, i, key) // fails on a missing key only
	}
	return c
}

// Table returns the commands of miniredis and of native.
func (d *Memory) Table() Table { return inMemory }

// Do runs one command.
func (d *Memory) Do(args []string) Reply {
	if d.broken != "" {
		return d.broken
	}
	if strings.EqualFold(args[0], "TIME") {
		d.nextTick = d.ticked
	}
	return d.guarded(args, func() Reply {
		defer d.Freeze()()
		return d.run(owned(args))
	})
}

// owned copies those of args that the database stores: all of them, or the key
// of a BITFIELD. Otherwise a stored argument would keep its whole request in
// memory.
func owned(args []string) []string {
	stored := len(args)
	if strings.EqualFold(args[0], "BITFIELD") {
		stored = min(stored, 2)
	}
	args = slices.Clone(args)
	for i, a := range args[:stored] {
		args[i] = strings.Clone(a)
	}
	return args
}

func (d *Memory) run(args []string) Reply {
	name := strings.ToUpper(args[0])
	if f := engineBreaks(args); f != "" {
		return f
	}
	if f := d.tooSlow(name, args); f != "" {
		return f
	}
	if name == "FLUSHALL" { // other logical databases are the Server's own
		args = append([]string{"FLUSHDB"}, args[1:]...)
	}
	run := native[name]
	if run == nil {
		run = (*Memory).dispatch
	}
	reply := run(d, args)
	switch name {
	case "SDIFFSTORE", "SINTERSTORE", "SUNIONSTORE", "ZINTERSTORE", "ZUNIONSTORE":
		if reply == int64(0) { // the engine leaves an empty key, and panics over it later
			d.db.Del(args[1])
		}
	}
	return reply
}

// Freeze sets the clock to now and stops it until thaw is called. As in Redis,
// no key expires in the middle of a script or a transaction.
func (e *engine) Freeze() (thaw func()) {
	if e.frozen {
		return func() {}
	}
	e.tick()
	e.frozen = true
	return func() { e.frozen = false }
}

// tick sets the clock to now and removes expired keys. For this, miniredis
// looks at every key. So the clock ticks at most once a millisecond, and with
// very many keys seldom enough to take a tenth of the time. TIME makes it tick.
func (e *engine) tick() {
	now := time.Now()
	if now.Before(e.nextTick) {
		return
	}
	e.ticked = now
	e.setClock(now.Add(e.ahead))
	e.nextTick = now.Add(max(time.Millisecond, 10*time.Since(now)))
}

func (e *engine) setClock(now time.Time) {
	e.now = now.UTC().Truncate(time.Millisecond)
	e.m.SetTime(e.now)
	e.m.DB(0) // removes expired keys
}

// ForReader restricts scripts to what a read-only token may run, or ends that.
func (e *engine) ForReader(yes bool) { e.readOnly = yes }

// SetFull makes the database full, or ends that. Do runs a command all the
// same; in a script it is refused.
func (e *engine) SetFull(full bool) error {
	e.full = full
	return nil
}

// Again runs a command that ran before, when the database was full or not, whatever
// became of its script since. What the primary knows of scripts it leaves alone.
func (d *Memory) Again(args []string, full bool) {
	if strings.EqualFold(args[0], "SCRIPT") {
		return
	}
	fullNow, known := d.full, d.scripts
	d.full, d.scripts = full, d.written
	d.Do(args)
	d.full, d.scripts = fullNow, known
}

// Flush removes all keys.
func (d *Memory) Flush() error {
	d.db.FlushDB()
	return nil
}

// FastForward sets the clock ahead, and shortens every time to live, in all
// logical databases.
func (d *Memory) FastForward(by time.Duration) error {
	d.ahead += by
	if time.Now().Before(d.ticked) {
		d.setClock(d.now.Add(by)) // the caller is in a synctest bubble
	} else {
		d.nextTick = time.Time{}
		d.tick()
	}
	return nil
}

// Called returns how many commands scripts have called so far.
func (d *Memory) Called() Calls { return d.called }

// Interrupt ends a running script, and makes later ones fail.
func (d *Memory) Interrupt() { d.end() }

// Close drops the data.
func (d *Memory) Close() error {
	d.end()
	if d.broken == "" { // else the engine's lock is held
		d.m.Close()
	}
	return nil
}

// dispatch runs a command in miniredis and reads its reply. If the engine panics
// before it has taken its lock, it did so over the arguments, and has changed
// nothing.
func (d *Memory) dispatch(args []string) (r Reply) {
	d.out.Reset()
	defer func() {
		if p := recover(); p != nil {
			if !d.m.TryLock() {
				panic(p)
			}
			d.m.Unlock()
			r = errSyntax
		}
	}()
	d.m.Server().Dispatch(d.peer, args)
	d.peer.Flush()
	d.read.Reset(d.out)
	r, err := readReply(d.read)
	if err != nil {
		return Failure("ERR reading the reply of miniredis: " + err.Error())
	}
	return r
}

// get reads a string key. The value shares the database's memory.
func (d *Memory) get(key string) (value string, found bool, f Failure) {
	value, err := d.db.Get(key)
	if errors.Is(err, miniredis.ErrKeyNotFound) {
		return "", false, ""
	}
	if err != nil {
		return "", true, ErrWrongType
	}
	return value, true, ""
}

// grown returns a copy of s of at least n bytes, filled with zeros.
func grown(s string, n int) []byte {
	if n <= len(s) {
		return []byte(s)
	}
	b := make([]byte, n)
	copy(b, s)
	return b
}

// setBytes is set without a copy: the caller must not change b afterwards. A
// filter may have tens of megabytes, and each Add replaces it.
func (d *Memory) setBytes(key string, b []byte) {
	d.set(key, unsafe.String(unsafe.SliceData(b), len(b)))
}

// set replaces a string and keeps its time to live.
func (d *Memory) set(key, value string) {
	ttl := d.db.TTL(key)
	_ = d.db.Set(key, value) // fails for another type alone: the callers have checked it
	if ttl > 0 {
		d.db.SetTTL(key, ttl)
	}
}

// guarded runs a command of the engine and recovers from its panic. The engine
// panics with its lock held and its data perhaps half changed, so it is not
// used again. A script's pcall must not see the panic: it would take it for an
// error of the command.
func (d *Memory) guarded(args []string, run func() Reply) (r Reply) {
	defer func() {
		if p := recover(); p != nil {
			d.broken = Lost(fmt.Sprintf("ERR the database is lost: %s made the engine panic: %s",
				strings.ToUpper(args[0]), oneLine(fmt.Sprint(p))))
			r = d.broken
		}
	}()
	return run()
}

// Broken returns why the database is lost, or nil.
func (d *Memory) Broken() error {
	if d.broken == "" {
		return nil
	}
	return d.broken
}
