package upstash

import (
	"encoding/json" // another reader of what the client writes
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCmdIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOf(rapid.String()).Draw(t, "args")
		cmd := Cmd("set", args...)
		if slices.ContainsFunc(args, func(a string) bool { return !utf8.ValidString(a) }) {
			if !errors.Is(cmd.err, ErrArgument) {
				t.Fatalf("invalid UTF-8 was accepted: %v", cmd.err)
			}
			return
		}
		var got []string
		if err := json.Unmarshal(cmd.body(), &got); err != nil {
			t.Fatalf("%v in %q", err, cmd.body())
		}
		if !slices.Equal(got, append([]string{"SET"}, args...)) {
			t.Fatalf("%q came back as %q", args, got)
		}
		if cmd.Name() != "SET" || cmd.Size() != len(cmd.body()) || cmd.err != nil {
			t.Fatalf("name %s, size %d, error %v", cmd.Name(), cmd.Size(), cmd.err)
		}
	})
}

func TestCmdEscapes(t *testing.T) {
	for arg, want := range map[string]string{
		"":               `""`,
		"4294967295":     `"4294967295"`,
		`a"b\c`:          `"a\"b\\c"`,
		"\n\r\t\x00\x1f": `"\n\u000d\u0009\u0000\u001f"`,
		"<&>\u2028\x7f":  "\"<&>\u2028\x7f\"",
		"🙂\ufffd":        "\"🙂\ufffd\"",
	} {
		if got := string(Cmd("GET", arg).body()); got != `["GET",`+want+`]` {
			t.Errorf("%q became %s", arg, got)
		}
	}
}

func TestCmdRefuses(t *testing.T) {
	c, f := newFake(t, always(`{"result":1}`))
	for name, cmd := range map[string]Command{
		"no name":         Cmd(""),
		"space in name":   Cmd("GET key"),
		"quote in name":   Cmd(`GET"`),
		"long name":       Cmd(strings.Repeat("GET", 5000)),
		"long type":       NewBitField("k").Get(strings.Repeat("u8 bloom: ", 1000), 0).Command(),
		"name not ASCII":  Cmd("GÉT"),
		"invalid UTF-8":   Cmd("GET", "k", "\xff"),
		"cut UTF-8":       Cmd("GET", "é"[:1]),
		"surrogate":       Cmd("GET", "\xed\xa0\x80"),
		"zero Command":    {},
		"invalid in many": Cmd("MSET", "a", "b", "c", strings.Repeat("x", 1000)+"\x80"),
	} {
		_, err := c.Do(t.Context(), cmd)
		if !errors.Is(err, ErrArgument) || !SafeToRetry(err) {
			t.Errorf("%s: got %v, want ErrArgument", name, err)
		}
		if len(fmt.Sprint(err)) > 200 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
		if _, err := c.Pipeline(t.Context(), Cmd("PING"), cmd); !errors.Is(err, ErrArgument) {
			t.Errorf("%s in a pipeline: got %v, want ErrArgument", name, err)
		}
	}
	if n := f.count(); n != 0 {
		t.Errorf("%d requests were sent, want 0", n)
	}
}

func TestRawCmdLeavesItsArgumentsAlone(t *testing.T) {
	all := []string{"k", "0", "next"}
	RawCmd("SETRANGE", []byte("x"), all[:2]...)
	if all[2] != "next" {
		t.Errorf("what stands behind the arguments is %q now", all[2])
	}
}

func TestSubcommandNames(t *testing.T) {
	for _, name := range []string{"get", "JSON.GET", "EVALSHA_RO", "FT.SEARCH", "x-y"} {
		if cmd := Cmd(name); cmd.err != nil || cmd.Name() != strings.ToUpper(name) {
			t.Errorf("Cmd(%s): name %v, %v, want it in upper case", name, cmd.Name(), cmd.err)
		}
	}
}

func TestRepeatableReturnsACopy(t *testing.T) {
	incr := Cmd("INCR", "k")
	marked := incr.Repeatable(true)
	if incr.traits&traitRepeatable != 0 || marked.traits&traitRepeatable == 0 {
		t.Errorf("traits %b and %b, want only the second repeatable", incr.traits, marked.traits)
	}
	if get := Cmd("GET", "k").Repeatable(false); get.traits&traitRepeatable != 0 || get.traits&traitRead == 0 {
		t.Errorf("a read marked as not repeatable: traits %b", get.traits)
	}
}

func TestOverflowNames(t *testing.T) {
	for want, mode := range map[string]Overflow{"WRAP": Wrap, "SAT": Sat, "FAIL": Fail, "Overflow(9)": 9} {
		if got := fmt.Sprint(mode); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
