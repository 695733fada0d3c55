// Package database is what stands behind the server of upstashtest: miniredis
// with the commands of Redis 7.0 that it lacks, or a real Redis. It knows
// nothing of HTTP.
package database

import "time"

// DB is the database behind a Server. The Server calls one method at a
// time, and only with commands that passed its command table.
type DB interface {
	// Do runs one command.
	Do(args []string) Reply
	// Multi runs the commands as one transaction and gives an array with a
	// reply each, or a failure when the transaction was discarded as a whole.
	Multi(cmds [][]string) Reply
	// Flush removes all keys of the database that the Server uses.
	Flush() error
	// FastForward lets d pass for everything that expires.
	FastForward(d time.Duration) error
	Close() error
}
