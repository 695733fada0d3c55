package upstash

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestPipeline(t *testing.T) {
	c, f := newFake(t, always(`[{"result":"OK"},{"error":"WRONGTYPE no '`+secretKey+`'"},{"result":[1,null]}]`))
	bits := NewBitField("b").Set("u1", 0, 1).Get("u1", 1)
	replies, err := c.Pipeline(t.Context(), Cmd("SET", "a", "1"), Cmd("INCR", secretKey), bits.Command())
	if err != nil || len(replies) != 3 {
		t.Fatalf("%d replies, want 3: %v", len(replies), err)
	}
	const want = `[["SET","a","1"],["INCR","key-of-a-user"],["BITFIELD","b","SET","u1","0",1,"GET","u1","1"]]`
	if r := f.requests[0]; r.URL != testURL+"/pipeline" || string(r.Body) != want {
		t.Errorf("sent %s to %s", r.Body, r.URL)
	}
	if s, err := replies[0].Text(); s != "OK" || err != nil {
		t.Errorf("SET = %q, %v, want OK", s, err)
	}
	var server *Error
	if !errors.As(replies[1].Err(), &server) || server.Command != "INCR" || server.Code() != "WRONGTYPE" ||
		strings.Contains(server.Message, secretKey) {
		t.Errorf("INCR: %v, want WRONGTYPE without the key", replies[1].Err())
	}
	if ints, err := replies[2].Ints(nil); len(ints) != 2 || ints[1].Valid || err != nil {
		t.Errorf("BITFIELD = %v, %v, want two, the second null", ints, err)
	}
}

func TestMultiExec(t *testing.T) {
	c, f := newFake(t, always(`[{"result":1}]`))
	_, err := c.MultiExec(t.Context(), Cmd("INCR", "a"))
	if err != nil || f.requests[0].URL != testURL+"/multi-exec" {
		t.Errorf("%v, sent to %s", err, f.requests[0].URL)
	}
	c, _ = newFake(t, []answer{{status: 400, body: `{"error":"EXECABORT discarded"}`}})
	_, err = c.MultiExec(t.Context(), Cmd("INCR", "a"), Cmd("NOPE"))
	var server *Error
	if !errors.As(err, &server) || server.Command != "MULTI-EXEC" ||
		server.Code() != "EXECABORT" || !SafeToRetry(err) {
		t.Errorf("discarded: %v, want EXECABORT of MULTI-EXEC, safe to retry", err)
	}
}

// The other commands of the batch have run, and repeating the batch would run
// them twice. The caller therefore decides about the refused one.
func TestALimitForOneCommandOfABatchIsNotTriedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		message string
		kind    error
	}{
		"quota": {"ERR max requests limit exceeded. Limit: 500000, Usage: 500000", ErrQuota},
		"rate":  {"ERR too many requests", nil}, // not a known text of the service
	} {
		body := `[{"result":1},{"error":"` + tt.message + `"},{"result":"v"}]`
		for method, send := range map[string]func(*Client, context.Context, ...Command) ([]Reply, error){
			"Pipeline": (*Client).Pipeline, "MultiExec": (*Client).MultiExec,
		} {
			// Each command alone could be repeated.
			c, f := newFake(t, always(body))
			replies, err := send(c, t.Context(), Cmd("SADD", "s", "m"), Cmd("SET", "k", "v"), Cmd("GET", "k"))
			if err != nil || f.count() != 1 {
				t.Fatalf("%s, %s: %v after %d attempts, want one", method, name, err, f.count())
			}
			refused := replies[1].Err()
			if !SafeToRetry(refused) || tt.kind != nil && !errors.Is(refused, tt.kind) {
				t.Errorf("%s, %s: got %v, SafeToRetry %v", method, name, refused, SafeToRetry(refused))
			}
			if n, err := replies[0].Int64(); n != 1 || err != nil || replies[2].Err() != nil {
				t.Errorf("%s, %s: the others got %d, %v, %v", method, name, n, err, replies[2].Err())
			}
		}
	}
}

func TestBatchOfTheWrongShape(t *testing.T) {
	for _, body := range []string{
		`[]`, `[{"result":1}]`, `[{"result":1},{"result":1},{"result":1}]`, `{"result":[1,1]}`, `[1,1]`, `[{},{}]`,
		`[{"result":1},{"result":`, "",
	} {
		c, _ := newFake(t, always(body), WithRetry(0))
		replies, err := c.Pipeline(t.Context(), Cmd("GET", "a"), Cmd("GET", "b"))
		var call *CallError
		if !errors.Is(err, ErrBadResponse) || !errors.As(err, &call) || replies != nil {
			t.Errorf("%s: got %v, %v; want ErrBadResponse", body, replies, err)
		}
	}
}

// If one command must not be repeated, the whole batch is not.
func TestBatchIsAsSafeAsItsWorstCommand(t *testing.T) {
	for _, tt := range []struct {
		cmds []Command
		want int
	}{
		{[]Command{Cmd("GET", "a"), Cmd("SET", "a", "b")}, 5},
		{[]Command{Cmd("GET", "a"), Cmd("INCR", "a")}, 1},
		{[]Command{Cmd("INCR", "a").Repeatable(true), Cmd("GET", "a")}, 5},
		{[]Command{Cmd("EVAL", "x", "0"), Cmd("GET", "a")}, 1},
	} {
		c, f := newFake(t, []answer{{err: dropped}})
		if _, err := c.MultiExec(t.Context(), tt.cmds...); err == nil || f.count() != tt.want {
			t.Errorf("%v: %d attempts, want %d (%v)", tt.cmds, f.count(), tt.want, err)
		}
	}
}

func TestBatchBinary(t *testing.T) {
	c, f := newFake(t, always(`[{"result":"/w=="},{"result":"OK"}]`))
	replies, err := c.Pipeline(t.Context(), Cmd("GET", "a").Binary(), Cmd("SET", "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if encoding, _ := f.last("Upstash-Encoding"); encoding != "base64" {
		t.Errorf("asked for encoding %q, want base64", encoding)
	}
	if b, err := replies[0].Bytes(); string(b) != "\xff" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	if s, err := replies[1].Text(); s != "OK" || err != nil {
		t.Errorf("got %q, %v", s, err)
	}
}

func TestResponseOverTheLimit(t *testing.T) {
	const body = `{"result":"0123456789"}`
	for limit, ok := range map[int]bool{len(body): true, len(body) - 1: false} {
		c, f := newFake(t, always(body), WithMaxResponse(limit))
		_, err := c.Do(t.Context(), Cmd("GET", "k"))
		if ok != (err == nil) || !ok && !errors.Is(err, ErrResponseTooLarge) || f.count() != 1 {
			t.Errorf("limit %d: %v, %d attempts", limit, err, f.count())
		}
		if f.requests[0].MaxResponse != limit {
			t.Errorf("the transport was told %d, want %d", f.requests[0].MaxResponse, limit)
		}
	}
}
