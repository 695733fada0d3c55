package upstashtest

import (
	"fmt"
	"strings"
)

// maxKey is the longest key in bytes, on every plan.
const maxKey = 32 << 10

const errRecordTooLarge = failure("ERR max single record size exceeded")

// overLimit says why a command may not run for the sake of its key or of the
// string that it would leave behind, before anything is allocated.
func (s *Server) overLimit(db backend, args []string) failure {
	if len(args) < 2 {
		return ""
	}
	name := strings.ToUpper(args[0])
	switch name {
	case "ECHO", "PING", "EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "SCRIPT", "PUBLISH":
		return "" // the first argument is no key
	}
	if n := len(args[1]); n > maxKey {
		return failure(fmt.Sprintf("ERR max key size exceeded. Limit: %d bytes, Actual: %d bytes", maxKey, n))
	}
	if stringSize(db, name, args) > uint64(s.cfg.maxRecord) {
		return errRecordTooLarge
	}
	return ""
}

// stringSize gives the least size in bytes that a string has after a command,
// or 0 where the command lengthens none or is malformed: then the database
// says so.
func stringSize(db backend, name string, args []string) uint64 {
	switch name {
	case "SET", "GETSET", "SETNX":
		return uint64(len(args[2]))
	case "SETEX", "PSETEX":
		return uint64(len(args[3]))
	case "APPEND":
		n, _ := db.do([]string{"STRLEN", args[1]}).(int64)
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
