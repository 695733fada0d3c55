package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

func askConnection(ctx context.Context, p *patient) string {
	p.set(ctx, "text", "a")
	p.read = median(func() { p.do(ctx, upstash.Cmd("GET", p.key("text"))) })
	p.write = median(func() { p.set(ctx, "text", "a") })
	return fmt.Sprintf("a read takes %v, a write %v: medians of 5", p.read, p.write)
}

// median runs a request five times and returns its median duration.
func median(request func()) time.Duration {
	var times [5]time.Duration
	for i := range times {
		start := time.Now()
		request()
		times[i] = time.Since(start)
	}
	slices.Sort(times[:])
	return times[2].Round(10 * time.Microsecond)
}

// errHeld is what doctor ends with if a connection is held.
var errHeld = errors.New("a proxy before the database answers QUEUED: another program has left a transaction" +
	" open (MULTI) on a connection that all share. Restart the proxy: till then what is written over it is lost")

// askHeld asks over many connections at once.
func askHeld(ctx context.Context, p *patient) string {
	p.set(ctx, "text", "a")
	if p.err == nil && p.isHeld(ctx) {
		p.fail(errHeld)
	}
	return "none"
}

// isHeld reports whether a read is answered with QUEUED: the connections of a
// proxy's pool, over one of which it came, are shared by all its users.
func (p *patient) isHeld(ctx context.Context) bool {
	const atOnce = 16
	held := make(chan bool, atOnce)
	for range atOnce {
		go func() {
			reply, err := p.client.Do(ctx, upstash.Cmd("GET", p.key("text")))
			text, textErr := reply.Text()
			held <- err == nil && textErr == nil && text == "QUEUED"
		}()
	}
	is := false
	for range atOnce {
		is = <-held || is
	}
	return is
}

func askSetIfZero(ctx context.Context, p *patient) string {
	const word = 1<<52 + 1 // rounded in a float64 with 52 bits
	for i, want := range []upstash.NullInt64{{Int64: word, Valid: true}, {}} {
		b := upstash.NewBitField(p.key("fields")).Overflow(upstash.Fail).IncrBy("u53", 0, word).Get("u53", 0)
		n := p.fields(ctx, "fields", b)
		p.unless(len(n) == 2 && n[0] == want && n[1].Int64 == word, "time %d: %v", i+1, n)
	}
	return ""
}

func askManyOperations(ctx context.Context, p *patient) string {
	start := time.Now()
	p.makeMany(ctx)
	return "in one request, " + time.Since(start).Round(time.Millisecond).String()
}

// makeMany makes a string in which every seventh bit is set, by 10,000 operations.
func (p *patient) makeMany(ctx context.Context) {
	const operations = 10_000
	p.once("many", func() {
		b := upstash.NewBitField(p.key("many"))
		for i := range uint64(operations) {
			b.Set("u1", 7*i, 1)
		}
		n := p.fields(ctx, "many", b)
		isSet := func(v upstash.NullInt64) bool { return !v.Valid || v.Int64 != 0 }
		p.unless(len(n) == operations && !slices.ContainsFunc(n, isSet), "%d answers, or one that is not 0", len(n))
	})
}

func askLastBit(ctx context.Context, p *patient) string {
	p.makeMany(ctx)
	n := p.bits(ctx, upstash.NewBitField(p.key("many")).Get("u1", 1<<32-1).Get("u1", 7).ReadOnly())
	return p.unless(len(n) == 2 && n[0].Int64 == 0 && n[1].Int64 == 1, "%v", n)
}

func askBitCount(ctx context.Context, p *patient) string {
	p.makeMany(ctx)
	n := take(p, p.do(ctx, upstash.Cmd("BITCOUNT", p.key("many"), "7", strconv.Itoa(7*9_999-1), "BIT")).Int64)
	return p.unless(n == 9_998, "%d set bits, not 9,998", n)
}

func askPipeline(ctx context.Context, p *patient) string {
	p.set(ctx, "text", "a")
	replies := p.replies(ctx, p.client.Pipeline, upstash.Cmd("STRLEN", p.key("text")),
		upstash.Cmd("LPUSH", p.key("text"), "a"), upstash.Cmd("STRLEN", p.key("text")))
	a, b, c := replies[0].Err(), replies[1].Err(), replies[2].Err()
	return p.unless(a == nil && b != nil && c == nil, "%v, %v, %v", a, b, c)
}

func askTransaction(ctx context.Context, p *patient) string {
	replies := p.replies(ctx, p.client.MultiExec, upstash.Cmd("SET", p.key("text"), "OK", "EX", seconds(scratchTTL)),
		upstash.Cmd("GET", p.key("text")).Binary(), upstash.NewBitField(p.key("text")).Get("u8", 0).Command())
	text := take(p, replies[1].Text)
	n := take(p, func() ([]upstash.NullInt64, error) { return replies[2].Ints(nil) })
	status, err := replies[0].Text()
	right := err == nil && status == "OK" && text == "OK" && len(n) == 1 && n[0].Int64 == 'O'
	return p.unless(right, "%q, %q, %v", status, text, n)
}

const setAndRead = `redis.call('SET', KEYS[1], 'aa', 'EX', ARGV[1])
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '0', '4503599627370497')
return {redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0')[1], redis.call('PTTL', KEYS[1])}`

func askScript(ctx context.Context, p *patient) string {
	n := p.eval(ctx, setAndRead, scratchTTL, "eval")
	return p.unless(len(n) == 2 && n[0].Int64 == 1<<52+1 && n[1].Int64 >= 1, "%v", n)
}

// askReadScript asks in the form that a region answers.
func askReadScript(ctx context.Context, p *patient) string {
	p.set(ctx, "text", "a")
	const script = "return redis.call('STRLEN', KEYS[1])"
	n := take(p, p.do(ctx, upstash.Cmd("EVAL_RO", script, "1", p.key("text"))).Int64)
	return p.unless(n == 1, "%d", n)
}

// askCopy copies a string in a script, as a backup of a long one does.
func askCopy(ctx context.Context, p *patient) string {
	p.set(ctx, "text", "to copy")
	const script = `redis.call('COPY', KEYS[1], KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return {redis.call('STRLEN', KEYS[2]), redis.call('TTL', KEYS[2])}`
	n := p.eval(ctx, script, emptyTTL, "text", "copy")
	right := len(n) == 2 && n[0].Int64 == int64(len("to copy")) &&
		n[1].Int64 >= 1 && n[1].Int64 <= int64(emptyTTL/time.Second)
	return p.unless(right, "%v", n)
}

func askShebang(ctx context.Context, p *patient) string {
	p.eval(ctx, "#!lua flags=allow-key-locking\n"+setAndRead, scratchTTL, "eval")
	p.because("no: a script locks the whole database while it runs")
	return "yes"
}

func askEvalSHA(ctx context.Context, p *patient) string {
	sha := take(p, p.do(ctx, upstash.Cmd("SCRIPT", "LOAD", "return 7").Repeatable(true)).Text)
	if p.err != nil {
		return ""
	}
	reply := p.do(ctx, upstash.Cmd("EVALSHA", sha, "0").Repeatable(true))
	p.because("no: the text of a script is sent each time")
	n, err := reply.Int64()
	p.unless(err == nil && n == 7, "%d, %v", n, err)
	return "yes: the text of a script is sent once"
}

// askScriptRefusals returns the words with which the database refuses a script
// that it does not run: the client tells them from a script's own.
func askScriptRefusals(ctx context.Context, p *patient) string {
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
		if noAnswer(err) {
			return p.fail(err)
		}
		said := "it ran"
		if server, ok := errors.AsType[*upstash.Error](err); ok {
			said = strconv.Quote(server.Message)
		}
		words = append(words, c.what+": "+said)
	}
	return strings.Join(words, "; ")
}

func askExpiry(ctx context.Context, p *patient) string {
	replies := p.replies(ctx, p.client.Pipeline, upstash.Cmd("SET", p.key("text"), "a"),
		upstash.ExpireCmd(p.key("text"), scratchTTL, "NX"), upstash.ExpireCmd(p.key("text"), time.Hour, "NX"),
		upstash.Cmd("PTTL", p.key("text")))
	var n [3]int64
	for i := range n {
		n[i] = take(p, replies[1+i].Int64)
	}
	right := n[0] == 1 && n[1] == 0 && n[2] > 0 && n[2] <= scratchTTL.Milliseconds()
	return p.unless(right, "%v", n)
}

func askRawBody(ctx context.Context, p *patient) string {
	p.makeBytes(ctx)
	return human.Counted(uint64(len(p.allBytes())), "byte")
}

// makeBytes makes a string with each byte in it.
func (p *patient) makeBytes(ctx context.Context) {
	p.once("bytes", func() {
		value := p.allBytes()
		p.do(ctx, upstash.RawCmd("SETEX", value, p.key("bytes"), seconds(scratchTTL)).Timeout(time.Minute))
		n, err := p.do(ctx, upstash.Cmd("STRLEN", p.key("bytes"))).Int64()
		p.unless(err == nil && n == int64(len(value)), "%d bytes were sent, and %d are there, %v", len(value), n, err)
	})
}

// same compares the bytes of a reply with those of makeBytes.
func (p *patient) same(reply upstash.Reply) string {
	value := take(p, reply.Bytes)
	p.unless(bytes.Equal(value, p.allBytes()), "the bytes that come back are others")
	return human.Counted(uint64(len(value)), "byte")
}

func askRESP2(ctx context.Context, p *patient) string {
	p.makeBytes(ctx)
	return p.same(p.do(ctx, upstash.Cmd("GET", p.key("bytes")).Binary()))
}

func askBase64(ctx context.Context, p *patient) string {
	p.makeBytes(ctx)
	return p.same(p.replies(ctx, p.client.Pipeline, upstash.Cmd("GET", p.key("bytes")).Binary())[0])
}

// askNestedOK asks for the status OK and the text OK in one array. The text is
// base64. No document says whether the status is.
func askNestedOK(ctx context.Context, p *patient) string {
	const script = "return {redis.status_reply('OK'), 'OK'}"
	p.do(ctx, upstash.Cmd("EVAL", script, "0").Repeatable(true))
	if errors.Is(p.err, upstash.ErrNoPermission) {
		p.err = skipped{fmt.Errorf("no script runs: %w", p.err)}
	}
	both := take(p, p.replies(ctx, p.client.Pipeline, upstash.Cmd("EVAL", script, "0").Binary())[0].Array)
	p.unless(len(both) == 2, "%d results", len(both))
	for _, r := range both {
		text, err := r.Text()
		p.unless(err == nil && text == "OK", "%q, %v", text, err)
	}
	client, heard := p.overhear(p.token)
	p.replies(ctx, client.Pipeline, upstash.Cmd("EVAL", script, "0").Binary())
	var v [1]struct{ Result [2]string }
	err := json.Unmarshal(heard.body.Bytes(), &v)
	p.unless(err == nil, "%v", err)
	status, text := v[0].Result[0], v[0].Result[1]
	p.unless(text == "T0s=", "base64 was asked for, and the text OK is sent as %q", text)
	return fmt.Sprintf("the status is sent as %q, the text as %q", status, text)
}

// askEncoding asks for a text that is base64 itself: a server that ignores the
// question for base64 sends it as it is, and Bytes would be others, without an
// error.
func askEncoding(ctx context.Context, p *patient) string {
	const text = "QUJD"
	p.set(ctx, "text", text)
	cmd := upstash.Cmd("GET", p.key("text")).Binary()
	for _, way := range []struct {
		name string
		got  func() upstash.Reply
	}{
		{"a command", func() upstash.Reply { return p.do(ctx, cmd) }},
		{"a pipeline", func() upstash.Reply { return p.replies(ctx, p.client.Pipeline, cmd)[0] }},
		{"a transaction", func() upstash.Reply { return p.replies(ctx, p.client.MultiExec, cmd)[0] }},
	} {
		got := string(take(p, way.got().Bytes))
		p.unless(got == text, "%s is answered as if it had not asked for base64 or RESP2: its bytes are %q, not %q",
			way.name, got, text)
	}
	return "in a command, a pipeline and a transaction"
}

func askRefused(ctx context.Context, p *patient) string {
	p.set(ctx, "text", "a")
	var statuses []string
	for _, c := range []struct {
		what string
		cmd  upstash.Command
	}{
		{"unknown", upstash.Cmd("UPBLOOMNOSUCHCOMMAND")},
		{"too few arguments", upstash.Cmd("GET")},
		{"another type", upstash.Cmd("LPUSH", p.key("text"), "a")},
	} {
		if p.err != nil {
			return ""
		}
		_, err := p.client.Do(ctx, c.cmd)
		if noAnswer(err) {
			return p.fail(err)
		}
		server, ok := errors.AsType[*upstash.Error](err)
		if !ok {
			return p.unless(false, "%s: %v", c.what, err)
		}
		p.unless(upstash.SafeToRetry(err), "%s: status %d says that a refused command may have run", c.what,
			server.StatusCode)
		statuses = append(statuses, c.what+" "+strconv.Itoa(server.StatusCode))
	}
	return strings.Join(statuses, ", ")
}

func askReadYourWrites(ctx context.Context, p *patient) string {
	p.set(ctx, "fields", "")
	for i := range int64(10) {
		p.do(ctx, upstash.NewBitField(p.key("fields")).Set("u8", 64, i).Command())
		n := p.bits(ctx, upstash.NewBitField(p.key("fields")).Get("u8", 64).ReadOnly())
		p.unless(len(n) == 1 && n[0].Int64 == i, "a read of the nearest region missed write %d", i)
	}
	return "10 of 10"
}

// askRegion asks in several ways where the database is, because no way is
// documented.
func askRegion(ctx context.Context, p *patient) string {
	client, heard := p.overhear(p.token)
	p.sends(ctx, client, upstash.Cmd("GET", p.key("text")))
	var found []string
	for name, values := range heard.header {
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
		return strings.Join(found, "; ")
	}
	if p.write > 2*p.read+10*time.Millisecond {
		return fmt.Sprintf("it is not named, but a write takes %v more than a read: a region near here"+
			" answers reads, and the primary is elsewhere", p.write-p.read)
	}
	return p.fail(skipped{errors.New("the database does not name it; reads and writes are about as fast")})
}

// askWrongToken asks both paths, because some servers guard only the first.
func askWrongToken(ctx context.Context, p *patient) string {
	client, heard := p.overhear("upbloom-doctor")
	get := upstash.Cmd("GET", p.key("text"))
	for _, way := range []struct {
		name string
		send func() error
	}{
		{"a command", func() error { _, err := client.Do(ctx, get); return err }},
		{"a pipeline", func() error { _, err := client.Pipeline(ctx, get); return err }},
	} {
		if p.err != nil {
			return ""
		}
		err := way.send()
		forbidden := heard.status == http.StatusForbidden && json.Valid(heard.body.Bytes())
		if !forbidden && noAnswer(err) {
			return p.fail(err)
		}
		p.unless(forbidden || heard.status == http.StatusUnauthorized,
			"status %d to %s: whoever knows the URL may use the database", heard.status, way.name)
	}
	return "status " + strconv.Itoa(heard.status)
}

func askSyncToken(ctx context.Context, p *patient) string {
	client, heard := p.overhear(p.token)
	p.sends(ctx, client, upstash.Cmd("SET", p.key("text"), "a", "EX", seconds(scratchTTL)))
	if heard.header.Get("Upstash-Sync-Token") == "" {
		p.fail(errors.New("none: if the database has read regions, one of them may miss this process's last write"))
	}
	p.sends(ctx, client, upstash.Cmd("GET", p.key("text"))) // with that token
	return "sent with a write, taken with a read"
}

// askEviction asks for the policy by CONFIG or by INFO.
func askEviction(ctx context.Context, p *patient) string {
	policy := ""
	reply, err := p.client.Do(ctx, upstash.Cmd("CONFIG", "GET", "maxmemory-policy").Repeatable(true))
	if noAnswer(err) {
		return p.fail(err)
	}
	if err == nil {
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
		return "off"
	case "":
		return p.fail(skipped{errors.New("the database does not say: make sure in its settings that eviction is off")})
	}
	return p.fail(fmt.Errorf("%q: after an eviction the next Add makes an empty filter, which answers no to what"+
		" was added: turn eviction off, or set MustExist", policy))
}

// mostAway is how far a clock may be off. A Window asks the server for its time
// and allows for 2 s.
const mostAway = 2 * time.Second

func askClock(ctx context.Context, p *patient) string {
	start := time.Now()
	reply := p.do(ctx, upstash.Cmd("TIME"))
	p.because("not told, and a Window cannot be written without it")
	trip := time.Since(start)
	parts, err := reply.Array()
	p.unless(err == nil && len(parts) == 2, "%d parts, %v", len(parts), err)
	if p.err != nil {
		return ""
	}
	var n [2]int64
	for i, part := range parts {
		text, err := part.Text()
		if err == nil {
			n[i], err = strconv.ParseInt(text, 10, 64)
		}
		p.unless(err == nil, "%v", err)
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
		p.fail(errors.New(says))
	}
	return says
}

func askReadOnly(ctx context.Context, p *patient) string {
	if p.reads == "" {
		return p.fail(skipped{errors.New("set UPSTASH_REDIS_REST_READONLY_TOKEN or KV_REST_API_READ_ONLY_TOKEN")})
	}
	client, _ := p.overhear(p.reads)
	p.sends(ctx, client, upstash.NewBitField(p.key("fields")).Get("u53", 0).ReadOnly().Command())
	p.because("it cannot look up")
	if p.err != nil {
		return ""
	}
	_, err := client.Do(ctx, upstash.Cmd("SET", p.key("text"), "a", "EX", seconds(scratchTTL)))
	if noAnswer(err) {
		return p.fail(err)
	}
	p.unless(errors.Is(err, upstash.ErrNoPermission), "a write with it: %v", err)
	return "looks up, and cannot write"
}
