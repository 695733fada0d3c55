package database

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// testLimits are far above what the tests need.
var testLimits = Limits{MaxRecord: 100 << 20, Timeout: testenv.Patience}

// pair is the database in memory and a real Redis. newPair returns both empty.
type pair struct {
	mem *Memory
	red *Redis
}

func newPair(tb testing.TB) pair {
	tb.Helper()
	red, err := DialRedis(testenv.Redis(tb), testLimits)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = red.Close() })
	return pair{openTestMemory(tb), red}
}

func openTestMemory(tb testing.TB) *Memory {
	tb.Helper()
	mem, err := OpenMemory(testLimits)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = mem.Close() })
	return mem
}

func (p pair) flush(tb rapid.TB) {
	if err := p.mem.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := p.red.Flush(); err != nil {
		tb.Fatal(err)
	}
}

// checkMany checks a property on a thousand random sequences, or on a fifth of
// them with -short. Its tests do not run in parallel: they share generators, whose
// names package rapid writes at their first use without a lock for readers.
func checkMany(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rounds := 10 // of -rapid.checks, 100 by default
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		rapid.Check(t, property)
	}
}

// same runs a command on both and compares the replies.
func (p pair) same(tb rapid.TB, args ...string) {
	tb.Helper()
	if f := p.mem.Table().Vet(args, false); f != "" {
		tb.Fatalf("%q is not in the command table: %s", args, f)
	}
	ours, redis := show(p.mem.Do(args)), show(p.red.Do(args))
	if ours != redis {
		tb.Fatalf("%q:\n ours  %s\n redis %s", args, ours, redis)
	}
}

// multi runs a transaction on both and compares the replies.
func (p pair) multi(tb rapid.TB, cmds ...[]string) {
	tb.Helper()
	ours, redis := show(multi(p.mem, cmds)), show(multi(p.red, cmds))
	if ours != redis {
		tb.Fatalf("MULTI %q:\n ours  %s\n redis %s", cmds, ours, redis)
	}
}

// multi runs a transaction, in memory as the server does.
func multi(db DB, cmds [][]string) Reply {
	if r, is := db.(*Redis); is {
		return r.Multi(cmds)
	}
	defer db.(*Memory).Freeze()()
	out := make(Array, len(cmds))
	for i, c := range cmds {
		out[i] = db.Do(c)
	}
	return out
}

func show(r Reply) string {
	switch r := r.(type) {
	case nil:
		return "null"
	case int64:
		return strconv.FormatInt(r, 10)
	case Array:
		parts := make([]string, len(r))
		for i := range r {
			parts[i] = show(r[i])
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprintf("%T %q", r, r)
}

// number draws a decimal number after a prefix.
func number(prefix string, from, to int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return prefix + strconv.Itoa(rapid.IntRange(from, to).Draw(t, "number"))
	})
}

// Each part of a BITFIELD has a generator of good texts, and one of odd ones.
var (
	goodType = rapid.OneOf(number("u", 1, 63), number("i", 1, 64), rapid.SampledFrom([]string{"i64", "u63"}))
	oddType  = rapid.SampledFrom([]string{
		"u0", "u64", "i65", "i0", "u", "", "x8", "u08", "u-1", "8", "U8", "u8\x00z",
	})
	goodOffset = rapid.OneOf(number("", 0, 20), number("", 0, 300), number("#", 0, 40))
	oddOffset  = rapid.SampledFrom([]string{
		"-1", "#-1", "", "#", "x", "4294967296", "9223372036854775807", "#9223372036854775807",
		"1.0", "+1", "01", " 1",
	})
	goodValue = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			value := rapid.Int64().Draw(t, "value") >> rapid.IntRange(0, 60).Draw(t, "shift")
			return strconv.FormatInt(value, 10)
		}),
		rapid.SampledFrom([]string{"9223372036854775807", "-9223372036854775808"}),
	)
	oddValue  = rapid.SampledFrom([]string{"", "x", "9223372036854775808", "-9223372036854775808", "1.5", "-0"})
	goodVerb  = rapid.SampledFrom([]string{"GET", "set", "SET", "INCRBY"})
	oddVerb   = rapid.SampledFrom([]string{"NOPE", "\u017fet", "1", "OVERFLOW"})
	goodLimit = rapid.SampledFrom([]string{"WRAP", "sat", "SAT", "FAIL", "Fail"})
	oddLimit  = rapid.SampledFrom([]string{"x", ""})
)

// genField draws the arguments of a BITFIELD. Half of them are well formed: then
// long commands run to their end.
func genField(t *rapid.T) (args []string) {
	malformed := rapid.Bool().Draw(t, "malformed")
	odd := func() bool { return malformed && rapid.IntRange(0, 9).Draw(t, "odd") == 0 }
	part := func(good, bad *rapid.Generator[string]) {
		if odd() {
			good = bad
		}
		args = append(args, good.Draw(t, "part"))
	}
	for range rapid.IntRange(0, 12).Draw(t, "operations") {
		if rapid.Bool().Draw(t, "limited") {
			args = append(args, "OVERFLOW")
			part(goodLimit, oddLimit)
		}
		part(goodVerb, oddVerb)
		last := len(args) - 1
		part(goodType, oddType)
		part(goodOffset, oddOffset)
		if (args[last] == "GET") == odd() {
			part(goodValue, oddValue)
		}
	}
	return args
}

// TestBitfieldDifferential compares BITFIELD with Redis: the replies, including
// error texts, and the bytes of the key afterwards.
func TestBitfieldDifferential(t *testing.T) {
	p := newPair(t)
	checkMany(t, func(t *rapid.T) {
		p.flush(t)
		p.same(t, "RPUSH", "list", "x")
		for range rapid.IntRange(1, 25).Draw(t, "commands") {
			name := pick(t, "BITFIELD", "BITFIELD", "BITFIELD", "BITFIELD_RO")
			key := pick(t, "a", "a", "a", "b", "list")
			p.same(t, append([]string{name, key}, genField(t)...)...)
			if key != "list" {
				p.same(t, "GET", key)
			}
		}
	})
}

// The keys of the drawn commands. "list" is always a list.
var genKey = rapid.SampledFrom([]string{"a", "a", "a", "b", "none", "list"})

// genIndex draws byte and bit indexes, some of them malformed.
var genIndex = rapid.OneOf(
	number("", -40, 40), number("", 0, 20),
	rapid.SampledFrom([]string{
		"0", "-1", "", "x", "9223372036854775807", "-9223372036854775808", "1e3", "+1",
	}),
)

// genSmall draws offsets small enough for short strings.
var genSmall = rapid.OneOf(
	rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(-2, 40).Draw(t, "at")) }),
	rapid.SampledFrom([]string{"x", "", "#1", "4294967296", "9223372036854775807"}),
)

// genUnit draws the unit of two indexes, which nothing may follow.
var genUnit = rapid.SampledFrom([][]string{{"BIT"}, {"bit"}, {"byte"}, {"BYTE"}, {"x"}, {"BIT", "x"}})

// genTTL draws times too long to pass during a test, and bad ones.
var genTTL = rapid.OneOf(
	rapid.SampledFrom([]string{"1200000", "2400000", "3600000"}),
	rapid.SampledFrom([]string{
		"0", "-1", "x", "", "9223372036854775807", "9223372036854775", "-9223372036854775808", "10000000000",
	}),
)

// genData draws bytes, many of which have no bit or all of them.
var genData = rapid.Custom(func(t *rapid.T) string {
	bytes := rapid.OneOf(rapid.SampledFrom([]byte{0, 0xff}), rapid.Byte())
	return string(rapid.SliceOfN(bytes, 0, 12).Draw(t, "data"))
})

// genFlags draws no GT or LT that could succeed: two times here can be too
// close to compare. TestExpireComparesTimes tests those.
var genFlags = rapid.SampledFrom([][]string{
	{}, {"NX"}, {"XX"}, {"nx", "xx"}, {"gt", "LT"}, {"NX", "gt"}, {"lt", "NX"}, {"x"}, {"XX", "x"},
})

// genSetOptions draws what may follow SET key value.
var genSetOptions = rapid.SampledFrom([][]string{
	{},
	{"NX"},
	{"XX"},
	{"KEEPTTL"},
	{"x"},
	{"GET"},
	{"NX", "XX"},
	{"XX", "NX"},
	{"x", "600"},
	{"EX"},
	{"EX", "600"},
	{"PX", "1200000", "NX"},
	{"EX", "0"},
	{"EX", "x"},
	{"XX", "EX", "6000"},
	{"KEEPTTL", "EX", "500"},
	{"EX", "500", "KEEPTTL"},
	{"EX", "600", "PX", "9"},
	{"ex", "600", "EX", "1200"},
	{"GET", "NX"},
	{"EXAT", "-1"},
})

// pick draws one of words.
func pick(t *rapid.T, words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }

// some draws up to n arguments.
func some(t *rapid.T, n int, g *rapid.Generator[string]) []string {
	return rapid.SliceOfN(g, 0, n).Draw(t, "arguments")
}

// genCommand draws one of the commands of filters.
var genCommand = rapid.Custom(func(t *rapid.T) []string {
	draw := func(g *rapid.Generator[string]) string { return g.Draw(t, "argument") }
	with := func(more []string, args ...string) []string { return append(args, more...) }
	key, other := draw(genKey), draw(genKey)
	commands := []func() []string{
		func() []string { return []string{"BITCOUNT", key} },
		func() []string { return with(some(t, 1, genIndex), "BITCOUNT", key, draw(genIndex)) },
		func() []string {
			return with(genUnit.Draw(t, "unit"), "BITCOUNT", key, draw(genIndex), draw(genIndex))
		},
		func() []string { return with(some(t, 2, genIndex), "BITPOS", key, pick(t, "0", "1", "2", "x")) },
		func() []string {
			return with(genUnit.Draw(t, "unit"), "BITPOS", key, pick(t, "0", "1"), draw(genIndex), draw(genIndex))
		},
		func() []string {
			return with(genFlags.Draw(t, "flags"), pick(t, "EXPIRE", "PEXPIRE"), key, draw(genTTL))
		},
		func() []string { return []string{pick(t, "PERSIST", "STRLEN", "GET", "TYPE", "INCR", "DECR"), key} },
		func() []string { return []string{pick(t, "RENAME", "RENAMENX"), key, other} },
		func() []string { return []string{"SETRANGE", key, draw(genSmall), draw(genData)} },
		func() []string { return []string{"GETRANGE", key, draw(genIndex), draw(genIndex)} },
		func() []string { return []string{pick(t, "DEL", "UNLINK", "EXISTS", "MGET"), key, other} },
		func() []string { return []string{"SETBIT", key, draw(genSmall), pick(t, "0", "1", "2", "-1", "x")} },
		func() []string { return []string{"GETBIT", key, draw(genSmall)} },
		func() []string { return []string{"APPEND", key, draw(genData)} },
		func() []string { return with(genSetOptions.Draw(t, "options"), "SET", key, draw(genData)) },
		func() []string {
			op := pick(t, "AND", "or", "XOR", "NOT", "x")
			return with(some(t, 2, genKey), "BITOP", op, draw(genKey), key)
		},
		func() []string {
			option := rapid.SampledFrom([]string{"REPLACE", "replace", "DB", "0", "x"})
			return with(some(t, 3, option), "COPY", key, other)
		},
		func() []string {
			by := pick(t, "1", "-3", "x", "9223372036854775807", "-9223372036854775808")
			return []string{pick(t, "INCRBY", "DECRBY"), key, by}
		},
		func() []string { return []string{"SET", key, pick(t, "7", "-1", "text", "9223372036854775807")} },
	}
	return rapid.SampledFrom(commands).Draw(t, "command")()
})

// sameState compares the keys of both: types, bytes and times to live.
func (p pair) sameState(tb rapid.TB) {
	tb.Helper()
	for _, key := range []string{"a", "b", "none", "list"} {
		p.same(tb, "TYPE", key)
		p.same(tb, "GET", key)
		ours, redis := p.expires(p.mem, key), p.expires(p.red, key)
		if ours != redis {
			tb.Fatalf("PTTL %s: ours %d, redis %d", key, ours, redis)
		}
	}
}

// expires returns the time to live, rounded to minutes. Any two drawn times
// differ in minutes, and the speed of the test does not matter.
func (p pair) expires(db DB, key string) int64 {
	ms, _ := db.Do([]string{"PTTL", key}).(int64)
	if ms < 0 {
		return ms
	}
	return min((ms+30_000)/60_000, 100_000_000) // ours ends after 292 years
}

// TestStringsDifferential compares the other commands of filters with Redis.
func TestStringsDifferential(t *testing.T) {
	p := newPair(t)
	checkMany(t, func(t *rapid.T) {
		p.flush(t)
		p.same(t, "RPUSH", "list", "x", "y")
		for range rapid.IntRange(1, 30).Draw(t, "commands") {
			p.same(t, genCommand.Draw(t, "command")...)
		}
		p.sameState(t)
	})
}

// TestExpireComparesTimes compares GT and LT with Redis.
func TestExpireComparesTimes(t *testing.T) {
	p := newPair(t)
	p.same(t, "SET", "a", "v")
	for _, c := range [][]string{
		{"1000", "GT"},
		{"1000", "XX", "LT"},
		{"1000", "LT"},
		{"2000", "LT"},
		{"2000", "GT"},
		{"1500", "GT"},
		{"1500", "XX", "LT"},
		{"3000", "XX", "GT"},
		{"-1", "GT"},
		{"-1", "LT"},
	} {
		p.same(t, append([]string{"EXPIRE", "a"}, c...)...)
		p.sameState(t)
	}
}

// TestMultiDifferential compares transactions with Redis.
func TestMultiDifferential(t *testing.T) {
	p := newPair(t)
	checkMany(t, func(t *rapid.T) {
		p.flush(t)
		p.same(t, "RPUSH", "list", "x", "y")
		for range rapid.IntRange(1, 5).Draw(t, "transactions") {
			p.multi(t, rapid.SliceOfN(genCommand, 1, 6).Draw(t, "commands")...)
		}
		p.sameState(t)
	})
}
