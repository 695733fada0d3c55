package database

import (
	"strings"
	"testing"
)

// TestMended runs commands in whose arguments miniredis differs from Redis on
// both databases, in this order.
func TestMended(t *testing.T) {
	p := newPair(t)
	for _, line := range []string{
		"SET str x",
		"ZADD z 1 a 2 b 3 c", "ZPOPMIN z 0", "ZPOPMAX z 0", "ZPOPMIN z -1", "ZPOPMIN z x", "ZPOPMIN none 0",
		"ZPOPMIN str 0", "ZPOPMIN z", "ZPOPMAX z 5", "ZCARD z",

		"HSET h n 9223372036854775807 t x f 1.5", "HINCRBY h n 1", "HGET h n", "HINCRBY h n -1", "HINCRBY h t 1",
		"HINCRBY h f 1", "HINCRBY h new -5", "HINCRBY h new -9223372036854775808", "HINCRBY h new x",
		"HINCRBY str f 1", "HINCRBY h new 9223372036854775808", "HINCRBY made f 3", "HGETALL made",

		"ZADD z nan a", "ZADD z NX nan q", "ZADD z 1 a NaN b", "ZADD z INCR nan a", "ZADD z x a", "ZADD z 1 a 2",
		"ZINCRBY z nan a", "ZADD z 1 a 2 b inf i", "ZINCRBY z -inf i", "ZADD z INCR -inf i", "ZINCRBY z 1 i",
		"ZINCRBY str 1 i", "ZADD z INCR 2 a", "ZADD z NX INCR 2 a", "ZADD str 1 a",
		"ZUNIONSTORE zz 1 z WEIGHTS nan", "ZUNION 1 z WEIGHTS nan", "ZINTERSTORE zz 1 z WEIGHTS nan AGGREGATE MAX",
		"ZUNIONSTORE zz 2 z none WEIGHTS 2 3", "ZSCORE zz a", "ZINTERSTORE zz 2 z none WEIGHTS 2 3", "EXISTS zz",
		"ZADD zc CH 1 a 2 a", "ZADD zc CH 3 a 4 a", "ZADD zc CH 4 a 4 a", "ZADD zc CH CH 2 a", "ZADD zc NX CH 1 x 2 y 3 y",
		"ZADD zc CH GT 1 a 9 a", "ZADD zc CH NX XX 1 a", "ZADD str CH 1 a", "ZRANGE zc 0 -1 WITHSCORES",

		"GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 2.349014 48.864716 Paris",
		"GEORADIUS g 15 37 2000 km COUNT 1", "GEORADIUS g 15 37 2000 km COUNT 2", "GEORADIUS g 15 37 2000 km COUNT 1 DESC",
		"GEORADIUSBYMEMBER g Catania 2000 km COUNT 1", "GEORADIUSBYMEMBER_RO g Paris 2000 km COUNT 1",
		"GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 2000 km COUNT 1", "GEOSEARCH g FROMMEMBER Paris BYRADIUS 2000 km COUNT 2",
		"GEORADIUS_RO g 15 37 100 km COUNT 1 ANY", "GEORADIUS g 15 37 2000 km COUNT 0", "GEORADIUS g 15 37 2000 km COUNT",

		"XADD s 1-1 a b", "XADD s 2-1 a b", "XRANGE s - + COUNT 0", "XREVRANGE s + - COUNT 0", "XRANGE s - + COUNT -1",
		"XRANGE s - + COUNT 1", "XRANGE s 9 + COUNT 0", "XRANGE none - + COUNT 0", "XRANGE str - + COUNT 0",

		"PFADD p", "PFADD p", "PFCOUNT p", "PFADD p x", "PFADD p", "PFADD str", "PFADD h",

		"XGROUP CREATE s g $ ENTRIESREAD 1", "XGROUP CREATE s g2 0 entriesread x", "XGROUP CREATE s g4 0 ENTRIESREAD -2",
		"XGROUP CREATE s2 g 0 MKSTREAM ENTRIESREAD 0", "XGROUP CREATE s3 g 0 ENTRIESREAD -1 MKSTREAM",
		"XGROUP CREATE s g3 0 ENTRIESREAD", "XGROUP DESTROY s g",

		"RPUSH l a b c", "LPOP l -1", "RPOP l -1", "LPOP none -1", "LPOP str -1", "LPOP l x", "RPOP l 2", "LLEN l",
		"SADD set a", "SPOP set -1", "SPOP set x", "SPOP set 0",
	} {
		p.same(t, strings.Fields(line)...)
	}
}

// TestFieldsThatExpireAtOnce: the Redis of these tests may be older than the
// command.
func TestFieldsThatExpireAtOnce(t *testing.T) {
	db, err := OpenMemory(testLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, step := range []struct{ command, want string }{
		{"HSET h a 1 b 2 c 3", "3"},
		{"HEXPIRE h 10 FIELDS 1 c", "[1]"},
		{"HEXPIRE h 0 FIELDS 2 a none", "[2 -2]"},
		{"HEXPIRE h 0 NX FIELDS 2 b c", "[2 0]"},
		{"HKEYS h", show(Array{Bulk("c")})},
		{"HEXPIRE h -1 FIELDS 1 c", show(errHashExpire)},
		{"HEXPIRE h 0 FIELDS 1 c", "[2]"},
		{"EXISTS h", "0"},
	} {
		if got := show(db.Do(strings.Fields(step.command))); got != step.want {
			t.Errorf("%s: got %s, want %s", step.command, got, step.want)
		}
	}
}
