package upstashtest

import "time"

// backend is the database behind a Server. The Server calls one method at a
// time, and only with commands that passed its command table.
type backend interface {
	// do runs one command.
	do(args []string) reply
	// multi runs the commands as one transaction and gives an array with a
	// reply each, or a failure when the transaction was discarded as a whole.
	multi(cmds [][]string) reply
	// flush removes all keys of the database that the Server uses.
	flush() error
	// fastForward lets d pass for everything that expires.
	fastForward(d time.Duration) error
	close() error
}
