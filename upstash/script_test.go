package upstash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// script41 is "return 41", with the line of flags and without.
const (
	script41 = keyLocking + "return 41"
	noScript = `{"error":"NOSCRIPT No matching script. Please use EVAL."}`
	badFlags = `{"error":"ERR Unexpected flag in script shebang: allow-key-locking"}`
	badHash  = `{"error":"ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'"}`
)

// forms names the form of the script in each request: EVAL or EVALSHA, with "+"
// if the line of flags is in it, or in the text of the SHA-1.
func (f *fakeTransport) forms(s *Script) string {
	s.once.Do(s.encode)
	var out []string
	for _, r := range f.requests {
		body := string(r.Body)
		for form := range scriptForm(len(s.heads)) {
			if n := strings.Count(body, string(s.heads[form])+","); n > 0 {
				name, _, _ := strings.Cut(string(s.heads[form][2:]), `"`)
				if form&withFlags != 0 {
					name += "+"
				}
				if strings.HasPrefix(body, "[[") {
					name += fmt.Sprint(" x", n)
				}
				out = append(out, name)
			}
		}
	}
	return strings.Join(out, ", ")
}

// wantForms checks in which forms the script was sent.
func (f *fakeTransport) wantForms(t *testing.T, s *Script, want string) {
	t.Helper()
	if got := f.forms(s); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// sumOf is the SHA-1 by which a script is sent.
func sumOf(s *Script) string {
	s.once.Do(s.encode)
	_, sum := s.sent(shortForm)
	return sum
}

// ran, and what a server says of a script whose form it refuses.
var (
	ran     = answer{body: `{"result":41}`}
	forgot  = answer{status: 400, body: noScript}
	noFlags = answer{status: 400, body: badFlags}
)

func TestScriptForms(t *testing.T) {
	unknown := answer{status: 400, body: `{"error":"ERR unknown command 'EVALSHA'"}`}
	forbidden := answer{status: 400, body: `{"error":"NOPERM this user has no permissions to run the 'evalsha' command"}`}
	for _, tt := range []struct {
		name   string
		script []answer
		calls  int
		want   string
	}{
		{"the text once", []answer{ran}, 3, "EVAL+, EVALSHA+, EVALSHA+"},
		{
			"the server forgot",
			[]answer{ran, ran, forgot, ran},
			4,
			"EVAL+, EVALSHA+, EVALSHA+, EVAL+, EVALSHA+",
		},
		{
			"the server forgot more often than it is asked if it never kept one",
			[]answer{ran, ran, forgot, ran, forgot, ran, forgot, ran},
			6,
			"EVAL+, EVALSHA+, EVALSHA+, EVAL+, EVALSHA+, EVAL+, EVALSHA+, EVAL+, EVALSHA+",
		},
		{"the flags are unknown", []answer{noFlags, ran}, 3, "EVAL+, EVAL, EVALSHA, EVALSHA"},
		{"an older server, in a status of 200", []answer{{body: badHash}, ran}, 2, "EVAL+, EVAL, EVALSHA"},
		{
			"another server took over",
			[]answer{ran, forgot, noFlags, ran},
			3,
			"EVAL+, EVALSHA+, EVAL+, EVAL, EVALSHA",
		},
		{"EVALSHA is unknown", []answer{ran, unknown, ran}, 4, "EVAL+, EVALSHA+, EVAL+, EVAL+, EVAL+"},
		{"EVALSHA is not allowed", []answer{ran, forbidden, ran}, 3, "EVAL+, EVALSHA+, EVAL+, EVAL+"},
		{
			"no text is kept",
			[]answer{ran, forgot, ran, forgot, ran, forgot, ran},
			6,
			"EVAL+, EVALSHA+, EVAL+, EVALSHA+, EVAL+, EVALSHA+, EVAL+, EVAL+, EVAL+",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, f := newFake(t, tt.script)
			s := NewScript(script41)
			for range tt.calls {
				reply, err := c.Do(t.Context(), s.Cmd([]string{"k"}, "a"))
				if err != nil {
					t.Fatal(err)
				}
				if n, err := reply.Int64(); n != 41 || err != nil || reply.MaybeRepeated() {
					t.Errorf("%d, %v, repeated: %v; want 41, false", n, err, reply.MaybeRepeated())
				}
			}
			f.wantForms(t, s, tt.want)
		})
	}
}

// What a command itself carried decides that it is sent again, and not what the
// client has learned since from another.
func TestScriptFormLearnedMeanwhile(t *testing.T) {
	s := NewScript(script41)
	c, f := newFake(t, []answer{noFlags, noFlags, ran})
	call := func(ctx context.Context) {
		if _, err := c.Do(ctx, s.Cmd(nil)); err != nil {
			t.Error(err)
		}
	}
	f.script[0].hook = call // the other is refused, and runs, while the first waits
	call(t.Context())
	f.wantForms(t, s, "EVAL+, EVAL+, EVAL, EVAL")
}

// A region has its own texts, so that the two forms of a command are learned one
// by one.
func TestReadOnlyScript(t *testing.T) {
	c, f := newFake(t, []answer{ran, {status: 500}, ran}, WithReadOnly())
	s := NewScript(script41)
	for range 2 {
		if _, err := c.Do(t.Context(), s.ReadOnlyCmd([]string{"k"})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Do(t.Context(), s.Cmd([]string{"k"})); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Cmd of a read-only client: %v, want ErrReadOnly", err)
	}
	c.readOnly = false
	if _, err := c.Do(t.Context(), s.Cmd([]string{"k"})); err != nil {
		t.Fatal(err)
	}
	f.wantForms(t, s, "EVAL_RO+, EVALSHA_RO+, EVALSHA_RO+, EVAL+")
}

// An attempt of unknown outcome is not forgotten when the next one is refused
// for its form, and neither when the one after that is refused for good.
func TestScriptFormKeepsTheEarlierAttempt(t *testing.T) {
	lost := answer{err: dropped}
	s := NewScript(script41)
	cmd := s.Cmd([]string{"k"}).Repeatable(true)
	c, f := newFake(t, []answer{lost, noFlags, ran})
	reply, err := c.Do(t.Context(), cmd)
	if err != nil || !reply.MaybeRepeated() {
		t.Errorf("%v, repeated: %v, want true", err, reply.MaybeRepeated())
	}
	f.script = append(f.script, lost, forgot, answer{status: 400, body: `{"error":"NOPERM not you"}`})
	if _, err := c.Do(t.Context(), cmd.AllOrNothing()); err == nil || SafeToRetry(err) {
		t.Errorf("%v, which is not safe to retry", err)
	}
	f.wantForms(t, s, "EVAL+, EVAL+, EVAL, EVALSHA, EVALSHA, EVAL")
	// Without an earlier attempt, nothing has run.
	c, _ = newFake(t, []answer{noFlags, {status: 429, body: `{"error":"later"}`}}, WithRetry(0))
	if _, err := c.Do(t.Context(), cmd); err == nil || !SafeToRetry(err) {
		t.Errorf("%v, which is safe to retry", err)
	}
}

// No form is left to try of a script that was sent without the first line: it has
// none, or the server refuses it.
func TestScriptErrorWithoutTheFirstLine(t *testing.T) {
	odd := answer{status: 400, body: `{"error":"ERR my shebang is odd"}`}
	for text, script := range map[string][]answer{"return 41": {odd}, script41: {noFlags, odd}} {
		c, f := newFake(t, append(script, ran))
		if _, err := c.Do(t.Context(), NewScript(text).Cmd(nil).AllOrNothing()); err == nil || f.count() != len(script) {
			t.Errorf("%q: %v after %d requests, want %d", text, err, f.count(), len(script))
		}
	}
}

func TestPipelineOfScripts(t *testing.T) {
	s := NewScript(script41)
	batch := []Command{Cmd("GET", "x"), s.Cmd([]string{"a"}), s.Cmd([]string{"b"})}
	c, f := newFake(t, []answer{
		{body: `[{"result":"v"},` + badFlags + "," + badFlags + "]"},
		{body: "[" + ran.body + "," + ran.body + "]"},
		{body: `[{"result":"v"},` + ran.body + "," + noScript + "]"},
		{status: 500},
	})
	replies, err := c.Pipeline(t.Context(), batch...)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"v"`, "41", "41"} {
		if got := string(replies[i].raw()); got != want {
			t.Errorf("answer %d is %s, want %s", i, got, want)
		}
	}
	// The answers of the first request hold, even if those of the repetition do
	// not come.
	replies, err = c.Pipeline(t.Context(), batch...)
	if err != nil || replies[0].Err() != nil || replies[1].Err() != nil {
		t.Fatal(replies, err)
	}
	var server *Error
	if err := replies[2].Err(); !errors.As(err, &server) || server.StatusCode != 500 || SafeToRetry(err) {
		t.Errorf("%v, want a 500 that may have run", err)
	}
	f.wantForms(t, s, "EVAL+ x2, EVAL x2, EVALSHA x2, EVAL x1")
}

// TestFormsInOrder: if another command follows a script, the script goes in the
// form that every server takes: refused, it would run after the other. So does one
// in a transaction, whose other commands would run without it.
func TestFormsInOrder(t *testing.T) {
	const transaction = "a transaction"
	s := NewScript(script41)
	one, both := []Command{s.Cmd([]string{"a"})}, answer{body: `[{"result":41},{"result":41}]`}
	with := func(second Command) []Command { return append(one[:1:1], second) }
	for _, tt := range []struct {
		name    string
		script  []answer
		batches [][]Command
		want    string
	}{
		{"a read follows", []answer{both}, [][]Command{with(Cmd("GET", "x"))}, "EVAL x1"},
		{"another script follows", []answer{both}, [][]Command{with(NewScript("return 42").Cmd([]string{"b"}))}, "EVAL x1"},
		{
			// If the first were refused and another client loaded the text meanwhile,
			// the second would run before it. With other keys the order does not show.
			"it follows itself, with its keys and with others",
			[]answer{ran, both, both},
			[][]Command{one, with(s.Cmd([]string{"a"}, "2")), with(s.Cmd([]string{"b"}, "2"))},
			"EVAL+, EVAL x1, EVALSHA+ x1, EVALSHA+ x2",
		},
		{
			transaction,
			[]answer{both, ran, both},
			[][]Command{with(Cmd("SET", "b", "c")), one, with(Cmd("SET", "b", "c"))},
			"EVAL x1, EVAL+, EVAL+ x1",
		},
		{
			// On a server with other words than NOSCRIPT's own it would never run again.
			"a refusal that may be the script's own",
			[]answer{ran, {status: 400, body: `{"error":"NOSCRIPT gone"}`}, ran},
			[][]Command{one, one, one},
			"EVAL+, EVALSHA+, EVAL+",
		},
	} {
		c, f := newFake(t, tt.script)
		for i, cmds := range tt.batches {
			_, err := sendAll(t.Context(), c, cmds, tt.name == transaction)
			if refused := tt.script[min(i, len(tt.script)-1)].status != 0; refused != (err != nil) {
				t.Errorf("%s: batch %d: %v", tt.name, i, err)
			}
		}
		if got := f.forms(s); got != tt.want {
			t.Errorf("%s: sent %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestScriptCommand(t *testing.T) {
	if err := NewScript("\xff").Cmd(nil).err; !errors.Is(err, ErrArgument) {
		t.Errorf("a text that is not UTF-8: %v, want ErrArgument", err)
	}
	if err := NewScript("").Cmd([]string{"k"}, "\xff").err; !errors.Is(err, ErrArgument) ||
		!strings.Contains(err.Error(), "argument 4 ") {
		t.Errorf("an argument that is not UTF-8: %v, want argument 4 named", err)
	}
	cmd := NewScript("return 'é'").Cmd([]string{"k"}, "a")
	if want := Cmd("EVAL", "return 'é'", "1", "k", "a"); cmd.Size() != want.Size() ||
		string(cmd.script.as(withFlags, cmd.body())) != string(want.body()) {
		t.Errorf("%s of %d bytes, want %s",
			cmd.script.as(withFlags, cmd.body()), cmd.Size(), want.body())
	}
}

// A client whose scripts are ever new does not keep them all.
func TestScriptsAreForgotten(t *testing.T) {
	c, _ := newFake(t, always(`{"result":41}`))
	for i := range maxStored + 10 {
		if _, err := c.Do(t.Context(), NewScript(fmt.Sprint("return ", i)).Cmd(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.scripts.stored); n != maxStored {
		t.Errorf("%d texts are remembered, want %d", n, maxStored)
	}
}

// TestScriptWithoutPermission: if the token may not run scripts, the script did
// not run. If it may not run what the script calls, a part of the script ran.
func TestScriptWithoutPermission(t *testing.T) {
	for message, safe := range map[string]bool{
		"NOPERM this user has no permissions to run the 'eval' command or its subcommand": true,
		"NOPERM User app has no permissions to run the 'eval' command":                    true,
		"NOPERM this user has no permissions to run the 'evalsha' command":                false,
		"NOPERM this user has no permissions to run the 'eval":                            false,
		"NOPERM_user has no permissions to run the 'eval' command":                        false,
		"NOPERM User app x has no permissions to run the 'eval' command":                  false,
		"'EVAL'": false,
		"NOPERM this user has no permissions to run the 'eval|x' command":                    false,
		"NOPERM this user has no permissions to run the 'set' command or its subcommand":     false,
		"NOPERM ACL failure in script: User app has no permissions to run the 'set' command": false,
		"NOPERM this user has no permissions to access one of the keys used as arguments":    false,
		"ERR The user executing the script can't run this command or subcommand":             false,
		"ERR Error running script: it says 'eval'":                                           false,
		"CROSSSLOT Keys in request don't hash to the same slot":                              true,
		"CROSSSLOT Keys in request don't hash to the same slot script: 0, on @user_script:1": false,
	} {
		body := fmt.Sprintf(`{"error":%q}`, message)
		c, _ := newFake(t, []answer{{status: 400, body: body}})
		_, err := c.Do(t.Context(), Cmd("EVAL", "return 1", "0"))
		if err == nil || SafeToRetry(err) != safe || strings.Contains(err.Error(), "may have run") == safe {
			t.Errorf("EVAL: SafeToRetry(%v) = %v, want %v", err, SafeToRetry(err), safe)
		}
		c, _ = newFake(t, []answer{{body: `[` + body + `,{"result":1}]`}})
		replies, err := c.Pipeline(t.Context(), Cmd("EVAL", "return 1", "0"), Cmd("INCR", "k"))
		if err != nil || SafeToRetry(replies[0].Err()) != safe {
			t.Errorf("EVAL in a pipeline: SafeToRetry(%v), %v is not %v", replies, err, safe)
		}
		c, _ = newFake(t, []answer{{err: dropped}, {status: 400, body: body}})
		_, err = c.Do(t.Context(), NewScript("return 1").Cmd(nil).Repeatable(true))
		if err == nil || SafeToRetry(err) {
			t.Errorf("after an attempt that may have run: SafeToRetry(%v) = true, want false", err)
		}
	}
}

// TestScriptOverSlots: a cluster that refuses the keys of an EVALSHA has not refused
// the EVALSHA.
func TestScriptOverSlots(t *testing.T) {
	refused := answer{status: 400, body: `{"error":"CROSSSLOT Keys in request don't hash to the same slot"}`}
	c, f := newFake(t, []answer{ran, refused, ran})
	script := NewScript(script41)
	for i, fails := range []bool{false, true, false} {
		_, err := c.Do(t.Context(), script.Cmd([]string{"k", "l"}).Repeatable(true))
		if (err != nil) != fails || fails && !SafeToRetry(err) || f.count() != i+1 {
			t.Errorf("call %d: %v after %d requests, want an error of the second alone, safe to retry", i, err, f.count())
		}
	}
}

// TestScriptsOwnWords: what a script answers is not the server's refusal. It is
// sent again only after Redis's own words, which prove that it did not run, or if
// that is harmless.
func TestScriptsOwnWords(t *testing.T) {
	const plain, repeatable, allOrNothing = "plain", "repeatable", "all or nothing"
	const missing = "NOSCRIPT No matching script. Please use EVAL."
	sum := sumOf(NewScript(script41))
	for _, tt := range []struct {
		words  string
		stored bool // it is sent as EVALSHA
		own    bool // Redis's own words
	}{
		{"ERR even, as EVALSHA says", true, false},
		{"ERR unknown command 'EVALSHA' of mine", true, false},
		{"NOSCRIPT gone", true, false},
		{"NOPERM my list has no permissions to run the 'evalsha' command", true, false},
		{"ERR unknown command 'EVALSHA', with args beginning with: 'k' '0'", true, false},
		{"ERR unknown command 'EVALSHA', with args beginning with: '{sum}'  script: {sum}, on @user_script:1.", true, false},
		{"ERR Error running script (call to f_{sum}): @user_script:1: ERR unknown command 'EVALSHA'", true, false},
		{"ERR unknown command 'EVALSHA' script: {sum}, on @user_script:1.", true, false},
		{"NOPERM this user has no permissions to run the 'eval' command, says EVALSHA", true, false},
		{"ERR my shebang is odd: {sum}, on @user_script:1.", false, false},
		{"ERR Error running script (call to f_{sum}): @user_script:1: shebang", false, false},
		{"ERR near '#'", false, false},
		{missing, true, true},
		{"ERR unknown command 'EVALSHA', with args beginning with: '{sum}' '0' ", true, true},
		{"ERR unknown command `EVALSHA`, with args beginning with: `{sum}`, `0`, ", true, true},
		{"ERR unknown command `evalsha`", true, true},
		{"NOPERM User app has no permissions to run the 'evalsha' command", true, true},
		{"ERR Unexpected flag in script shebang: allow-key-locking", false, true},
		{"ERR Error compiling script (new function): user_script:1: unexpected symbol near '#' ", false, true},
		{"ERR Invalid script shebang", false, false}, // Redis never says it of a whole line
	} {
		tt.words = strings.ReplaceAll(tt.words, "{sum}", sum)
		for _, kind := range []string{plain, repeatable, allOrNothing} {
			script := []answer{ran, {status: 400, body: fmt.Sprintf(`{"error":%q}`, tt.words)}, ran}
			cmd := NewScript(script41).Cmd([]string{"k"})
			before := 1
			if !tt.stored {
				script, before = script[1:], 0
			}
			c, f := newFake(t, script)
			for range before {
				if _, err := c.Do(t.Context(), cmd); err != nil {
					t.Fatal(err)
				}
			}
			switch kind {
			case repeatable:
				cmd = cmd.Repeatable(true)
			case allOrNothing:
				cmd = cmd.AllOrNothing()
			}
			reply, err := c.Do(t.Context(), cmd)
			if !tt.own && kind == plain {
				if err == nil || SafeToRetry(err) || f.count() != before+1 {
					t.Errorf("%s, %s: %v, safe %v, %d requests, want an error after one",
						tt.words, kind, err, SafeToRetry(err), f.count()-before)
				}
				continue
			}
			marked := !tt.own && kind == repeatable
			if err != nil || f.count() != before+2 || reply.MaybeRepeated() != marked {
				t.Errorf("%s, %s: %v, %d requests, MaybeRepeated %v; want 2 and %v",
					tt.words, kind, err, f.count()-before, reply.MaybeRepeated(), marked)
			}
		}
	}
	// An EVAL cannot be refused for want of its text.
	for _, cmd := range []Command{NewScript(script41).Cmd(nil), Cmd("EVAL", "return 41", "0")} {
		c, f := newFake(t, []answer{{status: 400, body: fmt.Sprintf(`{"error":%q}`, missing)}})
		if _, err := c.Do(t.Context(), cmd); err == nil || SafeToRetry(err) || f.count() != 1 {
			t.Errorf("EVAL: %v, safe %v, %d requests", err, SafeToRetry(err), f.count())
		}
	}
}

// TestAnArgumentHidesNoRefusal: a key may be a word of the server's refusal.
func TestAnArgumentHidesNoRefusal(t *testing.T) {
	for _, refusal := range []string{
		"NOSCRIPT No matching script. Please use EVAL.", "ERR unknown command 'EVALSHA', with args beginning with: '{sum}'",
		"ERR unknown command `evalsha`", "NOPERM this user has no permissions to run the 'evalsha' command",
		"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand",
		"NOPERM User app has no permissions to run the 'evalsha' command",
		"ERR Unexpected flag in script shebang: allow-key-locking",
		"ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'",
	} {
		for _, key := range strings.FieldsFunc(refusal, func(r rune) bool { return strings.ContainsRune(" .,'`:()", r) }) {
			script := NewScript(keyLocking + "return 1")
			words := strings.ReplaceAll(refusal, "{sum}", sumOf(script))
			answers := []answer{
				{body: `{"result":1}`}, {status: 400, body: fmt.Sprintf(`{"error":%q}`, words)}, {body: `{"result":2}`},
			}
			if strings.Contains(refusal, "#") || strings.Contains(refusal, "shebang") {
				answers = answers[1:] // of the text itself
			}
			c, _ := newFake(t, answers)
			for range len(answers) - 2 {
				if _, err := c.Do(t.Context(), script.Cmd(nil)); err != nil {
					t.Fatal(err)
				}
			}
			r, err := c.Do(t.Context(), script.Cmd([]string{key}))
			if n, _ := r.Int64(); err != nil || n != 2 || r.MaybeRepeated() {
				t.Errorf("%s, of the key %s: %d, %v, repeated: %t", refusal, key, n, err, r.MaybeRepeated())
			}
		}
	}
	// A word in the place of one that is fixed may be an argument.
	c, _ := newFake(t, []answer{{status: 400, body: `{"error":"NOPERM User ` + secretKey + ` has no permissions to run the 'eval' command"}`}})
	_, err := c.Do(t.Context(), NewScript("return 1").Cmd([]string{secretKey}))
	if !SafeToRetry(err) || strings.Contains(err.Error(), secretKey) {
		t.Errorf("got %v, want one without the key, and safe to retry", err)
	}
}
