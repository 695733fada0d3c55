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
	for _, key := range Keys(args) {
		if n := len(key); n > MaxKey {
			return Failure(fmt.Sprintf("ERR max key size exceeded. Limit: %d bytes, Actual: %d bytes", MaxKey, n))
		}
	}
	if stringSize(db, strings.ToUpper(args[0]), args) > maxRecord {
		return ErrRecordTooLarge
	}
	return ""
}

// Keys returns the first key of a command, all those of a script and of a
// deletion, and none if the command has no key. The command's number of
// arguments is right.
func Keys(args []string) []string {
	name := strings.ToUpper(args[0])
	switch name {
	case "ECHO", "PING", "SCRIPT", "PUBLISH", "SCAN", "KEYS", "FLUSHALL", "FLUSHDB":
		return nil
	case "DEL", "UNLINK", "EXISTS", "TOUCH", "MGET":
		return args[1:]
	case "BITOP":
		return args[2:]
	}
	if byText, byName := runsScript(name); byText || byName {
		n, ok := parseInt(args[2])
		if !ok || n < 0 || n > int64(len(args)-3) {
			return nil // refused when it runs
		}
		return args[3 : 3+n]
	}
	if len(args) < 2 {
		return nil
	}
	return args[1:2]
}

// stringSize returns the least size in bytes that a string has after a command,
// or 0 if the command lengthens none or is malformed: then the database
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
