package upstash

import (
	"encoding/json" // another reader of what the client writes
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBitFieldEncoding(t *testing.T) {
	for _, tt := range []struct {
		b    *BitField
		want string
	}{
		{NewBitField("k"), `["BITFIELD","k"]`},
		{NewBitField(`a"b`).Get("u1", 7), `["BITFIELD","a\"b","GET","u1","7"]`},
		{NewBitField("k").Get("i64", maxBitOffset), `["BITFIELD","k","GET","i64","4294967295"]`},
		{NewBitField("k").Set("u1", 9, 1), `["BITFIELD","k","SET","u1","9",1]`},
		{NewBitField("k").Set("u1", 9, 0), `["BITFIELD","k","SET","u1","9","0"]`},
		{NewBitField("k").Set("i8", 0, -1), `["BITFIELD","k","SET","i8","0","-1"]`},
		{
			NewBitField("k").Set("i64", 0, math.MinInt64).Set("i64", 64, math.MaxInt64),
			`["BITFIELD","k","SET","i64","0","-9223372036854775808","SET","i64","64","9223372036854775807"]`,
		},
		{NewBitField("k").IncrBy("u8", 3, 1), `["BITFIELD","k","INCRBY","u8","3","1"]`},
		{
			NewBitField("k").Overflow(Fail).Overflow(Sat).Overflow(Wrap),
			`["BITFIELD","k","OVERFLOW","FAIL","OVERFLOW","SAT","OVERFLOW","WRAP"]`,
		},
		{
			NewBitField("k").GetWords("u1", 128, []uint64{0, 5}),
			`["BITFIELD","k","GET","u1","128","GET","u1","133"]`,
		},
		{
			NewBitField("k").SetBits(128, []uint64{0, 5}),
			`["BITFIELD","k","SET","u1","128",1,"SET","u1","133",1]`,
		},
		{
			NewBitField("k").GetWords("u53", 128, []uint64{0, 106}),
			`["BITFIELD","k","GET","u53","128","GET","u53","234"]`,
		},
		{NewBitField("k").Get("u1", 0).ReadOnly(), `["BITFIELD_RO","k","GET","u1","0"]`},
		{NewBitField("k").ReadOnly().ReadOnly().Get("u1", 0), `["BITFIELD_RO","k","GET","u1","0"]`},
		{NewBitField("old").ReadOnly().Get("u1", 0).Reset("new").Get("u2", 1), `["BITFIELD","new","GET","u2","1"]`},
	} {
		cmd := tt.b.Command()
		if string(cmd.body()) != tt.want || cmd.err != nil {
			t.Errorf("got %s, %v\nwant %s", cmd.body(), cmd.err, tt.want)
		}
		if !json.Valid(cmd.body()) {
			t.Errorf("not JSON: %s", cmd.body())
		}
	}
}

func TestBitFieldCountsAndSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBitField(rapid.String().Draw(t, "key"))
		want := 0
		for range rapid.IntRange(0, 9).Draw(t, "ops") {
			positions := rapid.SliceOfN(rapid.Uint64Range(0, 1000), 0, 4).Draw(t, "positions")
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				b.Get("u63", 5)
				want++
			case 1:
				b.SetBits(7, positions)
				want += len(positions)
			case 2:
				b.GetWords("u1", 7, positions)
				want += len(positions)
			case 3:
				b.Overflow(Sat)
			case 4:
				b.IncrBy("i64", 64, rapid.Int64().Draw(t, "incr"))
				want++
			}
		}
		cmd := b.Command()
		if b.Len() != want || (cmd.err == nil && b.Size() != cmd.Size()) {
			t.Fatalf("Len %d, want %d; Size %d, want %d", b.Len(), want, b.Size(), cmd.Size())
		}
		var words []any
		if cmd.err == nil && json.Unmarshal(cmd.body(), &words) != nil {
			t.Fatalf("not JSON: %s", cmd.body())
		}
		// Later operations leave the first part unchanged.
		before := slices.Clone(cmd.body())
		next := b.Get("u1", 1).Command()
		if cmd.err == nil && string(next.body()[:len(before)-1]) != string(before[:len(before)-1]) {
			t.Fatalf("%s became %s", before, next.body())
		}
	})
}

func TestBitFieldRefuses(t *testing.T) {
	one := []uint64{1}
	for name, b := range map[string]*BitField{
		"nil":                 nil,
		"zero value":          new(BitField),
		"zero value, built":   new(BitField).Get("u1", 0),
		"zero value, RO":      new(BitField).ReadOnly(),
		"zero value, RO get":  new(BitField).Get("u1", 0).ReadOnly(),
		"key not UTF-8":       NewBitField("k\xff").Get("u1", 0),
		"u0":                  NewBitField("k").Get("u0", 0),
		"u64":                 NewBitField("k").Get("u64", 0),
		"i65":                 NewBitField("k").Set("i65", 0, 1),
		"u":                   NewBitField("k").IncrBy("u", 0, 1),
		"no type":             NewBitField("k").IncrBy("", 0, 1),
		"leading zero":        NewBitField("k").Get("u08", 0),
		"sign":                NewBitField("k").Get("u+8", 0),
		"upper case":          NewBitField("k").Get("U8", 0),
		"quote":               NewBitField("k").Get(`u"`, 0),
		"i100":                NewBitField("k").Get("i100", 0),
		"offset":              NewBitField("k").Get("u1", maxBitOffset+1),
		"greatest offset":     NewBitField("k").Set("u1", math.MaxUint64, 1),
		"increment offset":    NewBitField("k").IncrBy("u1", maxBitOffset+1, 1),
		"sum":                 NewBitField("k").SetBits(maxBitOffset, one),
		"sum of get":          NewBitField("k").GetWords("u1", maxBitOffset, one),
		"sum that wraps":      NewBitField("k").SetBits(math.MaxUint64, one),
		"get that wraps":      NewBitField("k").GetWords("u1", 1, []uint64{math.MaxUint64}),
		"type of words":       NewBitField("k").GetWords("u64", 0, one),
		"words that wrap":     NewBitField("k").GetWords("u53", math.MaxUint64, one),
		"get base that wraps": NewBitField("k").GetWords("u1", math.MaxUint64, one),
		"overflow mode":       NewBitField("k").Overflow(3),
		"read-only set":       NewBitField("k").Set("u1", 0, 1).ReadOnly(),
		"read-only overflow":  NewBitField("k").ReadOnly().Overflow(Sat).Get("u1", 0),
	} {
		c, f := newFake(t, always(`{"result":[0]}`))
		_, err := c.BitField(t.Context(), b)
		if !errors.Is(err, ErrArgument) || !SafeToRetry(err) || f.count() != 0 {
			t.Errorf("%s: got %v and %d requests, want ErrArgument and none", name, err, f.count())
		}
		if err != nil && !strings.Contains(err.Error(), "BITFIELD") {
			t.Errorf("%s: %q does not name the command", name, err)
		}
	}
}

func TestBitFieldAcceptsAllTypes(t *testing.T) {
	for sign, widest := range map[string]int{"u": 63, "i": 64} {
		for n := range 70 {
			typ := sign + strconv.Itoa(n)
			want := uint64(0)
			if n >= 1 && n <= widest {
				want = uint64(n)
			}
			if got := fieldWidth(typ); got != want {
				t.Errorf("fieldWidth(%q) = %d, want %d", typ, got, want)
			}
		}
	}
}

func TestBitFieldAnswers(t *testing.T) {
	for _, tt := range []struct {
		body string
		want []NullInt64
		err  error
	}{
		{`{"result":[1,null]}`, []NullInt64{{1, true}, {}}, nil},
		{
			`{"result":[-9223372036854775808,9223372036854775807]}`,
			[]NullInt64{{math.MinInt64, true}, {math.MaxInt64, true}},
			nil,
		},
		{`{"result":[1]}`, nil, ErrBadResponse},
		{`{"result":[1,2,3]}`, nil, ErrBadResponse},
		{`{"result":[1,"2"]}`, nil, ErrBadResponse},
		{`{"result":[1,9223372036854775808]}`, nil, ErrBadResponse},
		{`{"result":[1,2.5]}`, nil, ErrBadResponse},
		{`{"result":"OK"}`, nil, ErrBadResponse},
		{`{"result":null}`, nil, ErrBadResponse},
		{`{"result":[1,`, nil, ErrBadResponse},
		{`{}`, nil, ErrBadResponse},
		{``, nil, ErrBadResponse},
	} {
		c, _ := newFake(t, always(tt.body), WithRetry(0))
		got, err := c.BitField(t.Context(), NewBitField("k").Get("i64", 0).Get("i64", 64))
		if !errors.Is(err, tt.err) || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, %v; want %v, %v", tt.body, got, err, tt.want, tt.err)
		}
	}
}
