package upstash

import (
	"errors"
	"testing"
)

func TestReadOnlyClient(t *testing.T) {
	c, f := newFake(t, always(`{"result":[0]}`), WithReadOnly())
	if !c.ReadOnly() {
		t.Error("ReadOnly is false")
	}
	for _, cmd := range []Command{
		Cmd("SET", "k", "v"),
		Cmd("NO.SUCH"),
		Cmd("EVAL", "x", "0"),
		Cmd("SET", "k", "v").Repeatable(true),
		NewBitField("k").Set("u1", 0, 1).Command(),
		NewBitField("k").Overflow(Fail).IncrBy("u53", 0, 1<<52).Command(),
	} {
		for name, call := range map[string]func() error{
			"Do":        func() error { _, err := c.Do(t.Context(), cmd); return err },
			"Pipeline":  func() error { _, err := c.Pipeline(t.Context(), Cmd("GET", "k"), cmd); return err },
			"MultiExec": func() error { _, err := c.MultiExec(t.Context(), cmd); return err },
		} {
			if err := call(); !errors.Is(err, ErrReadOnly) || !SafeToRetry(err) {
				t.Errorf("%s of %v: got %v, want ErrReadOnly", name, cmd, err)
			}
		}
	}
	if _, err := c.BitField(t.Context(), NewBitField("k").Set("u1", 0, 1)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("BitField with a Set: %v", err)
	}
	if f.count() != 0 {
		t.Fatalf("%d requests were sent", f.count())
	}
	if _, err := c.BitField(t.Context(), NewBitField("k").Get("u1", 0)); err != nil {
		t.Error(err)
	}
	if got := string(f.requests[0].Body); got != `["BITFIELD_RO","k","GET","u1","0"]` {
		t.Errorf("a read went as %s", got)
	}
}

// A token that turns out to be a read-only one makes the client read with
// BITFIELD_RO from then on.
func TestReadOnlyIsLearned(t *testing.T) {
	const noPerm = "NOPERM this user has no permissions to run the 'bitfield' command or its subcommand"
	get := NewBitField("k").Get("u1", 0)
	for name, tt := range map[string]struct {
		answer answer
		call   func(c *Client) error
		want   bool
	}{
		"BITFIELD": {
			answer{status: 400, body: `{"error":"` + noPerm + `"}`},
			func(c *Client) error { _, err := c.BitField(t.Context(), get); return err }, true,
		},
		"in a pipeline": {
			answer{body: `[{"error":"` + noPerm + `"}]`}, func(c *Client) error {
				r, err := c.Pipeline(t.Context(), get.Command())
				return errors.Join(err, r[0].Err())
			}, true,
		},
		"another command": {
			answer{status: 400, body: `{"error":"NOPERM no"}`},
			func(c *Client) error { _, err := c.Del(t.Context(), "k"); return err }, false,
		},
		"another error": {
			answer{status: 400, body: `{"error":"WRONGTYPE no"}`},
			func(c *Client) error { _, err := c.BitField(t.Context(), get); return err }, false,
		},
	} {
		c, f := newFake(t, []answer{tt.answer, {body: `{"result":[0]}`}})
		get.Reset("k").Get("u1", 0)
		if err := tt.call(c); err == nil || c.ReadOnly() != tt.want {
			t.Errorf("%s: %v, ReadOnly %v", name, err, c.ReadOnly())
		}
		if _, err := c.BitField(t.Context(), get); err != nil {
			t.Errorf("%s: the next read: %v", name, err)
		}
		if sentRO := string(f.requests[1].Body[:14]) == `["BITFIELD_RO"`; sentRO != tt.want {
			t.Errorf("%s: the next read went as %s", name, f.requests[1].Body)
		}
	}
}
