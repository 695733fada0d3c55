package upstash

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestExpireCmd(t *testing.T) {
	for _, tt := range []struct {
		ttl  time.Duration
		cond []string
		want string
	}{
		{time.Second, nil, `["EXPIRE","k","1"]`},
		{36 * time.Hour, []string{"NX"}, `["EXPIRE","k","129600","NX"]`},
		{1500 * time.Millisecond, nil, `["PEXPIRE","k","1500"]`},
		{time.Millisecond + time.Microsecond, nil, `["PEXPIRE","k","1"]`},
		{math.MaxInt64, nil, `["PEXPIRE","k","9223372036854"]`},
	} {
		if cmd := ExpireCmd("k", tt.ttl, tt.cond...); string(cmd.body()) != tt.want || cmd.err != nil {
			t.Errorf("%v: got %s, %v; want %s", tt.ttl, cmd.body(), cmd.err, tt.want)
		}
	}
	for _, ttl := range []time.Duration{0, -time.Second, time.Microsecond} {
		if cmd := ExpireCmd("k", ttl); !errors.Is(cmd.err, ErrArgument) {
			t.Errorf("%v: got %v, want ErrArgument", ttl, cmd.err)
		}
	}
}

func TestTTL(t *testing.T) {
	for result, want := range map[string]time.Duration{
		"-1": NoExpiry, "-2": NoKey, "0": 0, "1500": 1500 * time.Millisecond,
		"9223372036854775807": math.MaxInt64 / time.Millisecond * time.Millisecond,
	} {
		c, f := newFake(t, always(`{"result":`+result+`}`))
		got, err := c.TTL(t.Context(), "k")
		if got != want || err != nil || string(f.requests[0].Body) != `["PTTL","k"]` {
			t.Errorf("%s: got %v, %v", result, got, err)
		}
	}
}

func TestKeyCommands(t *testing.T) {
	c, f := newFake(t, always(`{"result":1}`))
	ctx := t.Context()
	expired, err1 := c.Expire(ctx, "k", time.Minute)
	persisted, err2 := c.Persist(ctx, "k")
	deleted, err3 := c.Del(ctx, "a", "b")
	all, err4 := c.BitCount(ctx, "k")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if !expired || !persisted || deleted != 1 || all != 1 {
		t.Errorf("got %v, %v, %d, %d, want true or 1", expired, persisted, deleted, all)
	}
	for i, want := range []string{
		`["EXPIRE","k","60"]`, `["PERSIST","k"]`, `["DEL","a","b"]`, `["BITCOUNT","k"]`,
	} {
		if sent := f.requests[i]; string(sent.Body) != want || sent.URL != testURL+"/" {
			t.Errorf("sent %s to %s, want %s", sent.Body, sent.URL, want)
		}
	}
}

func TestKeyCommandsOfAWrongAnswer(t *testing.T) {
	for _, body := range []string{`{"result":"1"}`, `{"result":[1]}`, `{"result":null}`} {
		c, _ := newFake(t, always(body), WithRetry(0))
		if n, err := c.BitCount(t.Context(), "k"); n != 0 || !errors.Is(err, ErrBadResponse) {
			t.Errorf("%s: got %d, %v; want ErrBadResponse", body, n, err)
		}
	}
}

func TestKeyCommandsRefused(t *testing.T) {
	c, _ := newFake(t, []answer{{status: 400, body: `{"error":"NOPERM no"}`}})
	ctx := t.Context()
	expired, err1 := c.Expire(ctx, "k", time.Minute)
	persisted, err2 := c.Persist(ctx, "k")
	ttl, err3 := c.TTL(ctx, "k")
	deleted, err4 := c.Del(ctx, "k")
	if expired || persisted || ttl != 0 || deleted != 0 {
		t.Errorf("got %v, %v, %v, %d, want zero values", expired, persisted, ttl, deleted)
	}
	for _, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, ErrNoPermission) {
			t.Errorf("got %v, want ErrNoPermission", err)
		}
	}
}

// Scan asks until the cursor is 0, and no longer than its caller wants keys.
func TestScan(t *testing.T) {
	pages := []answer{
		{body: `{"result":["17",["a","b"]]}`}, // a server may ignore the request for RESP2
		{body: "*2\r\n$1\r\n5\r\n*0\r\n"},
		{body: "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$2\r\nc\xff\r\n"},
	}
	c, f := newFake(t, pages)
	var keys []string
	for key, err := range c.Scan(t.Context(), "*") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if want := []string{"a", "b", "b", "c\xff"}; !slices.Equal(keys, want) {
		t.Errorf("got %q, want %q", keys, want)
	}
	for i, cursor := range []string{"0", "17", "5"} {
		want := `["SCAN","` + cursor + `","MATCH","*","COUNT","1000"]`
		if got := string(f.requests[i].Body); got != want {
			t.Errorf("request %d is %s, want %s", i+1, got, want)
		}
	}

	c, f = newFake(t, pages)
	for range c.Scan(t.Context(), "*") {
		break
	}
	if n := f.count(); n != 1 {
		t.Errorf("%d requests for the first key, want 1", n)
	}
}

// An error comes once, with no key, and is the last that Scan returns.
func TestScanEndsWithAnError(t *testing.T) {
	first := `{"result":["17",["a"]]}`
	for name, tt := range map[string]struct {
		second answer
		want   error
	}{
		"refused":          {answer{status: 400, body: `{"error":"NOPERM no"}`}, ErrNoPermission},
		"the same cursor":  {answer{body: first}, ErrBadResponse},
		"an empty cursor":  {answer{body: `{"result":["",[]]}`}, ErrBadResponse},
		"no number":        {answer{body: `{"result":["1a",[]]}`}, ErrBadResponse},
		"a signed cursor":  {answer{body: `{"result":[-1,[]]}`}, ErrBadResponse},
		"21 digits":        {answer{body: `{"result":["` + strings.Repeat("1", 21) + `",[]]}`}, ErrBadResponse},
		"no array":         {answer{body: `{"result":"a"}`}, ErrBadResponse},
		"null":             {answer{body: `{"result":null}`}, ErrBadResponse},
		"three elements":   {answer{body: `{"result":["0",[],[]]}`}, ErrBadResponse},
		"no cursor":        {answer{body: `{"result":[null,[]]}`}, ErrBadResponse},
		"an array for one": {answer{body: `{"result":[[],[]]}`}, ErrBadResponse},
		"no keys":          {answer{body: `{"result":["0",null]}`}, ErrBadResponse},
		"an array of keys": {answer{body: `{"result":["0",["b",["c"]]]}`}, ErrBadResponse},
		"null for a key":   {answer{body: `{"result":["0",["b",null]]}`}, ErrBadResponse},
	} {
		c, f := newFake(t, []answer{{body: first}, tt.second}, WithRetry(0))
		var errs []error
		for key, err := range c.Scan(t.Context(), "*") {
			if (err != nil) != (key == "") {
				t.Errorf("%s: got %q with %v", name, key, err)
			}
			if errs = append(errs, err); len(errs) > 10 {
				break
			}
		}
		if last := errs[len(errs)-1]; !errors.Is(last, tt.want) || errors.Join(errs[:len(errs)-1]...) != nil {
			t.Errorf("%s: got %v, want %v as the last", name, errs, tt.want)
		}
		if n := f.count(); n != 2 {
			t.Errorf("%s: %d requests, want 2", name, n)
		}
	}
}

// TestScanInACircle: Scan ends if the cursors repeat, wherever the circle begins.
func TestScanInACircle(t *testing.T) {
	for _, tt := range []struct{ before, around int }{{0, 1}, {1, 1}, {0, 2}, {3, 5}, {100, 7}, {5, 100}} {
		most := 3 * (tt.before + tt.around + 1)
		script := make([]answer, most+1)
		for n := range script {
			cursor := n + 1
			if n >= tt.before {
				cursor = tt.before + (n-tt.before)%tt.around + 1
			}
			script[n].body = `{"result":["` + strconv.Itoa(cursor) + strings.Repeat("0", 17) + `",["a"]]}`
		}
		c, f := newFake(t, script)
		var last error
		for _, err := range c.Scan(t.Context(), "*") {
			if last = err; f.count() > most {
				break
			}
		}
		if !errors.Is(last, ErrBadResponse) || f.count() > most {
			t.Errorf("%d cursors and %d in a circle: %v after %d requests, want ErrBadResponse after %d at most",
				tt.before, tt.around, last, f.count(), most)
		}
	}
}
