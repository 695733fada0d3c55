package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// The results of a check.
const (
	found    = "ok"      // as upbloom needs it
	notice   = "note"    // upbloom works without it, or it is only information
	broken   = "FAIL"    // a promise would not hold
	notAsked = "skipped" // it could not be asked
)

// finding is the result of one check, and its JSON.
type finding struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"`
	Says    string `json:"says"`
	Needs   string `json:"needs,omitempty"` // what hangs on it, if it failed

	err error // of the check, or nil
}

// check asks the database one thing. If the patient has an error afterwards, that
// is a FAIL if upbloom needs the thing, otherwise a note.
type check struct {
	name string
	// needs is what of upbloom hangs on it: its types by their names in Go, and
	// the program's commands. A check without it is only information.
	needs string
	ask   func(context.Context, *patient) (says string)
}

// patient is the database under examination.
type patient struct {
	a      *app // counts the attempts
	client *upstash.Client
	base   string // of all keys of doctor
	prefix string // of those of now: base, and from the second on a number
	brief  bool   // a recording must stay small
	large  bool   // check limits, which takes much memory

	url, token  string
	reads       string        // the token for reads alone, or ""
	read, write time.Duration // round trips

	uncleared []string        // prefixes of keys that could not be removed
	made      map[string]bool // keys that several checks read

	needs string // what hangs on the step of the check that failed, if it has steps
	err   error  // the first of the check that is made: after it nothing more is sent
}

// beginAnew gives the next checks new keys. It reads some times before: if every
// fifth answer is lost, say, another one is lost from then on.
func (p *patient) beginAnew(ctx context.Context, times int) {
	if p.clear(ctx, p.prefix) != nil {
		p.uncleared = append(p.uncleared, p.prefix)
	}
	for range times {
		_, _ = p.client.Do(ctx, upstash.Cmd("GET", p.key("text")))
	}
	n, _ := strconv.Atoi(strings.Trim(p.prefix[len(p.base):], ":"))
	p.prefix, p.made = p.base+strconv.Itoa(n+1)+":", nil
}

// isSilent reports whether the database answers none of three reads.
func (p *patient) isSilent(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for range 3 {
		if _, err := p.client.Do(ctx, upstash.Cmd("GET", p.key("text"))); !noAnswer(err) {
			return false
		}
	}
	return true
}

// once makes a key that several checks read.
func (p *patient) once(name string, makes func()) {
	if p.err != nil || p.made[name] {
		return
	}
	if makes(); p.err == nil {
		if p.made == nil {
			p.made = make(map[string]bool)
		}
		p.made[name] = true
	}
}

// fail fails the check, if it has not failed before. It returns "", for a check to
// return that has no more to say.
func (p *patient) fail(err error) string {
	if p.err == nil {
		p.err = err
	}
	return ""
}

// unless fails the check, as fail does, if an answer is not right.
func (p *patient) unless(right bool, format string, args ...any) string {
	if !right {
		p.fail(fmt.Errorf("%w: "+format, append([]any{errWrong}, args...)...))
	}
	return ""
}

// because says what the error of the check means, if it has one. That there was no
// answer means nothing.
func (p *patient) because(text string) {
	if p.err != nil && !noAnswer(p.err) {
		p.err = fmt.Errorf("%s: %w", text, p.err)
	}
}

// take returns what get returns, and its error fails the check. If that has failed
// before, it does not call get.
func take[T any](p *patient, get func() (T, error)) (v T) {
	if p.err == nil {
		v, p.err = get()
	}
	return v
}

// do sends a command.
func (p *patient) do(ctx context.Context, cmd upstash.Command) upstash.Reply {
	return p.sends(ctx, p.client, cmd)
}

func (p *patient) sends(ctx context.Context, by *upstash.Client, cmd upstash.Command) upstash.Reply {
	return take(p, func() (upstash.Reply, error) { return by.Do(ctx, cmd) })
}

// bits sends a BITFIELD.
func (p *patient) bits(ctx context.Context, b *upstash.BitField) []upstash.NullInt64 {
	return take(p, func() ([]upstash.NullInt64, error) { return p.client.BitField(ctx, b) })
}

// replies sends commands by send, a Pipeline or a MultiExec. There are as many
// replies as commands.
func (p *patient) replies(
	ctx context.Context, send func(context.Context, ...upstash.Command) ([]upstash.Reply, error), cmds ...upstash.Command,
) []upstash.Reply {
	replies := take(p, func() ([]upstash.Reply, error) { return send(ctx, cmds...) })
	return append(replies, make([]upstash.Reply, len(cmds)-len(replies))...)
}

// scratchTTL is the time to live of doctor's keys, in case doctor is
// interrupted.
const scratchTTL = 10 * time.Minute

// emptyTTL is how long a key lives that clear has emptied: longer than a request
// is on its way.
const emptyTTL = time.Minute

// scratchNames are the ends of all keys of the checks. Package bloom names the
// parts of an upload, and removes them itself.
var scratchNames = []string{
	"text", "copy", "fields", "many", "large", "none", "bytes", "filter", "eval",
	windowKind, scalableKind, cuckooKind, shardedKind + ":0",
}

// key returns a scratch key.
func (p *patient) key(name string) string { return p.prefix + name }

// set makes a scratch key, which expires.
func (p *patient) set(ctx context.Context, name, value string) {
	reply := p.do(ctx, upstash.Cmd("SET", p.key(name), value, "EX", seconds(scratchTTL)))
	status := take(p, reply.Text)
	p.unless(status == "OK", "SET answers %q", status)
	p.a.wrote = p.a.wrote || !upstash.SafeToRetry(p.err)
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// errWrong is the error of a check if upbloom does not rely on such an answer.
var errWrong = errors.New("another answer than Redis gives")

// skipped is the error of a check that could not be made.
type skipped struct{ error }

// errLost is the error of a check that did not get all its answers.
var errLost = errors.New("no answer")

// clear removes the scratch keys. After an interrupt or a lost answer it empties
// them and lets them expire: a request that is still on its way may write to one
// later, and would make it again without a TTL.
func (p *patient) clear(ctx context.Context, prefixes ...string) error {
	onItsWay := ctx.Err() != nil || atomic.LoadInt32(&p.a.lost) == 1
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var keys []string
	var empty []upstash.Command
	for _, prefix := range prefixes {
		for _, name := range scratchNames {
			keys = append(keys, prefix+name)
			empty = append(empty, upstash.Cmd("SET", prefix+name, "", "EX", seconds(emptyTTL)).Repeatable(true))
		}
	}
	if onItsWay {
		replies, err := p.client.Pipeline(ctx, empty...)
		for _, r := range replies {
			err = cmp.Or(err, r.Err())
		}
		return err
	}
	_, err := p.client.Do(ctx, upstash.Cmd("UNLINK", keys...).Repeatable(true))
	return err
}

// fields runs a BITFIELD on a scratch key. It makes the key first, with its
// TTL.
func (p *patient) fields(ctx context.Context, name string, b *upstash.BitField) []upstash.NullInt64 {
	p.do(ctx, upstash.Cmd("SET", p.key(name), "", "EX", seconds(scratchTTL), "NX").Repeatable(true))
	return p.bits(ctx, b)
}

// eval runs a script on scratch keys, with a TTL for what it makes.
func (p *patient) eval(ctx context.Context, script string, ttl time.Duration, names ...string) []upstash.NullInt64 {
	args := []string{script, strconv.Itoa(len(names))}
	for _, name := range names {
		args = append(args, p.key(name))
	}
	reply := p.do(ctx, upstash.Cmd("EVAL", append(args, seconds(ttl))...).Repeatable(true))
	return take(p, func() ([]upstash.NullInt64, error) { return reply.Ints(nil) })
}

// allBytes returns a value with each byte in it.
func (p *patient) allBytes() []byte {
	value := make([]byte, 1_000_000)
	if p.brief {
		value = value[:1<<10]
	}
	for i := range value {
		value[i] = byte(i ^ i>>8)
	}
	return value
}

// An overhearer keeps of an answer what package upstash does not show.
type overhearer struct {
	http.RoundTripper
	status int
	header http.Header
	body   bytes.Buffer
}

func (o *overhearer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	o.status, o.header = resp.StatusCode, resp.Header
	o.body.Reset()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &o.body), resp.Body}
	return resp, nil
}

// overhear returns a client with a token, which sends each request once, and what
// it hears. It is in no recording.
func (p *patient) overhear(token string) (*upstash.Client, *overhearer) {
	// The token is for this host alone. A proxy of plain http would read it.
	o := &overhearer{RoundTripper: &http.Transport{DisableKeepAlives: true, Proxy: func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme != "https" {
			return nil, nil
		}
		return httptransport.ProxyFromEnvironment(r)
	}}}
	client := take(p, func() (*upstash.Client, error) {
		return upstash.New(p.url, token, slices.Concat(p.a.options, []upstash.Option{
			upstash.WithTransport(httptransport.New(&http.Client{Transport: o})),
			upstash.WithObserver(p.a.attempted), upstash.WithRetry(0),
		})...)
	})
	return client, o
}

// isOfServer reports whether an error comes from an answer that was whole, and not
// that of a gateway which waits for the database.
func isOfServer(err error) bool {
	status := 0
	if e, ok := errors.AsType[*upstash.Error](err); ok {
		status = e.StatusCode
	} else if e, ok := errors.AsType[*upstash.CallError](err); ok {
		status = e.StatusCode
	}
	if status/100 == 2 { // else an earlier attempt is in doubt
		return errors.Is(err, upstash.ErrBadResponse)
	}
	return status != 0 && !isOfGateway(status)
}

// isOfGateway reports whether a status says that the database did not answer in
// time, or not now.
func isOfGateway(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// info returns the reply to INFO, or "" if the database does not know it.
func (p *patient) info(ctx context.Context) string {
	reply, err := p.client.Do(ctx, upstash.Cmd("INFO").Repeatable(true))
	if noAnswer(err) {
		p.fail(err)
	}
	if err != nil {
		return ""
	}
	text, _ := reply.Text()
	return text
}
