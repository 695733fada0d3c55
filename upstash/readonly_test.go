package upstash

import (
	"errors"
	"strings"
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
		_, alone := c.Do(t.Context(), cmd)
		_, batch := c.Pipeline(t.Context(), Cmd("GET", "k"), cmd)
		_, transaction := c.MultiExec(t.Context(), cmd)
		for _, err := range []error{alone, batch, transaction} {
			if !errors.Is(err, ErrReadOnly) || !SafeToRetry(err) {
				t.Errorf("%v: got %v, want ErrReadOnly", cmd, err)
			}
		}
	}
	if _, err := c.BitField(t.Context(), NewBitField("k").Set("u1", 0, 1)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("BitField with a Set: %v, want ErrReadOnly", err)
	}
	if f.count() != 0 {
		t.Fatalf("%d requests were sent, want 0", f.count())
	}
	if _, err := c.BitField(t.Context(), NewBitField("k").Get("u1", 0)); err != nil {
		t.Error(err)
	}
	if got := string(f.requests[0].Body); got != `["BITFIELD_RO","k","GET","u1","0"]` {
		t.Errorf("a read went as %s", got)
	}
}

// A NOPERM may come from a rule about one key or one command: it must not
// change the form of later commands.
func TestNoPermissionDoesNotMakeTheClientReadOnly(t *testing.T) {
	const noPerm = `{"error":"NOPERM this user has no permissions to run the 'bitfield' command"}`
	c, f := newFake(t, []answer{
		{status: 400, body: noPerm}, {body: "[" + noPerm + "]"}, {body: `{"result":[0]}`},
	})
	if _, err := c.BitField(t.Context(), NewBitField("k").Get("u1", 0)); !errors.Is(err, ErrNoPermission) {
		t.Errorf("got %v, want ErrNoPermission", err)
	}
	replies, err := c.Pipeline(t.Context(), NewBitField("k").Get("u1", 0).Command())
	if err != nil || !errors.Is(replies[0].Err(), ErrNoPermission) {
		t.Errorf("got %v, %v", replies, err)
	}
	if c.ReadOnly() {
		t.Error("the client became a read-only one")
	}
	for _, b := range []*BitField{NewBitField("k").Get("u1", 0), NewBitField("k").Set("u1", 0, 1)} {
		if _, err := c.BitField(t.Context(), b); err != nil {
			t.Error(err)
		}
		if got := string(f.requests[f.count()-1].Body); !strings.HasPrefix(got, `["BITFIELD",`) {
			t.Errorf("went as %s", got)
		}
	}
}

// A builder belongs to its caller, who may send it by another client next.
func TestAReadOnlyClientLeavesTheBuilderAlone(t *testing.T) {
	reader, _ := newFake(t, always(`{"result":[0]}`), WithReadOnly())
	b := NewBitField("k").Get("u1", 0)
	if _, err := reader.BitField(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if name := b.Command().Name(); name != "BITFIELD" {
		t.Errorf("the builder makes a %s now", name)
	}
	writer, f := newFake(t, always(`{"result":[0,0]}`))
	if _, err := writer.BitField(t.Context(), b.Set("u1", 1, 1)); err != nil {
		t.Fatal(err)
	}
	if got := string(f.requests[0].Body); got != `["BITFIELD","k","GET","u1","0","SET","u1","1",1]` {
		t.Errorf("sent %s", got)
	}
	own := NewBitField("k").Get("u1", 0).ReadOnly()
	if _, err := reader.BitField(t.Context(), own); err != nil || own.Command().Name() != "BITFIELD_RO" {
		t.Errorf("%v, and a command that was read-only is a %s", err, own.Command().Name())
	}
}
