package database

import (
	"fmt"
	"strings"
)

// MaxKey is the longest key in bytes, on every plan.
const MaxKey = 32 << 10

// ErrRecordTooLarge is the reply to a command whose string would be too long.
const ErrRecordTooLarge = Failure("ERR max single record size exceeded")

// OverLimit returns the refusal of a command whose key is longer than MaxKey,
// or whose string would become longer than maxRecord bytes. Otherwise it
// returns "". It is called before the command allocates anything.
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

// Keys returns the keys of a command on strings or whole keys, and the keys a
// script names. For any other command it returns the first argument, usually
// the only key. The command must have passed [Table.Vet].
func Keys(args []string) []string {
	name := strings.ToUpper(args[0])
	switch name {
	case "ECHO", "PING", "SCRIPT", "PUBLISH", "SCAN", "KEYS", "FLUSHALL", "FLUSHDB":
		return nil
	case "DEL", "UNLINK", "EXISTS", "TOUCH", "MGET", "PFCOUNT", "PFMERGE":
		return args[1:]
	case "RENAME", "RENAMENX", "COPY":
		return args[1:3]
	case "MSET", "MSETNX":
		return everySecond(args[1:])
	case "BITOP":
		return args[2:]
	}
	if byText, byName := runsScript(name); byText || byName {
		n, _ := parseInt(args[2])
		if n < 0 || n > int64(len(args)-3) {
			return nil // refused when it runs
		}
		return args[3 : 3+n]
	}
	if len(args) < 2 {
		return nil
	}
	return args[1:2]
}

// stringSize returns the least size in bytes of a command's string after the
// command. It returns 0 if the command lengthens no string, or is malformed:
// the database reports that.
func stringSize(db DB, name string, args []string) (size uint64) {
	switch name {
	case "SET", "GETSET", "SETNX":
		return uint64(len(args[2]))
	case "MSET", "MSETNX":
		for _, value := range everySecond(args[2:]) {
			size = max(size, uint64(len(value)))
		}
		return size
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
		f := eachField(args[2:], func(op fieldOp) { size = max(size, op.size()) })
		if f == "" {
			return size
		}
	}
	return 0
}
