package database

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLikeRedis runs commands of other kinds on both databases, in this order.
func TestLikeRedis(t *testing.T) {
	p := newPair(t)
	for _, line := range []string{
		"MSET a 1 b 2 c 3", "MGET a none c", "SETNX a 9", "SETNX d 4", "GETSET d 5", "GETDEL d",
		"EXPIRE a 900", "TTL a", "SETEX b 0 v", "SETEX b -1 v", "SETEX b x v", "PSETEX b 9223372036854775807 v",
		"TTL b", "TTL none", "EXPIREAT a 9999999999", "PEXPIREAT b 1",
		"EXISTS b", "INCRBYFLOAT c 0.5", "HSET h f 1 g 2", "HGET h f", "HMGET h f none", "HLEN h",
		"HDEL h f", "RPUSH l x y z", "LRANGE l 0 -1", "LPOP l", "LLEN l", "SADD s m m", "SCARD s",
		"SISMEMBER s m", "ZADD z 1 a 2 b", "ZSCORE z a", "ZRANGE z 0 -1", "TYPE h", "TYPE z",
		"ZUNIONSTORE zz 2 none void", "ZINTERSTORE zz 2 z none", "SDIFFSTORE ss s s", "EXISTS zz ss",
		"STRLEN h", "ECHO x", "PING", "PING x", "SETEX e 900 v", "PSETEX e 900000 v", "TTL e",
		"EVAL return{1,'x',false,{2}} 0", "EVAL return(KEYS[1]..ARGV[1]) 1 k v", "EVAL return(3.7) 0",
		"EVALSHA ffffffffffffffffffffffffffffffffffffffff 0", "UNLINK a c", "DBSIZE",
		"GET h", "RENAME none x", "COPY e e", "COPY e f DB 0", "FLUSHDB", "DBSIZE", "FLUSHALL",
		"SCAN 0",
	} {
		args := strings.Fields(line)
		if args[0] == "TTL" { // in minutes, because the second answer comes later
			if ours, redis := minutes(p.mem.Do(args)), minutes(p.red.Do(args)); ours != redis {
				t.Errorf("%s: got %v minutes, want %v as in Redis", line, ours, redis)
			}
			continue
		}
		p.same(t, args...)
	}
	p.same(t, "SET", "a", "bytes \x00\xff", "EX", "900")
	for _, db := range []DB{p.mem, p.red} { // each in its own format
		dump, _ := db.Do([]string{"DUMP", "a"}).(Bulk)
		if r := db.Do([]string{"RESTORE", "b", "0", string(dump)}); r != Status("OK") {
			t.Errorf("RESTORE: got %v, want OK", r)
		}
	}
	p.same(t, "GET", "b")
}

// TestWordsAreASCII has words of Redis in letters that Unicode takes for theirs in
// another case.
func TestWordsAreASCII(t *testing.T) {
	p := newPair(t)
	p.same(t, "SET", "a", "1")
	for _, line := range []string{
		"SET a 1 PX 900000 ſX", "SET a 1 İX", "BITCOUNT a 0 -1 BİT", "BITPOS a 1 0 -1 bıt",
		"BITFIELD a OVERFLOW FAİL İNCRBY u8 0 1", "BITFIELD a overflow ſat", "BITFIELD a ſET u8 0 1",
		"BITFIELD a İNCRBY u8 0 1", "COPY a b REPLACEı", "EXPIRE a 900 lİ",
		"EVAL return(redis.call('ſET','a','1')) 0",
	} {
		ours, redis := p.mem.Do(strings.Fields(line)), p.red.Do(strings.Fields(line))
		_, refused := ours.(Failure)
		if _, bad := redis.(Failure); !bad || !refused {
			t.Errorf("%s: ours %v, redis %v; want two errors", line, ours, redis)
		}
	}
	if f := inMemory.Vet([]string{"ſET", "a", "1"}, false); f == "" {
		t.Error("SET with a long s is no unknown command")
	}
}

// minutes rounds the answer to a TTL. Negative answers stay.
func minutes(seconds Reply) Reply {
	if n, ok := seconds.(int64); ok && n >= 0 {
		return (n + 30) / 60
	}
	return seconds
}

// TestMoments sets and reads the moments at which a key expires.
func TestMoments(t *testing.T) {
	p := newPair(t)
	p.same(t, "EXPIRETIME", "a")
	p.same(t, "SET", "a", "1")
	p.same(t, "PEXPIRETIME", "a")
	at := time.Now().Add(time.Hour).UnixMilli()
	for range 200 {
		at += 7
		moment := strconv.FormatInt(at, 10)
		p.same(t, "PEXPIREAT", "a", moment)
		p.same(t, "PEXPIRETIME", "a")
		p.same(t, "EXPIRETIME", "a")
		p.same(t, "SET", "b", "1", "PXAT", moment)
		p.same(t, "PEXPIRETIME", "b")
	}
}

// TestLongestTTL sets times beyond 292 years, the longest here.
func TestLongestTTL(t *testing.T) {
	db := openTestMemory(t)
	for _, line := range []string{
		"EXPIRE a 9999999999", "PEXPIRE a 9999999999999999", "EXPIREAT a 99999999999",
		"SET a v EX 9999999999", "SET a v PXAT 99999999999999", "SETEX a 9999999999 v",
		"SETEX a 99999999999 v", "PSETEX a 99999999999999 v",
	} {
		db.Do([]string{"SET", "a", "v"})
		if f, bad := db.Do(strings.Fields(line)).(error); bad {
			t.Errorf("%s: %v", line, f)
		}
		const years = 292
		if s, _ := db.Do([]string{"TTL", "a"}).(int64); s/(365*24*3600) != years {
			t.Errorf("%s: TTL %d, want %d years", line, s, years)
		}
	}
}

// TestLikeTheService checks the answers in which the service differs from Redis
// 7.0, on both databases.
func TestLikeTheService(t *testing.T) {
	p := newPair(t)
	for _, tt := range []struct{ cmd, want string }{
		{"SET a 1", show(Status("OK"))},
		{"COPY a a", "0"},
		{"COPY none none", "0"},
		{"SCAN 0 WITHTYPE", show(Array{Bulk("0"), Array{Bulk("a"), Bulk("string")}})},
		{"SCAN 0 MATCH a withtype COUNT 100", show(Array{Bulk("0"), Array{Bulk("a"), Bulk("string")}})},
		{"SCAN 0 MATCH none WITHTYPE", show(Array{Bulk("0"), Array(nil)})},
	} {
		args := strings.Fields(tt.cmd)
		for _, db := range []DB{p.mem, p.red} {
			if got := show(db.Do(args)); got != tt.want {
				t.Errorf("%T: %s: %s, want %s", db, tt.cmd, got, tt.want)
			}
		}
		if got, ok := p.red.Multi([][]string{args}).(Array); !ok || show(got[0]) != tt.want {
			t.Errorf("in a transaction: %s: %s, want %s", tt.cmd, show(got), tt.want)
		}
	}
}

// TestRedisTable checks the commands of a real Redis. It accepts some that the
// database in memory lacks. It refuses those for operators, and those without a
// meaning over REST.
func TestRedisTable(t *testing.T) {
	p := newPair(t)
	for _, tt := range []struct {
		cmd   string
		want  string // the beginning of the refusal, or ""
		write bool
	}{
		{"SORT a STORE b", "", true},
		{"SORT_RO a", "", false},
		{"OBJECT ENCODING a", "", false},
		{"MEMORY USAGE a", "", false},
		{"FUNCTION LIST", "", true},
		{"FCALL f 0", "", true},
		{"FCALL_RO f 0", "", false},
		{"WAIT 0 0", "", false},
		{"ZDIFFSTORE z 1 a", "", true},
		{"EVALSHA x 0", "", true},
		{"BITFIELD a GET u8 0", "", true},
		{"XREAD STREAMS a 0", "", false},
		{"XREAD BLOCK 0 STREAMS a 0", "ERR Command \"XREAD\" is not allowed", false},
		{"SUBSCRIBE a", "ERR Command \"SUBSCRIBE\" is not allowed", false},
		{"MONITOR", "ERR Command \"MONITOR\" is not allowed", false},
		{"BLPOP a 0", "ERR Command \"BLPOP\" is not allowed", false},
		{"CLIENT KILL a", "ERR Command \"CLIENT\" is not allowed", false},
		{"CONFIG GET a", "ERR Command is not available: 'CONFIG'", false},
		{"SHUTDOWN", "ERR Command is not available: 'SHUTDOWN'", false},
		{"DEBUG SLEEP 1", "ERR Command is not available: 'DEBUG'", false},
		{"NOPE", "ERR Command is not available: 'NOPE'", false},
		{"SORT", "ERR wrong number of arguments for 'sort' command", true},
	} {
		args := strings.Fields(tt.cmd)
		got := string(p.red.Table().Vet(args, false))
		if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.cmd, got, tt.want)
		}
		if w := p.red.Table().IsWrite(args); w != tt.write {
			t.Errorf("IsWrite(%s) = %v, want %v", tt.cmd, w, tt.write)
		}
	}
	for name, ours := range inMemory {
		theirs, ok := p.red.table[name]
		switch name {
		case "HEXPIRE", "HPERSIST", "HPTTL", "HTTL", "HSETEX":
			continue // this Redis may be older than the command
		}
		if !ok || ours.arity != theirs.arity {
			t.Errorf("%s: arity %d, want %d as in Redis", name, ours.arity, theirs.arity)
		}
	}
}

// TestMissingCommandsAreListed compares the list in doc.go of upstashtest with
// the commands of Redis 7.0 that the database in memory lacks.
func TestMissingCommandsAreListed(t *testing.T) {
	p := newPair(t)
	info, _ := p.red.Do([]string{"INFO", "server"}).(Bulk)
	if !strings.Contains(string(info), "redis_version:7.0.") {
		t.Skip("the list is about Redis 7.0")
	}
	var missing, newer []string
	known := make(map[string]bool)
	rows, _ := p.red.Do([]string{"COMMAND"}).(Array)
	for _, el := range rows {
		row := el.(Array)
		name := strings.ToUpper(string(row[0].(Bulk)))
		known[name] = true
		if _, fit := p.red.table[name]; !fit || refused[name] {
			continue
		}
		if _, has := inMemory[name]; !has {
			missing = append(missing, name)
			continue
		}
		for _, sub := range row[9].(Array) {
			words := strings.Split(strings.ToUpper(string(sub.(Array)[0].(Bulk))), "|")
			if words[1] != "HELP" && unknownSubcommand(p.mem, words, sub.(Array)[1].(int64)) {
				missing = append(missing, strings.Join(words, " "))
			}
		}
	}
	doc, err := os.ReadFile("../../doc.go")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(strings.ReplaceAll(string(doc), "//", "")), " ")
	for name := range inMemory {
		if !known[name] {
			newer = append(newer, name)
		}
	}
	slices.Sort(missing)
	slices.Sort(newer)
	last := len(newer) - 1
	for _, says := range []string{
		"These commands of Redis 7.0 are missing there: " + strings.Join(missing, ", ") + " ",
		"commands newer than Redis 7.0 it has " + strings.Join(newer[:last], ", ") + " and " + newer[last] + ".",
	} {
		if !strings.Contains(page, says) {
			t.Errorf("doc.go does not say %q", says)
		}
	}
}

// unknownSubcommand runs a subcommand with as many words as it needs.
func unknownSubcommand(db *Memory, words []string, arity int64) bool {
	for n := max(arity, -arity); int64(len(words)) < n; {
		words = append(words, "x")
	}
	f, _ := db.Do(words).(Failure)
	text := strings.ToLower(string(f))
	return strings.Contains(text, "unknown subcommand") || strings.Contains(text, "not supported")
}
