package upstashtest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/internal/testenv"
)

// pair is the default backend beside a real Redis, both empty.
type pair struct {
	mem *memory
	red *remote
}

func newPair(tb testing.TB) pair {
	tb.Helper()
	red, err := dialRedis(testenv.Redis(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = red.close() })
	mem, err := newMemory()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = mem.close() })
	return pair{mem, red}
}

func (p pair) flush(tb rapid.TB) {
	if err := p.mem.flush(); err != nil {
		tb.Fatal(err)
	}
	if err := p.red.flush(); err != nil {
		tb.Fatal(err)
	}
}

// checkMany checks a property on thousands of random sequences, on a fifth
// of them with -short.
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
	if f := vet(args, false); f != "" {
		tb.Fatalf("%q is not in the command table: %s", args, f)
	}
	ours, redis := show(p.mem.do(args)), show(p.red.do(args))
	if ours != redis {
		tb.Fatalf("%q:\n ours  %s\n redis %s", args, ours, redis)
	}
}

// multi runs a transaction on both and compares the replies.
func (p pair) multi(tb rapid.TB, cmds ...[]string) {
	tb.Helper()
	ours, redis := show(p.mem.multi(cmds)), show(p.red.multi(cmds))
	if ours != redis {
		tb.Fatalf("MULTI %q:\n ours  %s\n redis %s", cmds, ours, redis)
	}
}

func show(r reply) string {
	switch r := r.(type) {
	case nil:
		return "null"
	case int64:
		return strconv.FormatInt(r, 10)
	case array:
		parts := make([]string, len(r))
		for i := range r {
			parts[i] = show(r[i])
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprintf("%T %q", r, r)
}

var (
	genFieldType = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("u%d", rapid.IntRange(1, 63).Draw(t, "bits")) }),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("i%d", rapid.IntRange(1, 64).Draw(t, "bits")) }),
		rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"u0", "u64", "i65", "i0", "u", "", "x8", "u08", "u-1", "8", "U8", "u8\x00z"}).
				Draw(t, "bad type")
		}),
	)
	genOffset = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(0, 300).Draw(t, "offset")) }),
		rapid.Custom(func(t *rapid.T) string { return "#" + strconv.Itoa(rapid.IntRange(0, 40).Draw(t, "field")) }),
		rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"-1", "#-1", "", "#", "x", "4294967296", "9223372036854775807",
				"#9223372036854775807", "1.0", "+1", "01", " 1"}).Draw(t, "bad offset")
		}),
	)
	genValue = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return strconv.FormatInt(rapid.Int64().Draw(t, "value"), 10) }),
		rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(-3, 300).Draw(t, "small")) }),
		rapid.SampledFrom([]string{"", "1", "x", "9223372036854775808", "-9223372036854775808", "1.5", "-0"}),
	)
)

// genField draws the arguments of a BITFIELD: mostly well formed.
func genField(t *rapid.T) []string {
	var args []string
	for range rapid.IntRange(0, 6).Draw(t, "operations") {
		switch rapid.IntRange(0, 9).Draw(t, "verb") {
		case 0, 1:
			args = append(args, "GET", genFieldType.Draw(t, "type"), genOffset.Draw(t, "offset"))
		case 2, 3, 4:
			args = append(args, "set", genFieldType.Draw(t, "type"), genOffset.Draw(t, "offset"), genValue.Draw(t, "v"))
		case 5, 6, 7:
			args = append(args, "INCRBY", genFieldType.Draw(t, "type"), genOffset.Draw(t, "offset"), genValue.Draw(t, "v"))
		case 8:
			args = append(args, "OVERFLOW", rapid.SampledFrom([]string{"WRAP", "sat", "FAIL", "Fail", "x", ""}).Draw(t, "mode"))
		default:
			args = append(args, rapid.SampledFrom([]string{"GET", "NOPE", "SET", "1"}).Draw(t, "stray"))
		}
	}
	return args
}

// TestBitfieldDifferential holds BITFIELD against Redis: same replies, error
// texts included, and same bytes of the key afterwards.
func TestBitfieldDifferential(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	checkMany(t, func(t *rapid.T) {
		p.flush(t)
		p.same(t, "RPUSH", "list", "x")
		for range rapid.IntRange(1, 25).Draw(t, "commands") {
			name := rapid.SampledFrom([]string{"BITFIELD", "BITFIELD", "BITFIELD", "BITFIELD_RO"}).Draw(t, "name")
			key := rapid.SampledFrom([]string{"a", "a", "a", "b", "list"}).Draw(t, "key")
			p.same(t, append([]string{name, key}, genField(t)...)...)
			if key != "list" {
				p.same(t, "GET", key)
			}
		}
	})
}

// TestBitfieldValidDifferential is the same without malformed arguments, so
// that long programs run to their end.
func TestBitfieldValidDifferential(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	checkMany(t, func(t *rapid.T) {
		p.flush(t)
		for range rapid.IntRange(1, 10).Draw(t, "commands") {
			args := []string{"BITFIELD", "a"}
			for range rapid.IntRange(1, 12).Draw(t, "operations") {
				args = append(args, "OVERFLOW", rapid.SampledFrom([]string{"WRAP", "SAT", "FAIL"}).Draw(t, "mode"))
				signed := rapid.Bool().Draw(t, "signed")
				typ := "u" + strconv.Itoa(rapid.IntRange(1, 63).Draw(t, "bits"))
				if signed {
					typ = "i" + strconv.Itoa(rapid.IntRange(1, 64).Draw(t, "bits"))
				}
				offset := rapid.SampledFrom([]string{"", "#"}).Draw(t, "mark") +
					strconv.Itoa(rapid.IntRange(0, 20).Draw(t, "offset"))
				value := strconv.FormatInt(rapid.Int64().Draw(t, "value")>>rapid.IntRange(0, 60).Draw(t, "shift"), 10)
				switch rapid.IntRange(0, 2).Draw(t, "verb") {
				case 0:
					args = append(args, "GET", typ, offset)
				case 1:
					args = append(args, "SET", typ, offset, value)
				default:
					args = append(args, "INCRBY", typ, offset, value)
				}
			}
			p.same(t, args...)
			p.same(t, "GET", "a")
		}
	})
}
