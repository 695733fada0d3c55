package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

func askBytes(ctx context.Context, p *patient) (string, error) {
	sent := make([]byte, 1<<20)
	if p.brief {
		sent = sent[:1<<10]
	}
	for i := range sent {
		sent[i] = byte(i ^ i>>8)
	}
	if err := p.send(ctx, "bytes", sent); err != nil {
		return "", err
	}
	reply, err := p.client.Do(ctx, upstash.Cmd("GET", p.key("bytes")).Binary())
	if err != nil {
		return "", err
	}
	raw, err := reply.Bytes()
	if err != nil {
		return "", fmt.Errorf("as RESP2: %w", err)
	}
	replies, err := p.client.Pipeline(ctx, upstash.Cmd("GET", p.key("bytes")).Binary())
	if err != nil {
		return "", err
	}
	decoded, err := replies[0].Bytes()
	if err != nil {
		return "", fmt.Errorf("as base64: %w", err)
	}
	if !bytes.Equal(raw, sent) || !bytes.Equal(decoded, sent) {
		return "", wrongf("the bytes that come back are others")
	}
	return fmt.Sprintf("%d bytes as raw body, RESP2 and base64", len(sent)), nil
}

func (p *patient) send(ctx context.Context, name string, value []byte) error {
	_, err := p.client.Do(ctx, upstash.RawCmd("SETEX", value, p.key(name), seconds(scratchTTL)).
		Timeout(time.Minute))
	return err
}

func askLargeRequest(ctx context.Context, p *patient) (string, error) {
	if p.brief {
		return "", skipped{errors.New("not recorded, because the file would be large")}
	}
	if err := p.send(ctx, "large", make([]byte, 8<<20)); err != nil {
		return "", fmt.Errorf("no: leave MovePartBytes at 1 MiB: %w", err)
	}
	return "accepted", nil
}

func askRefused(ctx context.Context, p *patient) (string, error) {
	var statuses []string
	for _, cmd := range []upstash.Command{
		upstash.Cmd("UPBLOOMNOSUCHCOMMAND"), upstash.Cmd("GET"), upstash.Cmd("LPUSH", p.key("text"), "a"),
	} {
		_, err := p.client.Do(ctx, cmd)
		var server *upstash.Error
		if !errors.As(err, &server) {
			return "", wrongf("%s: %v", cmd.Name(), err)
		}
		if !upstash.SafeToRetry(err) {
			return "", wrongf("status %d says that a refused command may have run", server.StatusCode)
		}
		statuses = append(statuses, strconv.Itoa(server.StatusCode))
	}
	return "status " + strings.Join(statuses, ", "), nil
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

func askFilter(ctx context.Context, p *patient) (string, error) {
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.001, TTL: scratchTTL}
	f, err := bloom.New(p.client, p.key("filter"), cfg)
	if err != nil {
		return "", err
	}
	union, err := bloom.New(p.client, p.key("union"), cfg)
	if err != nil {
		return "", err
	}
	var item string
	l := bloom.NewLocal(f.Geometry())
	l.Add("of-replace")
	for _, step := range []struct {
		name string
		run  func() (bool, error)
	}{
		{"Create", func() (bool, error) { return f.Create(ctx) }},
		{"Add", func() (bool, error) { return f.Add(ctx, "of-add") }},
		{"Add again", func() (bool, error) { seen, err := f.Add(ctx, "of-add"); return !seen, err }},
		{"Load", func() (bool, error) {
			r, err := f.Load(ctx, slices.Values([]string{"of-load"}))
			return r.NewBits > 0, err
		}},
		{"Union", func() (bool, error) { return true, bloom.Union(ctx, union, f) }},
		{"Exists", func() (bool, error) {
			all, err := union.ExistsAll(ctx, []string{"of-add", "of-load", "never"})
			return err == nil && slices.Equal(all, []bool{true, true, false}), err
		}},
		{"Replace", func() (bool, error) { return true, f.Replace(ctx, l) }},
		{"Snapshot", func() (bool, error) {
			s, err := f.Snapshot(ctx)
			return err == nil && s.Exists("of-replace") && !s.Exists("of-add"), err
		}},
		{"Stats", func() (bool, error) {
			s, err := f.Stats(ctx)
			return s.Items == 1 && s.TTL > 0 && s.TTL <= scratchTTL, err
		}},
		{"Delete", func() (bool, error) { return f.Delete(ctx) }},
		{"Delete", func() (bool, error) { return union.Delete(ctx) }},
	} {
		item = step.name
		switch ok, err := step.run(); {
		case err != nil:
			return "", fmt.Errorf("%s: %w", item, err)
		case !ok:
			return "", wrongf("%s", item)
		}
	}
	return "", nil
}

func askEviction(ctx context.Context, p *patient) (string, error) {
	reply, err := p.client.Do(ctx, upstash.Cmd("CONFIG", "GET", "maxmemory-policy"))
	if err == nil {
		var parts []upstash.Reply
		if parts, err = reply.Array(); err == nil && len(parts) == 2 {
			policy, _ := parts[1].Text()
			if policy == "noeviction" {
				return "off", nil
			}
			return "", fmt.Errorf("%q: an evicted filter answers no about what was added: turn it off", policy)
		}
	}
	return "", skipped{errors.New("the database does not say: see that eviction is off in its settings")}
}

func askClock(ctx context.Context, p *patient) (string, error) {
	start := time.Now()
	reply, err := p.client.Do(ctx, upstash.Cmd("TIME"))
	if err != nil {
		return "", err
	}
	middle := start.Add(time.Since(start) / 2)
	parts, err := reply.Array()
	if err != nil || len(parts) != 2 {
		return "", wrongf("%d parts, %v", len(parts), err)
	}
	text, _ := parts[0].Text()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", wrongf("%q", text)
	}
	away := middle.Sub(time.Unix(n, 0)).Round(time.Second)
	if away < -5*time.Second || away > 5*time.Second {
		return "", fmt.Errorf("this machine's clock is %v from the database's", away)
	}
	return "this machine's agrees within 5 s", nil
}

func askReadOnly(ctx context.Context, p *patient) (string, error) {
	url, token := os.Getenv("UPSTASH_REDIS_REST_URL"), os.Getenv("UPSTASH_REDIS_REST_READONLY_TOKEN")
	if url == "" {
		url, token = os.Getenv("KV_REST_API_URL"), os.Getenv("KV_REST_API_READ_ONLY_TOKEN")
	}
	if token == "" {
		return "", skipped{errors.New("set UPSTASH_REDIS_REST_READONLY_TOKEN or KV_REST_API_READ_ONLY_TOKEN")}
	}
	client, err := upstash.New(url, token)
	if err != nil {
		return "", err
	}
	defer client.Close()
	read := upstash.NewBitField(p.key("fields")).Get("u53", 0).ReadOnly()
	if n, err := client.BitField(ctx, read); err != nil || len(n) != 1 {
		return "", fmt.Errorf("it cannot look up: %w", err)
	}
	_, err = client.Do(ctx, upstash.Cmd("SET", p.key("text"), "a", "EX", seconds(scratchTTL)))
	if !errors.Is(err, upstash.ErrNoPermission) {
		return "", wrongf("a write with it: %v", err)
	}
	return "looks up, and cannot write", nil
}
