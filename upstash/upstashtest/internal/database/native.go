package database

import "time"

func init() { // a plain literal would be an initialization cycle through do
	native = map[string]func(*Memory, []string) Reply{
		"BITFIELD":    bitfield(false),
		"BITFIELD_RO": bitfield(true),
		"BITCOUNT":    (*Memory).bitCount,
		"BITPOS":      (*Memory).bitPos,
		"COPY":        (*Memory).copyKey,
		"BITOP":       (*Memory).bitOp,
		"SET":         (*Memory).store,
		"SETEX":       storeFor("EX"),
		"PSETEX":      storeFor("PX"),
		"SETBIT":      (*Memory).setBit,
		"GETBIT":      (*Memory).getBit,
		"SCAN":        (*Memory).scan,
		"SETRANGE":    (*Memory).setRange,
		"GETRANGE":    (*Memory).getRange,

		"LPUSH":       (*Memory).push,
		"LPUSHX":      (*Memory).push,
		"INCR":        (*Memory).count,
		"DECR":        (*Memory).count,
		"INCRBY":      (*Memory).count,
		"DECRBY":      (*Memory).count,
		"INCRBYFLOAT": (*Memory).incrByFloat,
		"EVAL":        eval(false, false),
		"EVAL_RO":     eval(false, true),
		"EVALSHA":     eval(true, false),
		"EVALSHA_RO":  eval(true, true),
		"SCRIPT":      (*Memory).scriptCommand,
		"EXPIRE":      expiry(time.Second, false),
		"PEXPIRE":     expiry(time.Millisecond, false),
		"EXPIREAT":    expiry(time.Second, true),
		"PEXPIREAT":   expiry(time.Millisecond, true),
		"TTL":         timeLeft(time.Second, false),
		"PTTL":        timeLeft(time.Millisecond, false),
		"EXPIRETIME":  timeLeft(time.Second, true),
		"PEXPIRETIME": timeLeft(time.Millisecond, true),
	}
}
