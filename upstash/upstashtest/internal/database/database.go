// Package database has the two databases of the server of upstashtest:
// miniredis, with the commands of Redis 7.0 that it lacks, and a real Redis. It
// knows nothing of HTTP.
package database

import "time"

// DB is the database behind a Server. The Server calls one method at a time,
// but Interrupt at any time. It passes only commands accepted by Table().Vet.
type DB interface {
	// Table returns the commands of the database.
	Table() Table
	// Do runs one command.
	Do(args []string) Reply
	// ForReader restricts the scripts from now on to the commands that a
	// read-only token may run, or ends that.
	ForReader(yes bool)
	// Called returns how many commands scripts have called so far.
	Called() Calls
	// Flush removes all keys of the Server's database.
	Flush() error
	// FastForward shortens every time to live by d.
	FastForward(d time.Duration) error
	// SetFull makes the database full, or ends that: what takes memory is
	// refused in scripts then. The caller refuses what else [Grows].
	SetFull(full bool) error
	// Broken returns why the database answers nothing but Lost from now on, or
	// nil. Of a broken one only Do, Called, Interrupt and Close may be called.
	Broken() error
	// Interrupt ends the running script or command. It may be called at any
	// time.
	Interrupt()
	// Close releases what the DB holds. It may be called once.
	Close() error
}

// Limits are the limits of a command.
type Limits struct {
	// MaxRecord is the longest string a command may leave behind, in bytes.
	MaxRecord uint64
	// Timeout is how long a command may run.
	Timeout time.Duration
}

// Calls is a number of commands.
type Calls struct{ Reads, Writes int64 }

// add counts n more of the command name.
func (c *Calls) add(t Table, name string, n int64) {
	if t.IsWrite([]string{name}) {
		c.Writes += n
	} else {
		c.Reads += n
	}
}

// Minus returns the difference of c and d.
func (c Calls) Minus(d Calls) Calls { return Calls{c.Reads - d.Reads, c.Writes - d.Writes} }
