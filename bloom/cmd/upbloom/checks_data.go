package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// allBytes returns a value with each byte in it.
func (p *patient) allBytes() []byte {
	value := make([]byte, 1<<20)
	if p.brief {
		value = value[:1<<10]
	}
	for i := range value {
		value[i] = byte(i ^ i>>8)
	}
	return value
}

// send uploads a value as a raw body.
func (p *patient) send(ctx context.Context, name string, value []byte, ttl time.Duration) error {
	_, err := p.client.Do(ctx, upstash.RawCmd("SETEX", value, p.key(name), seconds(ttl)).
		Timeout(time.Minute))
	return err
}

func askRawBody(ctx context.Context, p *patient) (string, error) {
	value := p.allBytes()
	if err := p.send(ctx, "bytes", value, scratchTTL); err != nil {
		return "", err
	}
	reply, err := p.client.Do(ctx, upstash.Cmd("STRLEN", p.key("bytes")))
	if err != nil {
		return "", err
	}
	if n, err := reply.Int64(); err != nil || n != int64(len(value)) {
		return "", wrongf("%d bytes were sent, and %d are there, %v", len(value), n, err)
	}
	return fmt.Sprintf("%d bytes", len(value)), nil
}

// same compares the bytes of a reply with those of askRawBody.
func (p *patient) same(reply upstash.Reply) (string, error) {
	if reply.IsNil() {
		return "", errors.New("nothing to compare: the raw body did not arrive")
	}
	value, err := reply.Bytes()
	if err != nil {
		return "", err
	}
	if !bytes.Equal(value, p.allBytes()) {
		return "", wrongf("the bytes that come back are others")
	}
	return fmt.Sprintf("%d bytes", len(value)), nil
}

func askRESP2(ctx context.Context, p *patient) (string, error) {
	reply, err := p.client.Do(ctx, upstash.Cmd("GET", p.key("bytes")).Binary())
	if err != nil {
		return "", err
	}
	return p.same(reply)
}

func askBase64(ctx context.Context, p *patient) (string, error) {
	replies, err := p.client.Pipeline(ctx, upstash.Cmd("GET", p.key("bytes")).Binary())
	if err != nil {
		return "", err
	}
	return p.same(replies[0])
}

// askNestedOK asks for the status OK and the text OK in one array. The text is
// base64. No document says whether the status is.
func askNestedOK(ctx context.Context, p *patient) (string, error) {
	const script = "return {redis.status_reply('OK'), 'OK'}"
	replies, err := p.client.Pipeline(ctx, upstash.Cmd("EVAL", script, "0").Binary())
	if err != nil {
		return "", err
	}
	both, err := replies[0].Array()
	if err != nil {
		return "", err
	}
	for _, r := range both {
		if text, err := r.Text(); err != nil || text != "OK" {
			return "", wrongf("%q, %v", text, err)
		}
	}
	got, err := p.post(ctx, []string{"EVAL", script, "0"}, "Upstash-Encoding", "base64")
	if err != nil {
		return "", err
	}
	var v struct{ Result []string }
	if err := json.Unmarshal(got.body, &v); err != nil || len(v.Result) != 2 {
		return "", wrongf("%d results, %v", len(v.Result), err)
	}
	if v.Result[1] != "T0s=" {
		return "", wrongf("base64 was asked for, and the text OK is sent as %q", v.Result[1])
	}
	return fmt.Sprintf("the status is sent as %q, the text as %q", v.Result[0], v.Result[1]), nil
}

func askRefused(ctx context.Context, p *patient) (string, error) {
	if err := p.set(ctx, "text", "a"); err != nil {
		return "", err
	}
	var statuses []string
	for _, c := range []struct {
		what string
		cmd  upstash.Command
	}{
		{"unknown", upstash.Cmd("UPBLOOMNOSUCHCOMMAND")},
		{"too few arguments", upstash.Cmd("GET")},
		{"another type", upstash.Cmd("LPUSH", p.key("text"), "a")},
		{"not over REST", upstash.Cmd("MULTI")},
	} {
		_, err := p.client.Do(ctx, c.cmd)
		var server *upstash.Error
		if isLost(err) {
			return "", err
		}
		if !errors.As(err, &server) {
			return "", wrongf("%s: %v", c.what, err)
		}
		if !upstash.SafeToRetry(err) {
			return "", wrongf("%s: status %d says that a refused command may have run", c.what, server.StatusCode)
		}
		statuses = append(statuses, c.what+" "+strconv.Itoa(server.StatusCode))
	}
	return strings.Join(statuses, ", "), nil
}

func askReadYourWrites(ctx context.Context, p *patient) (string, error) {
	for i := range int64(10) {
		if _, err := p.client.BitField(ctx, upstash.NewBitField(p.key("fields")).Set("u8", 64, i)); err != nil {
			return "", err
		}
		n, err := p.client.BitField(ctx, upstash.NewBitField(p.key("fields")).Get("u8", 64).ReadOnly())
		if err != nil {
			return "", err
		}
		if len(n) != 1 || n[0].Int64 != i {
			return "", wrongf("a read of the nearest region missed write %d", i)
		}
	}
	return "10 of 10", nil
}
