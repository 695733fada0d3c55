package database

import (
	"strings"
	"testing"
)

// TestLikeRedis runs commands of other kinds on both backends, in order.
func TestLikeRedis(t *testing.T) {
	p := newPair(t)
	for _, line := range []string{
		"MSET a 1 b 2 c 3", "MGET a none c", "SETNX a 9", "SETNX d 4", "GETSET d 5", "GETDEL d",
		"GETEX a EX 900", "TTL a", "TTL b", "TTL none", "EXPIREAT a 9999999999", "PEXPIREAT b 1",
		"EXISTS b", "INCRBYFLOAT c 0.5", "HSET h f 1 g 2", "HGET h f", "HMGET h f none", "HLEN h",
		"HDEL h f", "RPUSH l x y z", "LRANGE l 0 -1", "LPOP l", "LLEN l", "SADD s m m", "SCARD s",
		"SISMEMBER s m", "ZADD z 1 a 2 b", "ZSCORE z a", "ZRANGE z 0 -1", "TYPE h", "TYPE z",
		"STRLEN h", "ECHO x", "PING", "PING x", "SETEX e 900 v", "PSETEX e 900000 v", "TTL e",
		"EVAL return{1,'x',false,{2}} 0", "EVAL return(KEYS[1]..ARGV[1]) 1 k v", "EVAL return(3.7) 0",
		"EVALSHA ffffffffffffffffffffffffffffffffffffffff 0", "SUBSTR c 0 1", "UNLINK a c", "DBSIZE",
		"GET h", "RENAME none x", "COPY e e", "COPY e f DB 0", "FLUSHDB", "DBSIZE", "FLUSHALL",
		"SCAN 0",
	} {
		p.same(t, strings.Fields(line)...)
	}
	p.same(t, "SET", "a", "bytes \x00\xff", "EX", "900")
	for _, db := range []DB{p.mem, p.red} { // each in its own format
		dump, _ := db.Do([]string{"DUMP", "a"}).(Bulk)
		if r := db.Do([]string{"RESTORE", "b", "0", string(dump)}); r != Status("OK") {
			t.Errorf("RESTORE: %v", r)
		}
	}
	p.same(t, "GET", "b")
}
