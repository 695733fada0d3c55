package database

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

var (
	commands = flag.Int("database.commands", 30_000, "how many random commands to run")
	seed     = flag.Uint64("database.seed", 1, "the seed of the random commands")
)

// words are arguments of random commands besides keys and numbers: options of
// all commands, and texts hard to parse.
var words = strings.Fields(`
	AGGREGATE ALPHA ANY ASC AFTER BEFORE BIT BLOCK BY BYBOX BYLEX BYRADIUS BYSCORE BYTE CH CHANGES
	CONSUMERS COUNT CREATE CREATECONSUMER DELCONSUMER DESC DESTROY ENTRIESREAD EX EXAT FIELDS FLUSH FORCE
	FREQ FROMLONLAT FROMMEMBER FULL FVS FXX FNX GET GROUP GROUPS GT ID IDLE IDLETIME INCR JUSTID KEEPTTL
	km LASTID LEFT LIMIT LOAD LT m MATCH MAX MAXLEN MIN MINID MKSTREAM NOACK NOMKSTREAM NX OVERFLOW PX
	PXAT RANK REPLACE RETRYCOUNT REV RIGHT SAT SET SETID STORE STOREDIST STREAM STREAMS SUM TIME TYPE
	WEIGHTS WITHCOORD WITHDIST WITHHASH WITHSCORES WITHSCORE WITHTYPE WITHVALUES WRAP XX EXISTS
	= ~ * > $ + - -inf +inf inf nan [a (a (1 [ ( 1-1 1-* 5-0 0-0 99999999999999999999-1 u8 i5 u64 #1
	[a-c]* h?llo \ [^ *** "return{KEYS[1],ARGV[1]}" f1 f2 a b c m1 m2 g1 c1 13.361389 38.115556 0.5 -0.5
	1e1000000000 -1e1000000000 1e308 0x1p4 1_000 +1 01 1e3 NaN`)

var numbers = []string{
	"0", "1", "2", "1", "2", "3", "1", "2",
	"0", "1", "2", "3", "-1", "-2", "10", "100", "-100", "4294967295", "4294967296", "2147483647", "-2147483648",
	"9223372036854775807", "-9223372036854775808", "9223372036854775806", "-9223372036854775807",
	"18446744073709551615", "1000000000000", "-1000000000000", "1048576", "-1048577",
}

// filling makes keys of each type.
var filling = []string{
	"SET k0 text", "SET k1 10", "HSET k2 f1 1 f2 x", "RPUSH k3 a b c 1", "SADD k4 a b c m1", "SADD k5 x",
	"ZADD k6 1 a 2 b 3 c", "XADD k7 1-1 f1 a", "XADD k7 2-1 f1 b", "XGROUP CREATE k7 g1 0",
	"XREADGROUP GROUP g1 c1 STREAMS k7 >", "GEOADD k8 13.36 38.11 a 15.08 37.5 b", "PFADD k9 a b c",
	"SADD k10 m1", "RPUSH k11 1 2 3 4", "ZADD k12 1 m1 1 m2 5 f1", "HSET k13 m1 1 m2 2.5",
}

// forms are commands whose options have an order. K stands for a key, N for a
// number, W for a word, K+, N+ and W+ for a few of them, SUM for the name of a
// script.
var forms = strings.Split(strings.TrimSpace(`
BITFIELD K OVERFLOW W INCRBY W N N GET W N
BITOP AND K K+
BITOP NOT K K
COPY K K REPLACE
EVAL return(redis.call(unpack(ARGV))) N K K W+
EVAL_RO return(redis.call(unpack(ARGV))) 0 W K W+
EVALSHA SUM 1 K W
EVALSHA_RO SUM 1 K W
EXPIRE K N W
GEOADD K N 13.3 38.1 W
GEORADIUS K 13.3 38.1 N km COUNT N W STORE K
GEORADIUSBYMEMBER K W N m W STOREDIST K
GEORADIUS_RO K 13.3 38.1 N km ANY
GEORADIUSBYMEMBER_RO K a N km W
GEOSEARCH K FROMLONLAT 13.3 38.1 BYRADIUS N km COUNT N W
GEOSEARCH K FROMMEMBER W BYBOX N N m W
GETEX K W N
HEXPIRE K N W FIELDS N W+
HEXPIRE K N NX W FIELDS N W+
HPERSIST K FIELDS 1 W
HPTTL K FIELDS N W+
HTTL K FIELDS 1 W
HRANDFIELD K N WITHVALUES
HSCAN K N MATCH W COUNT N
HSETEX K EX N FIELDS N W+
LINSERT K W W W
LMOVE K K LEFT RIGHT
LMPOP N K+ LEFT COUNT N
LPOP K N
LPOS K W RANK N COUNT N MAXLEN N
LTRIM K N N
RESTORE K N W W
SCAN N MATCH W COUNT N TYPE W
SCRIPT EXISTS SUM
SCRIPT LOAD return{KEYS[1],ARGV[1]}
SDIFFSTORE K K K+
SET K W W N W
SINTERCARD N K+ LIMIT N
SMOVE K K W
SPOP K N
SRANDMEMBER K N
SSCAN K N MATCH W COUNT N
XADD K MAXLEN W N LIMIT N W W W
XADD K NOMKSTREAM MAXLEN W N W W
XADD K N-N W W
XAUTOCLAIM K g1 c1 N 0-0 COUNT N W
XCLAIM K g1 c1 N 1-1 W N W
XDEL K N-N
XGROUP CREATE K W W MKSTREAM
XGROUP DESTROY K g1
XGROUP CREATECONSUMER K g1 W
XGROUP DELCONSUMER K g1 W
XINFO STREAM K FULL COUNT N
XINFO CONSUMERS K g1
XPENDING K g1 IDLE N W W N W
XPENDING K g1 - + N
XRANGE K W W COUNT N
XREVRANGE K + W COUNT N
XREAD COUNT N STREAMS K K W W
XREADGROUP GROUP g1 c1 COUNT N STREAMS K >
XREADGROUP GROUP g1 W COUNT N NOACK STREAMS K K W W
XTRIM K MAXLEN W N LIMIT N
XTRIM K MINID = N
ZADD K W W N W N W
ZINTERSTORE K N K K WEIGHTS N N AGGREGATE W
ZUNIONSTORE K N K K WEIGHTS N N AGGREGATE W
ZUNION N K K WEIGHTS N N WITHSCORES
ZINTER 2 K K WEIGHTS N N W
ZLEXCOUNT K - [c
ZMPOP N K+ MIN COUNT N
ZPOPMIN K N
ZRANDMEMBER K N WITHSCORES
ZRANGE K N N W LIMIT N N WITHSCORES
ZRANGE K W W BYLEX REV LIMIT N N
ZRANGEBYSCORE K W W WITHSCORES LIMIT N N
ZRANGEBYLEX K W W LIMIT N N
ZREMRANGEBYLEX K [m +
ZREMRANGEBYRANK K N N
ZREVRANGEBYLEX K + W LIMIT N N
ZSCAN K N MATCH W COUNT N`), "\n")

// drawn is a source of random commands.
type drawn struct {
	*rand.Rand
	names []string
}

func (r drawn) key() string { return "k" + strconv.Itoa(r.IntN(15)) }

func (r drawn) of(list []string) string { return list[r.IntN(len(list))] }

// command draws a command: half of them by a form, half with any arguments in
// the right number.
func (r drawn) command() []string {
	if r.IntN(2) == 0 {
		return r.formed(r.of(forms))
	}
	name := r.of(r.names)
	n := inMemory[name].arity
	if n < 0 {
		n = -n + r.IntN(6)
	}
	args := []string{name}
	for len(args) < n {
		switch k := r.IntN(10); {
		case k < 4 || len(args) == 1 && k < 9:
			args = append(args, r.key())
		case k < 7:
			args = append(args, r.of(numbers))
		default:
			args = append(args, r.of(words))
		}
	}
	return args
}

// formed fills in a form. Now and then it leaves out the end.
func (r drawn) formed(form string) (args []string) {
	for _, word := range strings.Fields(form) {
		name, many := strings.CutSuffix(word, "+")
		times := 1
		if many && name != "" {
			times += r.IntN(3)
		} else {
			name = word
		}
		for range times {
			switch name {
			case "K":
				args = append(args, r.key())
			case "N":
				args = append(args, r.of(numbers))
			case "N-N":
				args = append(args, r.of(numbers)+"-"+r.of(numbers))
			case "SUM":
				args = append(args, scriptSum("return{KEYS[1],ARGV[1]}"))
			case "W":
				args = append(args, r.of(words))
			default:
				args = append(args, name)
			}
		}
	}
	if r.IntN(4) == 0 {
		args = args[:1+r.IntN(len(args))]
	}
	return args
}

// TestRandomCommands runs commands of every kind, with good and with bad
// arguments. None may make the engine panic or run for ever.
func TestRandomCommands(t *testing.T) {
	r := drawn{rand.New(rand.NewPCG(*seed, 0)), slices.Sorted(maps.Keys(inMemory))}
	limits := Limits{MaxRecord: 1 << 20, Timeout: testenv.Patience}
	db, err := OpenMemory(limits)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	answered := make(map[string]bool)
	for i := range *commands {
		if i%200 == 0 {
			fill(t, db)
		}
		args := r.command()
		if db.Table().Vet(args, false) != "" || OverLimit(db, args, limits.MaxRecord) != "" {
			continue
		}
		watchdog := time.AfterFunc(testenv.Patience, func() { panic(fmt.Sprintf("%q does not end", args)) })
		_, failed := db.Do(args).(error)
		watchdog.Stop()
		if err := db.Broken(); err != nil {
			t.Fatalf("seed %d, command %d: %q: the database is lost: %v", *seed, i, args, err)
		}
		if !failed {
			answered[strings.ToUpper(args[0])] = true
		}
	}
	for _, name := range r.names {
		if !answered[name] && *commands >= 2_000_000 {
			t.Errorf("%d commands: no %s succeeded, want one, or they test nothing", *commands, name)
		}
	}
}

// fill removes all keys and makes one of each type.
func fill(t *testing.T, db *Memory) {
	t.Helper()
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, line := range filling {
		if err, bad := db.Do(strings.Fields(line)).(error); bad {
			t.Fatalf("%s: %v", line, err)
		}
	}
}
