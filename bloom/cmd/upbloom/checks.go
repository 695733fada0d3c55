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

// scratchNames are the ends of all keys that the checks write. The parts of an
// upload, which package bloom names, are removed by it.
var scratchNames = []string{"text", "fields", "many", "large", "bytes", "filter", "union", "eval"}

const checkConnection = "connection and token"

// checks returns what doctor asks, in order.
func checks() []check {
	return []check{
		{checkConnection, true, askConnection},
		{"set if zero, 53 bits exact", true, askSetIfZero},
		{"BITFIELD of 10,000 operations", true, askManyOperations},
		{"BITFIELD_RO at offset 2^32-1", true, askLastBit},
		{"BITCOUNT by bits", true, askBitCount},
		{"pipeline, errors apart", true, askPipeline},
		{"transaction", true, askTransaction},
		{"script", true, askScript},
		{"script locks its keys alone", false, askShebang},
		{"EVALSHA", false, askEvalSHA},
		{"expiry, only if there is none", true, askExpiry},
		{"any bytes, and back", true, askBytes},
		{"request of 8 MiB", false, askLargeRequest},
		{"refused commands", true, askRefused},
		{"reads see the last write", true, askReadYourWrites},
		{"a filter, from Create to Delete", true, askFilter},
		{"eviction", false, askEviction},
		{"clock", false, askClock},
		{"read-only token", false, askReadOnly},
	}
}

func askConnection(ctx context.Context, p *patient) (string, error) {
	if err := p.set(ctx, "text", "a"); err != nil {
		return "", err
	}
	var times []time.Duration
	for range 5 {
		start := time.Now()
		if _, err := p.client.Do(ctx, upstash.Cmd("GET", p.key("text"))); err != nil {
			return "", err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return fmt.Sprintf("a round trip takes %v, the median of 5", times[2].Round(10*time.Microsecond)), nil
}

// expire gives a key that a check has made its TTL.
func (p *patient) expire(ctx context.Context, name string) error {
	_, err := p.client.Expire(ctx, p.key(name), scratchTTL)
	return err
}

// fields runs a BITFIELD on a scratch key that expires.
func (p *patient) fields(ctx context.Context, name string, b *upstash.BitField) ([]upstash.NullInt64, error) {
	n, err := p.client.BitField(ctx, b)
	if err != nil {
		return nil, err
	}
	return n, p.expire(ctx, name)
}

func askSetIfZero(ctx context.Context, p *patient) (string, error) {
	const word = 1<<52 + 1 // a float64 with 52 bits would round it
	for i, want := range []upstash.NullInt64{{Int64: word, Valid: true}, {}} {
		b := upstash.NewBitField(p.key("fields")).Overflow(upstash.Fail).IncrBy("u53", 0, word).Get("u53", 0)
		n, err := p.fields(ctx, "fields", b)
		if err != nil {
			return "", err
		}
		if len(n) != 2 || n[0] != want || n[1].Int64 != word {
			return "", wrongf("time %d: %v", i+1, n)
		}
	}
	return "", nil
}

func askManyOperations(ctx context.Context, p *patient) (string, error) {
	const operations = 10_000
	b := upstash.NewBitField(p.key("many"))
	for i := range uint64(operations) {
		b.Set("u1", 7*i, 1)
	}
	start := time.Now()
	n, err := p.fields(ctx, "many", b)
	if err != nil {
		return "", err
	}
	isSet := func(v upstash.NullInt64) bool { return !v.Valid || v.Int64 != 0 }
	if len(n) != operations || slices.ContainsFunc(n, isSet) {
		return "", wrongf("%d answers, or one that is not 0", len(n))
	}
	return "in one request, " + time.Since(start).Round(time.Millisecond).String(), nil
}

func askLastBit(ctx context.Context, p *patient) (string, error) {
	b := upstash.NewBitField(p.key("many")).Get("u1", 1<<32-1).Get("u1", 7).ReadOnly()
	n, err := p.client.BitField(ctx, b)
	if err != nil {
		return "", err
	}
	if len(n) != 2 || n[0].Int64 != 0 || n[1].Int64 != 1 {
		return "", wrongf("%v", n)
	}
	return "", nil
}

func askBitCount(ctx context.Context, p *patient) (string, error) {
	n, err := p.client.BitCountRange(ctx, p.key("many"), 7, 7*9_999-1, upstash.Bit)
	if err != nil {
		return "", err
	}
	if n != 9_998 {
		return "", wrongf("%d set bits, not 9,998", n)
	}
	return "", nil
}

func askPipeline(ctx context.Context, p *patient) (string, error) {
	replies, err := p.client.Pipeline(ctx, upstash.Cmd("STRLEN", p.key("text")),
		upstash.Cmd("LPUSH", p.key("text"), "a"), upstash.Cmd("STRLEN", p.key("text")))
	if err != nil {
		return "", err
	}
	if replies[0].Err() != nil || replies[1].Err() == nil || replies[2].Err() != nil {
		return "", wrongf("%v, %v, %v", replies[0].Err(), replies[1].Err(), replies[2].Err())
	}
	return "", nil
}

func askTransaction(ctx context.Context, p *patient) (string, error) {
	replies, err := p.client.MultiExec(ctx, upstash.Cmd("SET", p.key("text"), "OK", "EX", seconds(scratchTTL)),
		upstash.Cmd("GET", p.key("text")).Binary(), upstash.NewBitField(p.key("text")).Get("u8", 0).Command())
	if err != nil {
		return "", err
	}
	text, err := replies[1].Text()
	if err != nil {
		return "", err
	}
	n, err := replies[2].Ints(nil)
	if err != nil {
		return "", err
	}
	if status, err := replies[0].Text(); err != nil || status != "OK" || text != "OK" || n[0].Int64 != 'O' {
		return "", wrongf("%q, %q, %v", status, text, n)
	}
	return "", nil
}

// eval runs a script on the scratch key eval.
func (p *patient) eval(ctx context.Context, text string) ([]upstash.NullInt64, error) {
	reply, err := p.client.Do(ctx, upstash.Cmd("EVAL", text, "1", p.key("eval"), seconds(scratchTTL)))
	if err != nil {
		return nil, err
	}
	return reply.Ints(nil)
}

const setAndRead = `redis.call('SET', KEYS[1], 'aa', 'EX', ARGV[1])
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '0', '4503599627370497')
return {redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0')[1], redis.call('PTTL', KEYS[1])}`

func askScript(ctx context.Context, p *patient) (string, error) {
	n, err := p.eval(ctx, setAndRead)
	if err != nil {
		return "", err
	}
	if len(n) != 2 || n[0].Int64 != 1<<52+1 || n[1].Int64 < 1 {
		return "", wrongf("%v", n)
	}
	return "", nil
}

func askShebang(ctx context.Context, p *patient) (string, error) {
	if _, err := p.eval(ctx, "#!lua flags=allow-key-locking\n"+setAndRead); err != nil {
		return "", fmt.Errorf("no: a script locks the whole database while it runs: %w", err)
	}
	return "yes", nil
}

func askEvalSHA(ctx context.Context, p *patient) (string, error) {
	reply, err := p.client.Do(ctx, upstash.Cmd("SCRIPT", "LOAD", "return 7"))
	if err != nil {
		return "", err
	}
	sha, err := reply.Text()
	if err != nil {
		return "", err
	}
	reply, err = p.client.Do(ctx, upstash.Cmd("EVALSHA", sha, "0"))
	if err != nil {
		return "", fmt.Errorf("no: the text of a script is sent each time: %w", err)
	}
	if n, err := reply.Int64(); err != nil || n != 7 {
		return "", wrongf("%d, %v", n, err)
	}
	return "yes: the text of a script is sent once", nil
}

func askExpiry(ctx context.Context, p *patient) (string, error) {
	replies, err := p.client.Pipeline(ctx, upstash.Cmd("SET", p.key("text"), "a"),
		upstash.ExpireCmd(p.key("text"), scratchTTL, "NX"), upstash.ExpireCmd(p.key("text"), time.Hour, "NX"),
		upstash.Cmd("PTTL", p.key("text")))
	if err != nil {
		return "", err
	}
	var n [3]int64
	for i := range n {
		if n[i], err = replies[1+i].Int64(); err != nil {
			return "", err
		}
	}
	if n[0] != 1 || n[1] != 0 || n[2] <= 0 || n[2] > scratchTTL.Milliseconds() {
		return "", wrongf("%v", n)
	}
	return "", nil
}

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

// send uploads a value as a raw body.
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

// askFilter is the life of a filter, with each operation that is a script.
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
