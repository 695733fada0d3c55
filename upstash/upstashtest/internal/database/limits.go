package database

import (
	"fmt"
	"strings"
)

// MaxKey is the longest key in bytes, on every plan.
const MaxKey = 32 << 10

const ErrRecordTooLarge = Failure("ERR max single record size exceeded")

// OverLimit says why a command may not run for the sake of its key or of the
// string that it would leave behind, which may have maxRecord bytes. It is
// called before anything is allocated.
func OverLimit(db DB, args []string, maxRecord uint64) Failure {
	if len(args) < 2 {
		return ""
	}
	name := strings.ToUpper(args[0])
	switch name {
	case "ECHO", "PING", "EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "SCRIPT", "PUBLISH":
		return "" // the first argument is no key
	}
	if n := len(args[1]); n > MaxKey {
		return Failure(fmt.Sprintf("ERR max key size exceeded. Limit: %d bytes, Actual: %d bytes", MaxKey, n))
	}
	if stringSize(db, name, args) > maxRecord {
		return ErrRecordTooLarge
	}
	return ""
}

// stringSize gives the least size in bytes that a string has after a command,
// or 0 where the command lengthens none or is malformed: then the database
// says so.
func stringSize(db DB, name string, args []string) uint64 {
	switch name {
	case "SET", "GETSET", "SETNX":
		return uint64(len(args[2]))
	case "SETEX", "PSETEX":
		return uint64(len(args[3]))
	case "APPEND":
		n, _ := db.Do([]string{"STRLEN", args[1]}).(int64)
		return uint64(n) + uint64(len(args[2]))
	case "SETRANGE":
		if at, ok := parseInt(args[2]); ok && at >= 0 && args[3] != "" {
			return uint64(at) + uint64(len(args[3]))
		}
	case "SETBIT":
		if at, ok := bitOffset(args[2], 0); ok {
			return at>>3 + 1
		}
	case "BITFIELD":
		if p, f := parseBitfield(args[2:]); f == "" && p.writes {
			return p.size
		}
	}
	return 0
}
