package upstash

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
)

// TestAnArgumentHidesNoKind: the sentinel is found before the message is
// redacted, even if an argument equals its words.
func TestAnArgumentHidesNoKind(t *testing.T) {
	const daily = "ERR max daily request limit exceeded. Limit: 10000, Usage: 10000"
	const all = "ERR max requests limit exceeded. Limit: 500000, Usage: 500007"
	for _, tt := range []struct {
		status  int
		message string
		want    error
	}{
		{429, all, ErrQuota},
		{200, daily, ErrQuota},
		{413, "ERR max request size exceeded", ErrRequestTooLarge},
		{200, "ERR max single record size exceeded", ErrRecordTooLarge},
		{400, "ERR DB capacity quota exceeded", ErrOutOfMemory},
	} {
		for key := range strings.FieldsSeq("limit daily max quota record requests request DB size exceeded") {
			body := fmt.Sprintf(`{"error":%q}`, tt.message)
			c, f := newFake(t, []answer{{status: tt.status, body: body}})
			_, err := c.Do(t.Context(), Cmd("GET", key))
			if !errors.Is(err, tt.want) || f.count() != 1 {
				t.Errorf("GET %s: %v after %d attempts, want %v", key, err, f.count(), tt.want)
			}
			c, _ = newFake(t, []answer{{body: "[" + body + "]"}})
			replies, err := c.Pipeline(t.Context(), Cmd("GET", key))
			if err != nil || tt.status == 200 && !errors.Is(replies[0].Err(), tt.want) {
				t.Errorf("GET %s in a batch: %v, %v, want %v", key, replies, err, tt.want)
			}
		}
	}
	// Redis' quotation of the command does not count as its own words.
	c, _ := newFake(t, []answer{{status: 400, body: `{"error":"ERR unknown command 'X', with args` +
		` beginning with: 'max requests limit exceeded'"}`}})
	if _, err := c.Do(t.Context(), Cmd("X", "max requests limit exceeded")); errors.Is(err, ErrQuota) {
		t.Errorf("an argument makes a quota's error: %v", err)
	}
}

// TestServerWordsAreEscaped: the words of a server or a network cannot forge a
// line of a log or control a terminal.
func TestServerWordsAreEscaped(t *testing.T) {
	const raw = "ERR a\r\nlevel=INFO \x1b]0;title\x07\x1b[2J\u202egnp\u2066\u009b31m\u2028\u200f\x7f\x00 é世"
	const want = `ERR a\r\nlevel=INFO \x1b]0;title\a\x1b[2J\u202egnp\u2066\u009b31m\u2028\u200f\x7f\x00 é世`
	quoted := strings.NewReplacer("\r", `\r`, "\n", `\n`, "\x1b", `\u001b`, "\a", `\u0007`, "\x00", `\u0000`,
		"\x7f", `\u007f`).Replace(raw)
	for name, a := range map[string]answer{
		"an error object": {status: 400, body: `{"error":"` + quoted + `"}`},
		"RESP2":           {body: "-ERR a" + strings.ReplaceAll(raw[5:], "\r\n", "\n") + "\r\n"},
		"a network":       {err: errors.New(raw)},
	} {
		c, _ := newFake(t, []answer{a})
		_, err := c.Do(t.Context(), Cmd("INCR", "k").Binary())
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprint(errors.Unwrap(err))} {
			if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s: byte %d is raw: %q", name, i, text)
			}
		}
		if name != "RESP2" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s\nwant %s", name, err, want)
		}
	}
}

// None of this package's own words is taken for an argument. In the server's
// words every argument is redacted, at any place of the command.
func TestWhatIsRedacted(t *testing.T) {
	for _, key := range []string{"a", "proxy", "or", "bytes"} {
		c, _ := newFake(t, []answer{{status: 502, body: "<html>"}}, WithRetry(0))
		_, err := c.Do(t.Context(), Cmd("GET", key))
		if err == nil || !strings.Contains(err.Error(), noMessage(6)) {
			t.Errorf("GET %s: own words are redacted: %v", key, err)
		}
	}
	args := make([]string, 100_000)
	for i := range args {
		args[i] = fmt.Sprintf("item-%06d", i)
	}
	for _, i := range []int{0, 63, 64, 70, 99_999} {
		body := `{"error":"ERR bad value '` + args[i] + `' here"}`
		c, _ := newFake(t, []answer{{status: 400, body: body}})
		_, err := c.Do(t.Context(), Cmd("MSET", args...))
		if err == nil || !strings.Contains(err.Error(), "bad value '…' here") {
			t.Errorf("argument %d: %v", i+1, err)
		}
	}
}
