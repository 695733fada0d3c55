package upstash

import (
	"errors"
	"strings"
	"testing"
)

// One reply was lost: each command of the batch may have run. An error in the
// answer to the repetition does not change that.
func TestBatchErrorAfterALostReply(t *testing.T) {
	const oom = `[{"error":"OOM command not allowed"},{"error":"OOM command not allowed"},{"result":1}]`
	for _, first := range []answer{{err: dropped}, {status: 500}, {body: `[{"result":`}} {
		c, f := newFake(t, []answer{first, {body: oom}})
		replies, err := c.MultiExec(t.Context(), Cmd("SET", "k", "v"), Cmd("GET", "k"), Cmd("SADD", "s", "m"))
		if err != nil || f.count() != 2 {
			t.Fatalf("%v after %d attempts", err, f.count())
		}
		write, read := replies[0].Err(), replies[1].Err()
		if SafeToRetry(write) || !strings.Contains(write.Error(), "may have run") {
			t.Errorf("a write after a lost reply: SafeToRetry(%v) = %v", write, SafeToRetry(write))
		}
		if !SafeToRetry(read) || strings.Contains(read.Error(), "may have run") {
			t.Errorf("a read after a lost reply: SafeToRetry(%v) = %v", read, SafeToRetry(read))
		}
		if !replies[2].MaybeRepeated() {
			t.Error("MaybeRepeated is false after a lost reply")
		}
	}

	c, _ := newFake(t, []answer{{err: notSent}, {body: oom}})
	replies, err := c.Pipeline(t.Context(), Cmd("SET", "k", "v"), Cmd("GET", "k"), Cmd("SADD", "s", "m"))
	if err != nil || !SafeToRetry(replies[0].Err()) {
		t.Errorf("nothing was lost: %v, %v", replies, err)
	}
}

// A read changes nothing, however its attempts ended.
func TestAReadIsAlwaysSafeToRetry(t *testing.T) {
	for name, a := range map[string]answer{
		"dropped": {err: dropped}, "500": {status: 500}, "not JSON": {body: "<html>"},
		"wrong type": {body: `{"result":"text"}`}, "too large": {err: ErrResponseTooLarge},
	} {
		c, _ := newFake(t, []answer{a})
		_, counted := c.BitCount(t.Context(), "k")
		_, bits := c.BitField(t.Context(), NewBitField("k").Get("u1", 0))
		for _, err := range []error{counted, bits} {
			if err == nil || !SafeToRetry(err) || strings.Contains(err.Error(), "may have run") {
				t.Errorf("%s: SafeToRetry(%v) = %v", name, err, SafeToRetry(err))
			}
		}
	}
}

// An observer may keep the error of an attempt. The call must return another
// one.
func TestAnErrorIsNotChangedAfterwards(t *testing.T) {
	var texts []string
	var events []error
	c, _ := newFake(t, []answer{
		{status: 500, body: `{"error":"ERR a"}`}, {status: 502, body: `{"error":"ERR b"}`},
	}, WithRetry(1), observing(func(e Event) {
		texts, events = append(texts, e.Err.Error()), append(events, e.Err)
	}))
	_, err := c.Do(t.Context(), Cmd("SET", "k", "v"))
	var server *Error
	if !errors.As(err, &server) || SafeToRetry(err) {
		t.Errorf("SafeToRetry(%v) = %v", err, SafeToRetry(err))
	}
	for i, e := range events {
		if e.Error() != texts[i] {
			t.Errorf("event %d said %q, and now %q", i, texts[i], e)
		}
	}
}
