package database

import "strings"

// ErrFull is the reply of a full database to a command that may take memory.
const ErrFull = Failure("OOM command not allowed when used memory > 'maxmemory'.")

// flagAllowOOM is the flag of a script that runs in a full database too.
const flagAllowOOM = "allow-oom"

// growingCommands are those that Redis refuses when it is full, with HEXPIRE
// and HSETEX of later versions. BITFIELD and GEORADIUS are refused even if they
// only read.
const growingCommands = `
	APPEND BITFIELD BITOP COPY DECR DECRBY GEOADD GEORADIUS GEORADIUSBYMEMBER
	GETSET HEXPIRE HINCRBY HINCRBYFLOAT HMSET HSET HSETEX HSETNX INCR INCRBY
	INCRBYFLOAT LINSERT LMOVE LPUSH LPUSHX LSET MSET MSETNX PFADD PFMERGE PSETEX
	RESTORE RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE
	SINTERSTORE SUNIONSTORE XADD ZADD ZINCRBY ZINTERSTORE ZUNIONSTORE`

var growing = nameSet(growingCommands)

// Grows reports whether a full database refuses a command because of its name.
func Grows(args []string) bool { return growing[strings.ToUpper(args[0])] }

// SetFull makes the database full, or ends that. Do runs a command all the
// same; in a script it is refused.
func (e *engine) SetFull(full bool) error {
	e.full = full
	return nil
}

// Again runs a command that ran before, when the database was full or not.
func (d *Memory) Again(args []string, full bool) {
	now := d.full
	d.full = full
	d.Do(args)
	d.full = now
}

// refusedWhenFull reports whether a full database refuses a script. Redis 7.0
// runs one without a first line. It refuses commands of it, until one has
// written.
func (s shebang) refusedWhenFull() bool { return s.mayWrite() && !s.has(flagAllowOOM) }
