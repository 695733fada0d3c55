package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// scratchNames are the ends of all keys of the checks. Package bloom names the
// parts of an upload, and removes them itself.
var scratchNames = []string{
	"text", "fields", "many", "large", "bytes", "filter", "union", "eval",
	"window", "layers", "cuckoo", "shards:0",
}

const checkConnection = "connection and token"

// checks returns the checks of doctor in order.
func checks() []check {
	return []check{
		{checkConnection, true, askConnection},
		{"region", false, askRegion},
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
		{"raw body, any bytes", true, askRawBody},
		{"RESP2, any bytes", true, askRESP2},
		{"base64, any bytes", true, askBase64},
		{"base64 of a nested OK", true, askNestedOK},
		{"limit of a request", false, askRequestLimit},
		{"limit of a record", false, askRecordLimit},
		{"refused commands", true, askRefused},
		{"wrong token", true, askWrongToken},
		{"sync token", false, askSyncToken},
		{"reads see the last write", true, askReadYourWrites},
		{"a filter, from Create to Delete", true, askFilter},
		{"window, scalable, cuckoo, sharded", true, askKinds},
		{"eviction", true, askEviction},
		{"clock", false, askClock},
		{"read-only token", false, askReadOnly},
	}
}

func askConnection(ctx context.Context, p *patient) (string, error) {
	if err := p.set(ctx, "text", "a"); err != nil {
		return "", err
	}
	read := func() error { _, err := p.client.Do(ctx, upstash.Cmd("GET", p.key("text"))); return err }
	write := func() error { return p.set(ctx, "text", "a") }
	var err error
	if p.read, err = median(read); err != nil {
		return "", err
	}
	if p.write, err = median(write); err != nil {
		return "", err
	}
	return fmt.Sprintf("a read takes %v, a write %v: medians of 5", p.read, p.write), nil
}

// median runs a request five times and returns its median duration.
func median(request func() error) (time.Duration, error) {
	var times [5]time.Duration
	for i := range times {
		start := time.Now()
		if err := request(); err != nil {
			return 0, err
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times[:])
	return times[2].Round(10 * time.Microsecond), nil
}

// fields runs a BITFIELD on a scratch key. It makes the key first, with its
// TTL.
func (p *patient) fields(ctx context.Context, name string, b *upstash.BitField) ([]upstash.NullInt64, error) {
	_, err := p.client.Do(ctx, upstash.Cmd("SET", p.key(name), "", "EX", seconds(scratchTTL), "NX"))
	if err != nil {
		return nil, err
	}
	return p.client.BitField(ctx, b)
}

func askSetIfZero(ctx context.Context, p *patient) (string, error) {
	const word = 1<<52 + 1 // rounded in a float64 with 52 bits
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
