package upstash

import (
	"errors"
	"math"
	"reflect"
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
	for _, tt := range []struct {
		call func() (any, error)
		body string
		want any
	}{
		{func() (any, error) { return c.Expire(ctx, "k", time.Minute) }, `["EXPIRE","k","60"]`, true},
		{func() (any, error) { return c.Persist(ctx, "k") }, `["PERSIST","k"]`, true},
		{func() (any, error) { return c.Del(ctx, "a", "b") }, `["DEL","a","b"]`, int64(1)},
		{func() (any, error) { return c.BitCount(ctx, "k") }, `["BITCOUNT","k"]`, int64(1)},
		{
			func() (any, error) { return c.BitCountRange(ctx, "k", 16, -1, Byte) },
			`["BITCOUNT","k","16","-1"]`, int64(1),
		},
		{
			func() (any, error) { return c.BitCountRange(ctx, "k", 0, 9, Bit) },
			`["BITCOUNT","k","0","9","BIT"]`, int64(1),
		},
	} {
		got, err := tt.call()
		sent := f.requests[f.count()-1]
		if got != tt.want || err != nil || string(sent.Body) != tt.body || sent.URL != testURL+"/" {
			t.Errorf("got %v, %v; sent %s to %s; want %s", got, err, sent.Body, sent.URL, tt.body)
		}
	}
	for _, tt := range []struct{ body, name string }{
		{`{"result":"1"}`, "string"}, {`{"result":[1]}`, "array"}, {`{"result":null}`, "null"},
	} {
		c, _ := newFake(t, always(tt.body), WithRetry(0))
		if n, err := c.BitCount(ctx, "k"); n != 0 || !errors.Is(err, ErrBadResponse) {
			t.Errorf("%s: got %d, %v; want ErrBadResponse", tt.name, n, err)
		}
	}
	c, _ = newFake(t, []answer{{status: 400, body: `{"error":"NOPERM no"}`}})
	for name, call := range map[string]func() (any, error){
		"Expire":  func() (any, error) { return c.Expire(ctx, "k", time.Minute) },
		"Persist": func() (any, error) { return c.Persist(ctx, "k") },
		"TTL":     func() (any, error) { return c.TTL(ctx, "k") },
		"Del":     func() (any, error) { return c.Del(ctx, "k") },
	} {
		got, err := call()
		if !reflect.ValueOf(got).IsZero() || !errors.Is(err, ErrNoPermission) {
			t.Errorf("%s, refused: got %v, %v", name, got, err)
		}
	}
	c, f = newFake(t, always(`{"result":1}`))
	_, unit := c.BitCountRange(ctx, "k", 0, 9, Unit(9))
	_, none := c.BitField(ctx, nil)
	for _, err := range []error{unit, none} {
		if !errors.Is(err, ErrArgument) || !SafeToRetry(err) || f.count() != 0 {
			t.Errorf("%v after %d requests, want ErrArgument and none", err, f.count())
		}
	}
}
