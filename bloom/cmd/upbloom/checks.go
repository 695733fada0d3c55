package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

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
	return "", wrongUnless(len(n) == 2 && n[0].Int64 == 0 && n[1].Int64 == 1, "%v", n)
}

func askBitCount(ctx context.Context, p *patient) (string, error) {
	reply, err := p.client.Do(ctx, upstash.Cmd("BITCOUNT", p.key("many"), "7", strconv.Itoa(7*9_999-1), "BIT"))
	if err != nil {
		return "", err
	}
	n, err := reply.Int64()
	if err != nil {
		return "", err
	}
	return "", wrongUnless(n == 9_998, "%d set bits, not 9,998", n)
}

func askPipeline(ctx context.Context, p *patient) (string, error) {
	replies, err := p.client.Pipeline(ctx, upstash.Cmd("STRLEN", p.key("text")),
		upstash.Cmd("LPUSH", p.key("text"), "a"), upstash.Cmd("STRLEN", p.key("text")))
	if err != nil {
		return "", err
	}
	a, b, c := replies[0].Err(), replies[1].Err(), replies[2].Err()
	return "", wrongUnless(a == nil && b != nil && c == nil, "%v, %v, %v", a, b, c)
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
	status, err := replies[0].Text()
	right := err == nil && status == "OK" && text == "OK" && len(n) == 1 && n[0].Int64 == 'O'
	return "", wrongUnless(right, "%q, %q, %v", status, text, n)
}

const setAndRead = `redis.call('SET', KEYS[1], 'aa', 'EX', ARGV[1])
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '0', '4503599627370497')
return {redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0')[1], redis.call('PTTL', KEYS[1])}`

func askScript(ctx context.Context, p *patient) (string, error) {
	n, err := p.eval(ctx, setAndRead, scratchTTL, "eval")
	if err != nil {
		return "", err
	}
	return "", wrongUnless(len(n) == 2 && n[0].Int64 == 1<<52+1 && n[1].Int64 >= 1, "%v", n)
}

// askCopy copies a string in a script, as a backup of a long one does.
func askCopy(ctx context.Context, p *patient) (string, error) {
	if err := p.set(ctx, "text", "to copy"); err != nil {
		return "", err
	}
	const script = `redis.call('COPY', KEYS[1], KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return {redis.call('STRLEN', KEYS[2]), redis.call('TTL', KEYS[2])}`
	n, err := p.eval(ctx, script, emptyTTL, "text", "copy")
	if err != nil {
		return "", err
	}
	right := len(n) == 2 && n[0].Int64 == int64(len("to copy")) &&
		n[1].Int64 >= 1 && n[1].Int64 <= int64(emptyTTL/time.Second)
	return "", wrongUnless(right, "%v", n)
}

func askShebang(ctx context.Context, p *patient) (string, error) {
	if _, err := p.eval(ctx, "#!lua flags=allow-key-locking\n"+setAndRead, scratchTTL, "eval"); err != nil {
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

// askScriptRefusals returns the words with which the database refuses a script
// that it does not run: the client tells them from a script's own.
func askScriptRefusals(ctx context.Context, p *patient) (string, error) {
	var words []string
	for _, c := range []struct {
		what string
		cmd  upstash.Command
	}{
		{"no such text", upstash.Cmd("EVALSHA", strings.Repeat("0", 40), "0")},
		{"no such command", upstash.Cmd("UPBLOOMNOSUCHCOMMAND")},
		{"no such flag", upstash.Cmd("EVAL", "#!lua flags=upbloom-no-such-flag\nreturn 7", "0")},
	} {
		_, err := p.client.Do(ctx, c.cmd)
		if isLost(err) {
			return "", err
		}
		said := "it ran"
		if server := (*upstash.Error)(nil); errors.As(err, &server) {
			said = strconv.Quote(server.Message)
		}
		words = append(words, c.what+": "+said)
	}
	return strings.Join(words, "; "), nil
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
	right := n[0] == 1 && n[1] == 0 && n[2] > 0 && n[2] <= scratchTTL.Milliseconds()
	return "", wrongUnless(right, "%v", n)
}

func askRawBody(ctx context.Context, p *patient) (string, error) {
	value := p.allBytes()
	raw := upstash.RawCmd("SETEX", value, p.key("bytes"), seconds(scratchTTL)).Timeout(time.Minute)
	if _, err := p.client.Do(ctx, raw); err != nil {
		return "", err
	}
	reply, err := p.client.Do(ctx, upstash.Cmd("STRLEN", p.key("bytes")))
	if err != nil {
		return "", err
	}
	if n, err := reply.Int64(); err != nil || n != int64(len(value)) {
		return "", wrongf("%d bytes were sent, and %d are there, %v", len(value), n, err)
	}
	return human.Counted(uint64(len(value)), "byte"), nil
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
	return human.Counted(uint64(len(value)), "byte"), nil
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
	if len(both) != 2 {
		return "", wrongf("%d results", len(both))
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
		if c.cmd.Name() == "MULTI" { // a server that takes it would keep back all that follows
			_, _ = p.client.Do(ctx, upstash.Cmd("DISCARD"))
		}
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

// askRegion asks in several ways where the database is, because no way is
// documented.
func askRegion(ctx context.Context, p *patient) (string, error) {
	got, err := p.post(ctx, []string{"GET", p.key("text")})
	if err != nil {
		return "", err
	}
	var found []string
	for name, values := range got.header {
		if strings.Contains(strings.ToLower(name), "region") {
			found = append(found, name+": "+strings.Join(values, ", "))
		}
	}
	for line := range strings.Lines(p.info(ctx)) {
		if strings.Contains(strings.ToLower(line), "region") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	if len(found) > 0 {
		slices.Sort(found)
		return strings.Join(found, "; "), nil
	}
	if p.write > 2*p.read+10*time.Millisecond {
		return fmt.Sprintf("it is not named, but a write takes %v more than a read: a region near here"+
			" answers reads, and the primary is elsewhere", p.write-p.read), nil
	}
	return "", skipped{errors.New("the database does not name it; reads and writes are about as fast")}
}

// askWrongToken asks both paths, because some servers guard only the first.
func askWrongToken(ctx context.Context, p *patient) (string, error) {
	command := []string{"GET", p.key("text")}
	status := 0
	for _, q := range []struct {
		what, path string
		body       any
	}{{"a command", "", command}, {"a pipeline", "/pipeline", [][]string{command}}} {
		got, err := p.postTo(ctx, q.path, q.body, "Authorization", "Bearer upbloom-doctor")
		if err != nil {
			return "", err
		}
		status = got.status
		if status != http.StatusUnauthorized && status != http.StatusForbidden {
			return "", wrongf("status %d to %s: whoever knows the URL may use the database", status, q.what)
		}
	}
	return "status " + strconv.Itoa(status), nil
}

func askSyncToken(ctx context.Context, p *patient) (string, error) {
	const name = "Upstash-Sync-Token"
	set := []string{"SET", p.key("text"), "a", "EX", seconds(scratchTTL)}
	got, err := p.post(ctx, set)
	if err != nil {
		return "", err
	}
	token := got.header.Get(name)
	if token == "" {
		return "", errors.New("none: if the database has read regions, one of them may miss this process's" +
			" last write")
	}
	if got, err = p.post(ctx, []string{"GET", p.key("text")}, name, token); err != nil {
		return "", err
	}
	if got.status != http.StatusOK {
		return "", wrongf("status %d to a read that sends it back", got.status)
	}
	return "sent with a write, taken with a read", nil
}

// askEviction asks for the policy by CONFIG or by INFO.
func askEviction(ctx context.Context, p *patient) (string, error) {
	policy := ""
	if reply, err := p.client.Do(ctx, upstash.Cmd("CONFIG", "GET", "maxmemory-policy")); err == nil {
		if parts, err := reply.Array(); err == nil && len(parts) == 2 {
			policy, _ = parts[1].Text()
		}
	}
	for line := range strings.Lines(p.info(ctx)) {
		if value, ok := strings.CutPrefix(line, "maxmemory_policy:"); ok && policy == "" {
			policy = strings.TrimSpace(value)
		}
	}
	switch policy {
	case "noeviction":
		return "off", nil
	case "":
		return "", skipped{errors.New("the database does not say: make sure in its settings that eviction" +
			" is off")}
	}
	return "", fmt.Errorf("%q: after an eviction the next Add makes an empty filter, which answers no to what"+
		" was added: turn eviction off, or set MustExist", policy)
}

// mostAway is how far a clock may be off. A Window asks the server for its time
// and allows for 2 s.
const mostAway = 2 * time.Second

func askClock(ctx context.Context, p *patient) (string, error) {
	start := time.Now()
	reply, err := p.client.Do(ctx, upstash.Cmd("TIME"))
	if err != nil {
		return "", fmt.Errorf("not told, and a Window cannot be written without it: %w", err)
	}
	trip := time.Since(start)
	parts, err := reply.Array()
	if err != nil || len(parts) != 2 {
		return "", wrongf("%d parts, %v", len(parts), err)
	}
	var n [2]int64
	for i, part := range parts {
		text, err := part.Text()
		if err == nil {
			n[i], err = strconv.ParseInt(text, 10, 64)
		}
		if err != nil {
			return "", wrongf("%v", err)
		}
	}
	away := start.Add(trip / 2).Sub(time.UnixMicro(n[0]*1e6 + n[1])).Round(time.Millisecond)
	how := "ahead of"
	if away < 0 {
		away, how = -away, "behind"
	}
	// The difference is rounded, and TIME may come in whole milliseconds.
	most := (trip / 2).Truncate(time.Millisecond) + 2*time.Millisecond
	says := fmt.Sprintf("this machine's is %v %s the database's, give or take %v", away, how, most)
	if away > mostAway {
		return "", errors.New(says)
	}
	return says, nil
}

func askReadOnly(ctx context.Context, p *patient) (string, error) {
	url, token := os.Getenv("UPSTASH_REDIS_REST_URL"), os.Getenv("UPSTASH_REDIS_REST_READONLY_TOKEN")
	if url == "" {
		url, token = os.Getenv("KV_REST_API_URL"), os.Getenv("KV_REST_API_READ_ONLY_TOKEN")
	}
	if token == "" {
		return "", skipped{errors.New("set UPSTASH_REDIS_REST_READONLY_TOKEN or KV_REST_API_READ_ONLY_TOKEN")}
	}
	client, err := dialed(func(opts ...upstash.Option) (*upstash.Client, error) {
		return upstash.New(url, token, opts...)
	}, nil)
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
