package database

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/human"
)

// series returns a command with n further words: m0, m1 and so on, each behind its
// number if with is set.
func series(n int, with bool, words ...string) []string {
	for i := range n {
		if with {
			words = append(words, strconv.Itoa(i))
		}
		words = append(words, "m"+strconv.Itoa(i))
	}
	return words
}

// TestWorkGrowsInLine pushes to a list at its left, which takes the engine a time
// that grows with the square of the values. What it allocates shows it.
func TestWorkGrowsInLine(t *testing.T) {
	d := openTestMemory(t)
	const n = 4000
	for _, name := range []string{"LPUSH", "LPUSHX"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := d.Do(series(n, false, name, "l"))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 20<<20 {
			t.Errorf("%s of %d: %d bytes allocated, want at most 20 MiB", name, n, took)
		}
		if _, failed := r.(Failure); failed {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// TestPushLikeRedis pushes to lists of both databases.
func TestPushLikeRedis(t *testing.T) {
	p := newPair(t)
	for _, line := range []string{
		"LPUSH l a b c", "EXPIRE l 900000", "LPUSH l d e", "LPUSHX l f g", "LRANGE l 0 -1",
		"LPUSHX none a", "EXISTS none", "SET text a", "LPUSH text a", "LPUSHX text a",
	} {
		p.same(t, strings.Fields(line)...)
	}
	if ours, redis := minutes(p.mem.Do([]string{"TTL", "l"})), minutes(p.red.Do([]string{"TTL", "l"})); ours != redis {
		t.Errorf("the list lives for %v minutes, want %v", ours, redis)
	}
}

// TestTooSlowIsRefused lowers the limits, at which each command runs, and above
// which it does not. doc.go has their real values.
func TestTooSlowIsRefused(t *testing.T) {
	doc, err := os.ReadFile("../../doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{mostDrawn, mostPlaces, mostWalked, mostJoined, mostSteps, mostCombined} {
		if !strings.Contains(string(doc), human.Count(uint64(limit))) {
			t.Errorf("doc.go does not name %d", limit)
		}
	}
	defer func(a, b, c, d int64) { mostWalked, mostJoined, mostSteps, mostCombined = a, b, c, d }(
		mostWalked, mostJoined, mostSteps, mostCombined)
	mostWalked, mostJoined, mostSteps, mostCombined = 10, 20, 100, 8
	d := openTestMemory(t)
	fill := func(n int) {
		if err := d.Flush(); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			series(n, true, "ZADD", "z"), series(n, false, "SADD", "s"), series(n, false, "RPUSH", "l"),
			{"SET", "text", strings.Repeat("x", n-6)},
		} {
			d.Do(args)
		}
		for i := range n {
			d.Do([]string{"HSET", "h", "m" + strconv.Itoa(i), "v"})
			d.Do([]string{"XADD", "x", strconv.Itoa(i + 1), "f", "v"})
			d.Do([]string{"GEOADD", "g", strconv.Itoa(i), "1", "m" + strconv.Itoa(i)})
		}
	}
	commands := []string{
		"ZRANGE z 0 -1", "ZREVRANGE z 0 -1", "ZRANGEBYSCORE z 0 9", "ZREVRANGEBYSCORE z 9 0", "ZRANGEBYLEX z - +",
		"ZREVRANGEBYLEX z + -", "ZRANK z m1", "ZREVRANK z m1", "ZCOUNT z 0 9", "ZLEXCOUNT z - +", "ZRANDMEMBER z",
		"ZSCAN z 0", "GEORADIUS g 1 1 1 km", "GEORADIUSBYMEMBER g m1 1 km", "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 km",
		"SMEMBERS s", "SRANDMEMBER s", "SSCAN s 0", "HGETALL h", "HKEYS h", "HVALS h", "HSCAN h 0", "HRANDFIELD h",
		"SUNION s s", "SINTER s s", "SDIFF s s", "SUNIONSTORE o s s", "SINTERSTORE o s s", "SDIFFSTORE o s s",
		"SINTERCARD 2 s s", "ZUNION 2 z z", "ZINTER 2 z z", "ZUNIONSTORE o 2 z z", "ZINTERSTORE o 2 z z",
		"XDEL x 91 92 93 94 95 96 97 98", "XACK x g 91 92 93 94 95 96 97", "BITOP AND o text text",
		"HSCAN h 0 MATCH *a*b*", "SCAN 0 MATCH *a*b*", "KEYS *a*b*",
		"SPOP s", "ZPOPMIN z", "ZPOPMAX z", "ZREMRANGEBYRANK z 0 0", "ZREMRANGEBYLEX z [b [c", "ZREMRANGEBYSCORE z 0 0",
	}
	for n, want := range map[int]bool{10: false, 11: true} {
		for _, line := range commands {
			fill(n)
			args := strings.Fields(line)
			if strings.Contains(line, "SCAN 0 MATCH") || args[0] == "KEYS" {
				for i := 0; d.size() < int64(n); i++ {
					d.Do([]string{"SET", fmt.Sprint("key", i), "v"})
				}
				if n == 11 { // 16 steps a key, and not 9
					args[len(args)-1] += "c*"
				}
			}
			r := d.Do(args)
			if f, failed := r.(Failure); failed && f != errSlow || (f == errSlow) != want {
				t.Errorf("%s of %d elements: %v, want it refused: %v", line, n, show(r), want)
			}
		}
	}
	const drawn = 3 * 10 * sortSteps
	for line, steps := range map[string]int64{
		"SPOP s 7": 7 * 10, "SPOP s 99": 10 * 10, "ZRANDMEMBER z -3": drawn, "ZRANDMEMBER z -3 WITHSCORES": drawn,
	} {
		for _, mostSteps = range []int64{steps - 1, steps} {
			fill(10)
			if r := d.Do(strings.Fields(line)); (r == errSlow) != (mostSteps < steps) {
				t.Errorf("%s with %d steps of %d: %v", line, steps, mostSteps, show(r))
			}
		}
	}
}

// TestRefusedAsThePageSays has the other points of doc.go on keys and arguments,
// and malformed commands: over many the engine would panic, or never end.
func TestRefusedAsThePageSays(t *testing.T) {
	d := openTestMemory(t)
	const elements = 30
	d.Do(series(elements, true, "MSET"))
	for _, tt := range []struct {
		line string
		want any // a reply, or a number of elements
	}{
		{"SCAN 0 COUNT 1", Array{Bulk("0"), make(Array, elements)}},
		{"RPUSH l a b a", int64(3)},
		{"DUMP l", ErrWrongType},

		{"KEYS [z-a]", errGlob},
		{"KEYS [^", errGlob},
		{`KEYS \\E`, errGlob},
		{`KEYS \`, 0},
		{"KEYS [a](", 0},
		{"KEYS \xff*", errGlob},
		{"SCAN 0 MATCH [z-a]", errGlob},
		{"SCAN 0 MATCH \xff", errGlob},
		{"HSET h f v", int64(1)},
		{"HSCAN h 0 MATCH f\xc3", errGlob},
		{"SSCAN s 0 match [\xff]", errGlob},
		{"ZSCAN z 0 COUNT 9 MATCH \\\xff", errGlob},

		{"HSCAN h -1", errCursor},
		{"HSCAN h x", errCursor},
		{"SSCAN a -1", errCursor},
		{"ZSCAN z -1", errCursor},
		{"HSCAN h 1073741824", errCursor},
		{"HSCAN h 0 COUNT 1073741824", errRange},

		{"ZADD z 1 a", int64(1)},
		{"ZRANDMEMBER z -262144", 262144},
		{"ZRANDMEMBER z -262145", errRange},
		{"SRANDMEMBER s -262145", errRange},
		{"HRANDFIELD h -262145", errRange},
		{"HRANDFIELD h -9223372036854775808", errRange},
		{"LPOS l a COUNT 1048576", 2},
		{"LPOS l a MAXLEN 1 count 1048577", errRange},
		{"LPOS l b MAXLEN 1048577", int64(1)},

		{"INCRBYFLOAT n 1e1000000000", errNotFloat},
		{"INCRBYFLOAT n -inf", errNotFloat},
		{"INCRBYFLOAT n nan", errNotFloat},
		{"INCRBYFLOAT n x", errNotFloat},
		{"HINCRBYFLOAT h n nan", errNotFloat},
		{"HINCRBYFLOAT h n x", errNotFloat},
		{"SET big 1e1000000000", Status("OK")},
		{"INCRBYFLOAT big 1", errNotFloat},
		{"HINCRBYFLOAT h n 1e309", errNotFloat},

		{"SADD s x", int64(1)},
		{"SINTERSTORE d s none", int64(0)},
		{"EXISTS d", int64(0)},
		{"SDIFFSTORE d s s", int64(0)},
		{"SRANDMEMBER d", nil},

		{"XADD x 1-1 f v", Bulk("1-1")},
		{"XTRIM x MAXLEN -1", errMaxLen},
		{"XTRIM x MAXLEN = -1", errMaxLen},
		{"XTRIM x MAXLEN ~ -1", errMaxLen},
		{"XTRIM x MAXLEN x", errNotInt},
		{"XTRIM x MAXLEN 2", int64(0)},
		{"XTRIM x MINID -1", int64(0)},
		{"XADD x NOMKSTREAM 2-1 f v", Bulk("2-1")},
		{"XTRIM x MINID =", errSyntax},
		{"XADD x NOMKSTREAM MAXLEN =", errSyntax},
		{"XADD x nomkstream minid ~", errSyntax},
		{"XCLAIM x g c 0 1-1 IDLE", errSyntax},
		{"HEXPIRE h 9 FIELDS " + strconv.Itoa(math.MaxInt) + " f", errSyntax},
		{"HEXPIRE h 9 FIELDS 1 f FIELDS", errSyntax},
		{"HEXPIRE h 9 NX GT FIELDS", errSyntax},
		{"HGET h f", Bulk("v")},
	} {
		r := d.Do(strings.Fields(tt.line))
		list, is := r.(Array)
		if n, counted := tt.want.(int); counted && is && len(list) == n {
			continue
		}
		if is && tt.line == "SCAN 0 COUNT 1" { // the keys have no order
			clear(list[1].(Array))
		}
		if !reflect.DeepEqual(r, tt.want) {
			t.Errorf("%q: %.80s, want %v", tt.line, show(r), tt.want)
		}
	}
}
