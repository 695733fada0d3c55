// Package database is what stands behind the server of upstashtest: miniredis
// with the commands of Redis 7.0 that it lacks, or a real Redis. It knows
// nothing of HTTP.
package database

import "time"

// DB is the database behind a Server. The Server calls one method at a time,
// but for Interrupt, and only with commands that passed its command table.
type DB interface {
	// Table is what it can do.
	Table() Table
	// Do runs one command.
	Do(args []string) Reply
	// Multi runs the commands as one transaction and returns an Array with a
	// reply each, or a Failure if the transaction was discarded as a whole.
	Multi(cmds [][]string) Reply
	// Called is what scripts called so far: it is billed, as the command that
	// runs the script is.
	Called() Calls
	// Flush removes all keys of the database that the Server uses.
	Flush() error
	// FastForward lets d pass for everything that expires.
	FastForward(d time.Duration) error
	// Interrupt ends what runs, and makes what follows fail. It may be called
	// at any time.
	Interrupt()
	Close() error
}

// Limits bound what a command may take.
type Limits struct {
	// MaxRecord is the longest string in bytes that a command may leave behind.
	MaxRecord uint64
	// Timeout is how long a command may run.
	Timeout time.Duration
}

// Calls counts commands.
type Calls struct{ Reads, Writes int64 }

// add counts n more of the command name.
func (c *Calls) add(t Table, name string, n int64) {
	if t.IsWrite([]string{name}) {
		c.Writes += n
	} else {
		c.Reads += n
	}
}

// Minus returns what c has more than d.
func (c Calls) Minus(d Calls) Calls { return Calls{c.Reads - d.Reads, c.Writes - d.Writes} }
