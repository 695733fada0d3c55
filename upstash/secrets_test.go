package upstash

import (
	"bytes"
	"encoding/json" // what users marshal our types with
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const (
	secretKey  = "key-of-a-user"
	secretItem = "item@example.test"
)

// TestNothingSecretIsPrinted prints every type that programs log, in every
// way.
func TestNothingSecretIsPrinted(t *testing.T) {
	c, f := newFake(t, []answer{
		{body: `{"result":"` + secretItem + `"}`},
		{status: 400, body: `{"error":"ERR '` + secretKey + `', ` + secretItem + `, ` + testToken + `"}`},
		{body: secretItem},
	}, WithRetry(0))
	cmd := Cmd("SET", secretKey, secretItem)
	reply, err := c.Do(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	_, serverErr := c.Do(t.Context(), cmd)
	_, callErr := c.Do(t.Context(), cmd)
	_, typeErr := reply.Int64()
	_, argumentErr := c.Do(t.Context(), Cmd("SET", secretKey, secretItem+"\xff"))
	_, offsetErr := c.BitField(t.Context(), NewBitField(secretKey).Get("u1", 1<<40))
	var server *Error
	var call *CallError
	if !errors.As(serverErr, &server) || !errors.As(callErr, &call) {
		t.Fatalf("got %v and %v", serverErr, callErr)
	}
	bit := NewBitField(secretKey).Get("u1", 0)
	for name, v := range map[string]any{
		"Client": c, "Command": cmd, "*Command": &cmd, "Commands": []Command{cmd}, "BitField": bit,
		"BitField.Command": bit.Command(), "Reply": reply, "Replies": []Reply{reply}, "*Reply": &reply,
		"*Error": serverErr, "Error": *server, "*CallError": callErr, "CallError": *call, "type error": typeErr,
		"argument error": argumentErr, "offset error": offsetErr,
		"Request": f.requests[0], "*Request": &f.requests[0], "Header": f.requests[0].Header,
		"failed reply": failedReply("SET", serverErr),
	} {
		for _, text := range printed(t, v) {
			for _, secret := range []string{testToken, secretKey, secretItem} {
				if shows(text, secret) {
					t.Errorf("%s shows %s: %s", name, secret, text)
				}
			}
		}
	}
	if s := fmt.Sprint(c); !strings.Contains(s, testURL) {
		t.Errorf("%s does not show the URL", s)
	}
	if s := fmt.Sprintf("%v %+v", cmd, bit); !strings.Contains(s, "SET") || !strings.Contains(s, "BITFIELD") {
		t.Errorf("%s does not show the commands' names", s)
	}
}

// fmt opens the fields of any struct, and calls no method of an unexported one.
func TestNothingSecretIsPrintedInAField(t *testing.T) {
	c, _ := newFake(t, []answer{
		{body: `{"result":"` + secretItem + `"}`},
		{body: "*1\r\n$17\r\n" + secretItem + "\r\n"},
		{body: `[{"result":["` + secretItem + `"]}]`},
	})
	text, err1 := c.Do(t.Context(), Cmd("GET", secretKey))
	list, err2 := c.Do(t.Context(), Cmd("SMEMBERS", secretKey).Binary())
	batch, err3 := c.Pipeline(t.Context(), Cmd("SMEMBERS", secretKey))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	elements, err := batch[0].Array()
	if s, _ := elements[0].Text(); err != nil || s != secretItem {
		t.Fatalf("got %q, %v, want %q", s, err, secretItem)
	}
	bits := NewBitField(secretKey).Get("u1", 0)
	for name, v := range map[string]any{
		"Command":  struct{ cmd Command }{Cmd("SET", secretKey, secretItem)},
		"commands": struct{ cmds []Command }{[]Command{bits.Command()}},
		"BitField": struct{ b *BitField }{bits}, "BitField itself": struct{ b BitField }{*bits},
		"Client": struct{ c *Client }{c},
		"text":   struct{ r Reply }{text}, "list": struct{ r Reply }{list},
		"batch": struct{ r []Reply }{batch}, "elements": struct{ r []Reply }{elements},
	} {
		for _, shown := range printed(t, v) {
			for _, secret := range []string{testToken, secretKey, secretItem} {
				if shows(shown, secret) {
					t.Errorf("%s shows %s: %s", name, secret, shown)
				}
			}
		}
	}
}

// shows reports whether text has the secret in it, plain, as numbers or in hex.
func shows(text, secret string) bool {
	numbers := strings.Trim(fmt.Sprint([]byte(secret)), "[]")
	return strings.Contains(text, secret) || strings.Contains(text, numbers) ||
		strings.Contains(text, fmt.Sprintf("%x", secret))
}

// printed returns v in every form of a log.
func printed(t *testing.T, v any) []string {
	t.Helper()
	var out []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out = append(out, fmt.Sprintf(verb, v))
	}
	var buf bytes.Buffer
	slog.New(slog.NewTextHandler(&buf, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&buf, nil)).Info("x", "v", v)
	b, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%T: %v", v, err)
	}
	return append(out, buf.String(), string(b))
}
