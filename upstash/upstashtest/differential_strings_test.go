package upstashtest

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// The keys of the drawn commands: "list" is a list and never a string.
var genKey = rapid.SampledFrom([]string{"a", "a", "a", "b", "none", "list"})

// genIndex draws byte and bit indexes, and what is none.
var genIndex = rapid.OneOf(
	rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(-40, 40).Draw(t, "index")) }),
	rapid.SampledFrom([]string{"0", "-1", "", "x", "9223372036854775807", "-9223372036854775808", "1e3", "+1"}),
)

// genSmall draws offsets that don't make long strings.
var genSmall = rapid.OneOf(
	rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(-2, 40).Draw(t, "at")) }),
	rapid.SampledFrom([]string{"x", "", "4294967296", "9223372036854775807"}),
)

var genUnit = rapid.SampledFrom([]string{"BIT", "byte", "BYTE", "x"})

var genTTL = rapid.OneOf(
	rapid.SampledFrom([]string{"1200000", "2400000", "3600000"}),
	rapid.SampledFrom([]string{"0", "-1", "x", "", "9223372036854775807", "9223372036854775", "-9223372036854775808", "10000000000"}),
)

var genData = rapid.Custom(func(t *rapid.T) string {
	return string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "data"))
})

// genFlags leaves GT and LT to TestExpireComparesTimes: here two times can be
// too close to tell which is first.
var genFlags = rapid.SampledFrom([][]string{
	{}, {"NX"}, {"XX"}, {"nx", "xx"}, {"gt", "LT"}, {"NX", "gt"}, {"x"}, {"XX", "x"},
})

// genCommand draws one command of those that filters rely on.
var genCommand = rapid.Custom(func(t *rapid.T) []string {
	key := genKey.Draw(t, "key")
	other := genKey.Draw(t, "other")
	some := func(n int, g *rapid.Generator[string]) []string {
		return rapid.SliceOfN(g, 0, n).Draw(t, "optional")
	}
	with := func(args []string, more ...string) []string { return append(args, more...) }
	switch rapid.IntRange(0, 24).Draw(t, "command") {
	case 0:
		return with([]string{"BITCOUNT", key})
	case 1:
		return with([]string{"BITCOUNT", key, genIndex.Draw(t, "i")}, some(1, genIndex)...)
	case 2:
		return []string{"BITCOUNT", key, genIndex.Draw(t, "i"), genIndex.Draw(t, "j"), genUnit.Draw(t, "unit")}
	case 3:
		return with([]string{"BITPOS", key, rapid.SampledFrom([]string{"0", "1", "2", "x"}).Draw(t, "bit")}, some(2, genIndex)...)
	case 4:
		return []string{"BITPOS", key, rapid.SampledFrom([]string{"0", "1"}).Draw(t, "bit"),
			genIndex.Draw(t, "i"), genIndex.Draw(t, "j"), genUnit.Draw(t, "unit")}
	case 5, 6:
		return with([]string{rapid.SampledFrom([]string{"EXPIRE", "PEXPIRE"}).Draw(t, "name"), key, genTTL.Draw(t, "ttl")},
			genFlags.Draw(t, "flags")...)
	case 7:
		return []string{"PERSIST", key}
	case 8:
		return []string{"RENAMENX", key, other}
	case 9:
		return []string{"RENAME", key, other}
	case 10, 11:
		return []string{"SETRANGE", key, genSmall.Draw(t, "at"), genData.Draw(t, "data")}
	case 12, 13:
		return []string{"GETRANGE", key, genIndex.Draw(t, "i"), genIndex.Draw(t, "j")}
	case 14:
		return []string{rapid.SampledFrom([]string{"DEL", "UNLINK", "EXISTS"}).Draw(t, "name"), key, other}
	case 15:
		return []string{"SETBIT", key, genSmall.Draw(t, "at"), rapid.SampledFrom([]string{"0", "1", "2", "-1", "x"}).Draw(t, "bit")}
	case 16:
		return []string{"GETBIT", key, genSmall.Draw(t, "at")}
	case 17:
		return []string{"APPEND", key, genData.Draw(t, "data")}
	case 18:
		return []string{rapid.SampledFrom([]string{"STRLEN", "GET", "TYPE"}).Draw(t, "name"), key}
	case 19:
		return with([]string{"SET", key, genData.Draw(t, "data")}, some(1, rapid.SampledFrom([]string{"NX", "XX", "KEEPTTL", "x"}))...)
	case 20:
		return with([]string{"SET", key, "v"}, rapid.SampledFrom([][]string{{"EX", "600"}, {"PX", "1200000", "NX"}, {"EX", "0"},
			{"EX", "x"}, {"XX", "EX", "6000"}, {"EX"}, {"NX", "XX"}, {"KEEPTTL", "EX", "500"}, {"GET"}}).Draw(t, "options")...)
	case 21:
		op := rapid.SampledFrom([]string{"AND", "or", "XOR", "NOT", "x"}).Draw(t, "op")
		return with([]string{"BITOP", op, genKey.Draw(t, "to"), key}, some(2, genKey)...)
	case 22:
		return with([]string{"COPY", key, other}, some(1, rapid.SampledFrom([]string{"REPLACE", "replace", "x"}))...)
	case 23:
		return []string{rapid.SampledFrom([]string{"INCRBY", "DECRBY"}).Draw(t, "name"), key, rapid.SampledFrom([]string{"1", "-3", "x", "9223372036854775807", "-9223372036854775808"}).Draw(t, "by")}
	}
	if rapid.Bool().Draw(t, "count") {
		return []string{rapid.SampledFrom([]string{"INCR", "DECR"}).Draw(t, "name"), key}
	}
	return []string{"SET", key, rapid.SampledFrom([]string{"7", "-1", "text", "9223372036854775807"}).Draw(t, "number")}
})

// sameState compares what both hold: type, bytes, and whether it expires.
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

// expires gives PTTL in whole minutes, rounded: near enough to tell any two
// drawn times apart, and blind to how fast the test runs.
func (p pair) expires(db backend, key string) int64 {
	ms, _ := db.do([]string{"PTTL", key}).(int64)
	if ms < 0 {
		return ms
	}
	return min((ms+30_000)/60_000, 100_000_000) // ours ends after 292 years
}

// TestStringsDifferential holds the other commands that filters use against
// Redis.
func TestStringsDifferential(t *testing.T) {
	t.Parallel()
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

// TestExpireComparesTimes holds GT and LT against Redis.
func TestExpireComparesTimes(t *testing.T) {
	p := newPair(t)
	p.same(t, "SET", "a", "v")
	for _, c := range [][]string{
		{"1000", "GT"}, {"1000", "XX", "LT"}, {"1000", "LT"}, {"2000", "LT"}, {"2000", "GT"}, {"1500", "GT"},
		{"1500", "XX", "LT"}, {"3000", "XX", "GT"}, {"-1", "GT"}, {"-1", "LT"},
	} {
		p.same(t, append([]string{"EXPIRE", "a"}, c...)...)
		p.sameState(t)
	}
}

// TestMultiDifferential holds transactions against Redis.
func TestMultiDifferential(t *testing.T) {
	t.Parallel()
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
