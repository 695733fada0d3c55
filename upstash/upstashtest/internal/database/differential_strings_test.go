package database

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// The keys of the drawn commands. "list" is always a list.
var genKey = rapid.SampledFrom([]string{"a", "a", "a", "b", "none", "list"})

// genIndex draws byte and bit indexes, some of them malformed.
var genIndex = rapid.OneOf(
	rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(-40, 40).Draw(t, "index")) }),
	rapid.SampledFrom([]string{
		"0", "-1", "", "x", "9223372036854775807", "-9223372036854775808", "1e3", "+1",
	}),
)

// genSmall draws offsets small enough for short strings.
var genSmall = rapid.OneOf(
	rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(-2, 40).Draw(t, "at")) }),
	rapid.SampledFrom([]string{"x", "", "4294967296", "9223372036854775807"}),
)

var genUnit = rapid.SampledFrom([]string{"BIT", "byte", "BYTE", "x"})

// genTTL draws times too long to pass during a test, and bad ones.
var genTTL = rapid.OneOf(
	rapid.SampledFrom([]string{"1200000", "2400000", "3600000"}),
	rapid.SampledFrom([]string{
		"0", "-1", "x", "", "9223372036854775807", "9223372036854775", "-9223372036854775808", "10000000000",
	}),
)

var genData = rapid.Custom(func(t *rapid.T) string {
	return string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "data"))
})

// genFlags draws no GT or LT that could succeed: two times here can be too
// close to compare. TestExpireComparesTimes tests those.
var genFlags = rapid.SampledFrom([][]string{
	{}, {"NX"}, {"XX"}, {"nx", "xx"}, {"gt", "LT"}, {"NX", "gt"}, {"x"}, {"XX", "x"},
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
	{"EX"},
	{"EX", "600"},
	{"PX", "1200000", "NX"},
	{"EX", "0"},
	{"EX", "x"},
	{"XX", "EX", "6000"},
	{"KEEPTTL", "EX", "500"},
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
		func() []string { return []string{"BITCOUNT", key, draw(genIndex), draw(genIndex), draw(genUnit)} },
		func() []string { return with(some(t, 2, genIndex), "BITPOS", key, pick(t, "0", "1", "2", "x")) },
		func() []string {
			return []string{"BITPOS", key, pick(t, "0", "1"), draw(genIndex), draw(genIndex), draw(genUnit)}
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
			option := rapid.SampledFrom([]string{"REPLACE", "replace", "x"})
			return with(some(t, 1, option), "COPY", key, other)
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
