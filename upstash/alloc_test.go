//go:build !race

package upstash

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// addPositions are the positions of one item in a filter with seven hashes.
var addPositions = []uint64{12, 70_001, 4_000_000, 31, 999, 123_456, 9_585_058}

// buildAdd builds the command for adding an item to a filter.
func buildAdd(b *BitField, key string, header int64) Command {
	return b.Reset(key).
		Overflow(Fail).IncrBy("u53", 0, header).Get("u53", 0).
		Overflow(Wrap).SetBits(128, addPositions).Command()
}

func TestNothingIsAllocated(t *testing.T) {
	b := NewBitField("filter:seen")
	body := []byte(`{"result":[null,4503599627370503,0,1,1,0,1,1,0]}` + "\r\n") // as some servers end it
	dst := make([]NullInt64, 0, 9)
	var a hidden[received] // lives in the call
	for name, do := range map[string]func() error{
		"building an Add": func() error { return buildAdd(b, "filter:seen", 1<<52|7).err },
		"building a look-up": func() error {
			return b.Reset("filter:seen").Get("u53", 0).GetWords("u53", 128, addPositions).Command().err
		},
		"reading an answer": func() error {
			env, err := decodeEnvelope(body)
			if err != nil {
				return err
			}
			a.v = received{name: "BITFIELD", body: env.result}
			got, err := newReply(&a).Ints(dst[:0])
			if len(got) != 9 {
				t.Errorf("%d answers, want 9", len(got))
			}
			return err
		},
	} {
		n := testing.AllocsPerRun(100, func() {
			if err := do(); err != nil {
				t.Error(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

// allocated returns how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// An error must not cost more for a larger request.
func TestRedactingIsBounded(t *testing.T) {
	pairs := make([]string, 0, 200_000)
	for i := range cap(pairs) {
		pairs = append(pairs, "key-or-value-"+strconv.Itoa(i))
	}
	many := Cmd("MSET", pairs...).body()
	long := Cmd("SET", "some-key", strings.Repeat("v", 8<<20)).body()
	message := "ERR " + strings.Repeat("key-or-value and then other words. ", 40)
	for name, body := range map[string][]byte{"many arguments": many, "a long one": long} {
		if n := allocated(func() { redact([]string{message}, body, testToken) }); n > 512<<10 {
			t.Errorf("%s: %d bytes allocated, want 512 KiB at most", name, n)
		}
	}
	if got := redact([]string{"bad " + strings.Repeat("v", 500)}, long, testToken)[0]; got != "bad …" {
		t.Errorf("the beginning of a long argument shows: %s", got)
	}
}

// TestAllocationsOfDo counts the allocations of a whole call outside its
// transport: one for the call itself, one for what its reply keeps, and four for
// the context of WithTimeout.
func TestAllocationsOfDo(t *testing.T) {
	body := []byte(`{"result":[null,4503599627370503,0,1,1,0,1,1,0]}`)
	transport := transportFunc(func(_ *Request, resp *Response) error {
		resp.Body = body
		return nil
	})
	for name, tt := range map[string]struct {
		opts []Option
		want float64
	}{
		"default":         {[]Option{unobserved}, 6},
		"without timeout": {[]Option{unobserved, WithTimeout(0)}, 2},
		"with observer": {
			[]Option{unobserved, WithTimeout(0), WithObserver(func(context.Context, Event) {})}, 2,
		},
	} {
		c := clientOver(t, transport, tt.opts...)
		ctx, cmd := context.Background(), buildAdd(NewBitField("k"), "k", 1<<52)
		n := testing.AllocsPerRun(100, func() {
			if _, err := c.Do(ctx, cmd); err != nil {
				t.Error(err)
			}
		})
		if n > tt.want {
			t.Errorf("%s: %v allocations, want at most %v", name, n, tt.want)
		}
	}
}

func BenchmarkDecodeInts(b *testing.B) {
	for _, n := range []int{9, 7000} {
		b.Run("ints="+strconv.Itoa(n), func(b *testing.B) {
			body := []byte(`{"result":[0`)
			for i := 1; i < n; i++ {
				body = append(body, ',', byte('0'+i%2))
			}
			body = append(body, "]}"...)
			dst := make([]NullInt64, 0, n)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				env, _ := decodeEnvelope(body)
				a := hidden[received]{v: received{body: env.result}}
				if _, err := newReply(&a).Ints(dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestReadingTakesAFewTimesTheAnswer: reading an answer takes at most 8 times
// its length in memory, however small its elements are.
func TestReadingTakesAFewTimesTheAnswer(t *testing.T) {
	const length = 1 << 20
	array := func(element string) string {
		return `{"result":[` + strings.Repeat(element+",", length/(len(element)+1)) + element + `]}`
	}
	members := strings.Repeat(`"name":1,`, length/9)
	for name, tt := range map[string]struct {
		body   string
		binary bool
	}{
		"digits":         {array("1"), false},
		"nulls":          {array("null"), false},
		"empty strings":  {array(`""`), false},
		"empty arrays":   {array("[]"), false},
		"objects":        {array(`{"a":1}`), false},
		"members":        {"{" + members + `"result":[1]}`, false},
		"RESP2 integers": {respArray(":1\r\n", length/4), true},
		"RESP2 statuses": {respArray("+\r\n", length/3), true},
		"RESP2 nulls":    {respArray("$-1\r\n", length/5), true},
		"RESP2 arrays":   {respArray("*0\r\n", length/4), true},
		"RESP2 errors":   {respArray("-\r\n", length/3), true},
	} {
		c, _ := newFake(t, always(tt.body))
		cmd := Cmd("EVAL", "return 1", "0")
		if tt.binary {
			cmd = cmd.Binary()
		}
		n := allocated(func() {
			r, err := c.Do(t.Context(), cmd)
			if err != nil {
				t.Fatal(name, err)
			}
			if list, err := r.Array(); err != nil || len(list) == 0 {
				t.Errorf("%s: %d elements, want some: %v", name, len(list), err)
			}
		}) - uint64(len(tt.body)) // the fake transport makes one copy
		if most := 8*uint64(len(tt.body)) + 64<<10; n > most {
			t.Errorf("%s: %d bytes allocated for %d, which are %.1f times as many", name, n, len(tt.body),
				float64(n)/float64(len(tt.body)))
		}
	}
}

// TestAnAnswerToTooMany: a million elements in the answer to a batch take no
// more memory than its commands justify.
func TestAnAnswerToTooMany(t *testing.T) {
	body := "[" + strings.Repeat(`{"result":1},`, 100_000) + `{"result":1}]`
	c, _ := newFake(t, always(body), WithRetry(0))
	n := allocated(func() {
		_, err := c.Pipeline(t.Context(), Cmd("PING"), Cmd("PING"))
		if err == nil || !strings.Contains(err.Error(), "100001 answers to 2 commands") {
			t.Errorf("got %v", err)
		}
	})
	if n -= uint64(len(body)); n > 64<<10 {
		t.Errorf("%d bytes allocated beside the body, want 64 KiB at most", n)
	}
}

func respArray(element string, n int) string {
	return "*" + strconv.Itoa(n) + "\r\n" + strings.Repeat(element, n)
}
