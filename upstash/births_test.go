package upstash

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/lots"
)

const aBirth int64 = 1<<52 | 3<<20 | 213 // the first attempt's

// creating returns commands that carry a birth number: a BITFIELD, and a script.
func creating(key string) (bitField, script Command) {
	b := NewBitField(key).Overflow(Fail).IncrBy("u53", 0, 1<<52|7).IncrBy("u53", 64, aBirth)
	door.Numbered(b, aBirth)
	c := aScript.Cmd([]string{key}, "7", strconv.FormatInt(aBirth, 10), "x").Repeatable(true)
	door.Numbered(&c, aBirth)
	return b.Command(), c
}

var aScript = NewScript(keyLocking + "return 1")

// sentBirths returns which attempt of its call each birth number in the requests
// names, by request. It fails the test if another bit of one has changed.
func sentBirths(t *testing.T, f *fakeTransport) (all []string) {
	t.Helper()
	for _, r := range f.requests {
		var ns []string
		for _, text := range regexp.MustCompile(`"45035[0-9]{11}"`).FindAllString(string(r.Body), -1) {
			birth, _ := strconv.ParseInt(strings.Trim(text, `"`), 10, 64)
			if birth == 1<<52|7 { // the header
				continue
			}
			if lots.OfCall(birth) != aBirth {
				t.Errorf("%s carries %d, no attempt of %d", r.Body, birth, aBirth)
			}
			ns = append(ns, strconv.FormatInt((birth^aBirth)>>10, 10))
		}
		all = append(all, strings.Join(ns, ","))
	}
	return all
}

// sendAll sends commands in one request.
func sendAll(ctx context.Context, c *Client, cmds []Command, transaction bool) ([]Reply, error) {
	switch {
	case len(cmds) == 1:
		r, err := c.Do(ctx, cmds[0])
		return []Reply{r}, err
	case transaction:
		return c.MultiExec(ctx, cmds...)
	}
	return c.Pipeline(ctx, cmds...)
}

// Each attempt carries a birth number of its own, whatever ended the one before:
// that may come late, and make a filter again.
func TestEachAttemptHasItsBirth(t *testing.T) {
	bitField, script := creating("k")
	one, two := answer{body: `{"result":1}`}, answer{body: `[{"result":1},{"result":1}]`}
	for _, tt := range []struct {
		name    string
		script  []answer // of the server
		batches [][]Command
		want    []string
	}{
		{"a BITFIELD", []answer{{err: dropped}, {err: notSent}, one}, [][]Command{{bitField}}, []string{"0", "1", "2"}},
		{"two calls", []answer{{err: dropped}, one}, [][]Command{{bitField}, {bitField}}, []string{"0", "1", "0"}},
		{
			"a script in its forms",
			[]answer{noFlags, one, {err: dropped}, forgot, one},
			[][]Command{{script}, {script}},
			[]string{"0", "1", "0", "1", "2"},
		},
		{
			"a pipeline",
			[]answer{{err: dropped}, two},
			[][]Command{{bitField, script}},
			[]string{"0,0", "1,1"},
		},
		{
			"what a pipeline sends again",
			[]answer{
				one,
				{err: dropped},
				{body: `[{"result":1},` + noScript + "]"},
				{err: dropped},
				{body: `[{"result":1}]`},
			},
			[][]Command{{script}, {bitField, script}},
			[]string{"0", "0,0", "1,1", "2", "3"},
		},
		{"a transaction", []answer{{err: dropped}, two}, [][]Command{{bitField, script}}, []string{"0,0", "1,1"}},
		{"a Get", []answer{{err: dropped}, one}, [][]Command{{Cmd("GET", strconv.FormatInt(aBirth, 10))}}, []string{"0", "0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, f := newFake(t, tt.script)
			for _, cmds := range tt.batches {
				if _, err := sendAll(t.Context(), c, cmds, tt.name == "a transaction"); err != nil {
					t.Fatal(err)
				}
			}
			if got := sentBirths(t, f); !slices.Equal(got, tt.want) {
				t.Errorf("the attempts carry %q, want %q", got, tt.want)
			}
		})
	}
}

// Four bits hold the attempt, so the seventeenth has the number of the first.
func TestTheSeventeenthAttemptHasTheFirstBirth(t *testing.T) {
	bitField, _ := creating("k")
	c, f := newFake(t, []answer{{err: dropped}}, WithRetry(16))
	if _, err := c.Do(t.Context(), bitField); err == nil {
		t.Fatal("no error")
	}
	got := sentBirths(t, f)
	if len(got) != 17 || got[15] != "15" || got[16] != "0" {
		t.Errorf("the attempts carry %q", got)
	}
}

// net/http and fetch may read a body while the next attempt is made.
func TestAnAttemptLeavesTheBodyBefore(t *testing.T) {
	bitField, script := creating("k")
	for _, cmds := range [][]Command{{bitField}, {script}, {bitField, script}} {
		f := new(fakeTransport)
		c := clientOver(t, transportFunc(func(req *Request, _ *Response) error {
			f.requests = append(f.requests, *req)
			return dropped
		}), WithRetry(2), WithBackoff(0, 0))
		_, _ = sendAll(t.Context(), c, cmds, false)
		want := []string{"0", "1", "2"}
		if len(cmds) == 2 {
			want = []string{"0,0", "1,1", "2,2"}
		}
		if got := sentBirths(t, f); !slices.Equal(got, want) {
			t.Errorf("after all attempts the bodies carry %q, want %q", got, want)
		}
	}
}
