package upstash

import (
	"errors"
	"strings"
	"testing"
)

func TestTraits(t *testing.T) {
	const read, rep = traitRead | traitRepeatable, traitRepeatable
	for want, cmds := range map[traits][]string{
		read: {
			"GET k", "PING", "BITCOUNT k 0 -1", "BITFIELD_RO k GET u1 0", "BITFIELD k GET u1 0 GET i8 #1", "BITFIELD k",
		},
		rep: {
			"SADD k x", "SETBIT k 1 1", "SETRANGE k 0 x", "PFADD k x", "EXPIRE k 10 NX", "PEXPIRE k 1",
			"JSON.SET k $ 1", "JSON.SET k $ 1 XX", "ZADD k 1 a",
			"SET k v", "set k v EX 10", "SET k v XX KEEPTTL", "SET NX GET",
			"SET k NX", // NX is the value
			"BITOP OR d a b", "BITOP OR d d a", "BITOP and d d a", "BITOP XOR d a b", "BITOP NOT d s",
			"BITFIELD k GET u1 0 SET u1 7 1", "BITFIELD k overflow sat set u8 #1 5 get u1 0",
		},
		0: {
			"INCR k", "APPEND k x", "LPUSH k x", "DEL k", "RENAME a b", "GETSET k v", "GETDEL k", "SETNX k v", "NO.SUCH k",
			"EXPIRE k 0", // deletes the key, which may be another client's by now
			"PEXPIRE k -1", "EXPIRE k soon", "EXPIRE k",
			"EXPIREAT k 1900000000", // the server's clock is not known here
			"PEXPIREAT k 1900000000000",
			"LSET l 0 x", // a push in between moves the element
			"JSON.SET k $ 1 NX", "ZADD k INCR 1 a", "ZADD k CH 1 a",
			"SET k v NX", "SET k v EX 10 nx", "SET k v GET", "SET k v IFEQ old", "SET k v IFDNE digest", "SET k",
			"BITOP XOR d a d", "BITOP NOT d d", "BITOP OR d",
			"BITFIELD k INCRBY u8 0 1", "BITFIELD k SET u1 0 1 incrby u8 8 0", "BITFIELD k NOPE 1 2",
			"BITFIELD k OVERFLOW FAIL INCRBY u8 0 128",                        // a builder knows "set if zero"
			"BITFIELD k SET u1 0", "BITFIELD k OVERFLOW", "BITFIELD k GET u1", // cut
		},
		traitScript:        {"EVAL return 0", "EVALSHA abc 0", "FCALL f 0"},
		traitScript | read: {"EVAL_RO return 0"},
	} {
		for _, cmd := range cmds {
			words := strings.Fields(cmd)
			if got := Cmd(words[0], words[1:]...).traits; got != want {
				t.Errorf("%s: traits %03b, want %03b", cmd, got, want)
			}
		}
	}
}

func TestTraitsOfBitField(t *testing.T) {
	const top = 1 << 52 // half of a u53
	for name, tt := range map[string]struct {
		b    *BitField
		want traits
	}{
		"get":           {NewBitField("k").Get("u1", 0), traitRead | traitRepeatable},
		"get many":      {NewBitField("k").GetWords("u1", 0, []uint64{1}), traitRead | traitRepeatable},
		"set":           {NewBitField("k").Set("u1", 0, 1), traitRepeatable},
		"set many":      {NewBitField("k").SetBits(0, []uint64{1}), traitRepeatable},
		"increment":     {NewBitField("k").IncrBy("u8", 0, 1), 0},
		"set if zero":   {NewBitField("k").Overflow(Fail).IncrBy("u53", 0, top), traitRepeatable},
		"fits twice":    {NewBitField("k").Overflow(Fail).IncrBy("u53", 0, top-1), 0},
		"fits in i8":    {NewBitField("k").Overflow(Fail).IncrBy("i8", 0, 127), 0},
		"negative":      {NewBitField("k").Overflow(Fail).IncrBy("u8", 0, -128), 0},
		"nothing":       {NewBitField("k").IncrBy("u8", 0, 0), traitRepeatable},
		"saturates":     {NewBitField("k").Overflow(Sat).IncrBy("u8", 0, 128), 0},
		"two overlap":   {NewBitField("k").Overflow(Fail).IncrBy("u8", 0, 129).IncrBy("u8", 7, 129), 0},
		"wraps":         {NewBitField("k").Overflow(Fail).Overflow(Wrap).IncrBy("u53", 0, top), 0},
		"one is enough": {NewBitField("k").Set("u1", 0, 1).IncrBy("i8", 24, 1), 0},
		"two if zero": {
			NewBitField("k").Overflow(Fail).IncrBy("u53", 0, top).IncrBy("u53", 64, top).
				Overflow(Wrap).SetBits(128, []uint64{0, 9}), traitRepeatable,
		},
		"undone":            {NewBitField("k").Overflow(Fail).IncrBy("u53", 0, top).Set("u1", 52, 0), 0},
		"undone at the end": {NewBitField("k").Overflow(Fail).IncrBy("u53", 0, top).Set("u8", 48, 0), 0},
		"not yet undone": {
			NewBitField("k").Overflow(Fail).IncrBy("u53", 0, top).Set("u8", 56, 0), traitRepeatable,
		},
		"undone by many": {NewBitField("k").SetBits(0, []uint64{1}).Overflow(Fail).IncrBy("u53", 0, top), 0},
		"by a later bit": {NewBitField("k").Overflow(Fail).IncrBy("u53", 53, top).Set("u1", 100, 1), 0},
		"reset is clean": {NewBitField("k").IncrBy("u8", 0, 1).Reset("k"), traitRead | traitRepeatable},
	} {
		if got := tt.b.Command().traits; got != tt.want {
			t.Errorf("%s: traits %03b, want %03b", name, got, tt.want)
		}
	}
}

// A read must be repeatable. Otherwise it would not be retried after a lost
// answer.
func TestReadsAreRepeatable(t *testing.T) {
	for name, tr := range commandTraits() {
		if tr&traitRead != 0 && tr&traitRepeatable == 0 {
			t.Errorf("%s is a read but not repeatable", name)
		}
	}
}

// The body may be the argument on which it depends whether a command is
// repeatable.
func TestRawBodyDecidesOnARepetition(t *testing.T) {
	for _, tt := range []struct {
		cmd  Command
		want bool
	}{
		{RawCmd("SET", []byte("v"), "k"), true},
		{RawCmd("SET", []byte("NX"), "k"), true}, // a value
		{RawCmd("SET", []byte("NX"), "k", "v"), false},
		{RawCmd("SET", []byte("get"), "k", "v"), false},
		{RawCmd("SET", []byte("XX"), "k", "v"), true},
		{RawCmd("EXPIRE", []byte("60"), "k"), true},
		{RawCmd("EXPIRE", []byte("0"), "k"), false},
		{RawCmd("BITOP", []byte("sum"), "XOR", "sum", "k"), false},
		{RawCmd("BITOP", []byte("l"), "XOR", "sum", "k"), true},
		{RawCmd("SETRANGE", make([]byte, 1<<20), "k", "0"), true},
	} {
		if got := tt.cmd.traits&traitRepeatable != 0; got != tt.want {
			t.Errorf("%s %s: repeatable is %v, want %v", tt.cmd, (*tt.cmd.raw).v.body[:1], got, tt.want)
		}
	}
}

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
