package engine

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// How a string is read in parts. Each part comes with the header and
// the birth number, read in the same atomic step: no part is of another filter.

// partScript returns the bytes ARGV[2] to ARGV[3] of the string behind the words.
var partScript = upstash.NewScript(LuaCheckHeader + `w[5] = redis.call('GETRANGE', KEYS[1], ARGV[2], ARGV[3])
return w`)

// A PartReader reads parts of the string with a birth number.
type PartReader struct {
	Rec   *Record
	Birth int64 // 0 is any
	// Near lets the nearest region answer, and remembers nothing it says.
	Near bool
}

// A Part is bytes of a string, and its words in the same step.
type Part struct {
	Bytes []byte
	Words
}

// Read returns the bytes from from up to, but without, to, or fewer if the
// string ends earlier. If the birth number is another, the error is
// ErrRecreated.
func (p PartReader) Read(ctx context.Context, from, to int) (part Part, err error) {
	args := []string{strconv.Itoa(from), strconv.Itoa(to - 1)}
	script := p.Rec.Script(partScript, nil, args...).Repeatable(true) // runs on the primary
	if p.Near {
		script = p.Rec.ReadOnlyScript(partScript, args...)
	}
	script = script.Binary().Timeout(partTimeout(to - from))
	part.Bytes, err = p.Rec.binary(ctx, script, func(reply upstash.Reply, err error) ([]byte, error) {
		part, err = p.judge(reply, err, to-from)
		return part.Bytes, err
	})
	return part, err
}

// readBare is Read for a Bare filter, whose parts prove nothing.
func (r *Record) readBare(ctx context.Context, from, to int) ([]byte, error) {
	cmd := upstash.Cmd("GETRANGE", r.Key, strconv.Itoa(from), strconv.Itoa(to-1)).Binary().
		Timeout(partTimeout(to - from))
	return r.binary(ctx, cmd, func(reply upstash.Reply, err error) ([]byte, error) {
		if err != nil {
			return nil, Explain(err)
		}
		return partIn(reply, to-from)
	})
}

// partTimeout returns how long a part of n bytes may take.
func partTimeout(n int) time.Duration { return time.Duration(n/partRate) * time.Second }

// binary sends a command whose answer has bytes. It asks for RESP2, and for
// base64 if the server does not send RESP2. judge takes the answer apart.
func (r *Record) binary(ctx context.Context, cmd upstash.Command,
	judge func(upstash.Reply, error) ([]byte, error),
) ([]byte, error) {
	var first error
	if !r.NoRESP2.Load() {
		part, err := judge(r.Client.Do(ctx, cmd))
		if err == nil || fault.NoAnswer(err) || IsAnswer(err) || isForbidden(err) {
			return part, err
		}
		first = err
	}
	replies, err := r.Client.Pipeline(ctx, cmd)
	if err == nil {
		var part []byte
		part, err = judge(replies[0], replies[0].Err())
		if err == nil {
			r.NoRESP2.Store(true)
		}
		if err == nil || IsAnswer(err) {
			return part, err
		}
	}
	if first != nil {
		return nil, first // the first says more
	}
	return nil, err
}

// isForbidden reports whether the server runs the command in no form: the token may
// not, or the database is full.
func isForbidden(err error) bool { return fault.IsDenied(err) || fault.Is(err, upstash.ErrOutOfMemory) }

// judge takes the answer of partScript apart.
func (p PartReader) judge(reply upstash.Reply, err error, most int) (Part, error) {
	if err != nil {
		return Part{}, p.Rec.failedAt(p.Near, err)
	}
	answers, err := reply.Array()
	if err != nil {
		return Part{}, p.Rec.failedAt(p.Near, err)
	}
	words := make([]upstash.NullInt64, min(len(answers), 4))
	for i := range words {
		n, err := answers[i].Int64()
		if err != nil {
			return Part{}, err
		}
		words[i] = upstash.NullInt64{Int64: n, Valid: true}
	}
	a := p.Rec.judgeWords(words, p.Near, false)
	switch {
	case a.Err != nil:
		return Part{}, a.Err
	case len(answers) != 5:
		return Part{}, WrongCount(len(answers), 5)
	case p.Birth != 0 && a.Birth != p.Birth:
		return Part{}, ErrRecreated
	}
	part, err := partIn(answers[4], most)
	return Part{part, Words{a.Birth, a.Kind}}, err
}

// partIn returns the bytes of a reply, most at most.
func partIn(reply upstash.Reply, most int) ([]byte, error) {
	part, err := reply.Bytes()
	if err != nil {
		return nil, Explain(err)
	}
	if len(part) > most {
		return nil, fault.Errorf("bloom: %w: a part of %d bytes, and %d were asked for",
			upstash.ErrBadResponse, len(part), most)
	}
	return part, nil
}

const interrupted = "the download was interrupted"

// Download reads the bytes of a string from from up to, but without, to, in
// parts, several at once, and passes each to put, one at a time. All parts are
// of the filter with the birth number; those of a Bare record prove nothing.
func (r *Record) Download(ctx context.Context, c Moves, birth int64, from, to int, put func(at int, part []byte)) error {
	read := r.readBare
	if r.Headed() {
		read = func(ctx context.Context, from, to int) ([]byte, error) {
			part, err := PartReader{r, birth, true}.Read(ctx, from, to)
			return part.Bytes, err
		}
	}
	var mu sync.Mutex
	return c.eachPart(ctx, interrupted, max(to-from, 0), func(ctx context.Context, _, a, b int) error {
		part, err := read(ctx, from+a, from+b)
		if err != nil {
			return orChanged(err)
		}
		if len(part) < b-a { // the string of a filter never gets shorter
			return changedError{}
		}
		mu.Lock()
		defer mu.Unlock()
		put(from+a, part)
		return nil
	})
}

// copyScript copies the string to KEYS[2], which expires after ARGV[2] seconds. A
// copy of an earlier attempt is as good. It returns the birth number and the
// length of the copy behind the words.
var copyScript = upstash.NewScript(LuaCheckHeader + `redis.call('COPY', KEYS[1], KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
w[5] = redis.call('BITFIELD_RO', KEYS[2], 'GET', 'u53', '64')[1]
w[6] = redis.call('STRLEN', KEYS[2])
return w`)

// maxStringBytes is the longest string of Redis.
const maxStringBytes = 512 << 20

// Fetch returns the string as it is at one moment. One script reads it if it is
// shorter than a part. Otherwise another script copies it to a scratch key, and
// the copy is read in parts and removed. birth and length are what was seen of
// the string.
func (r *Record) Fetch(ctx context.Context, c Moves, birth int64, length int, fix func()) ([]byte, error) {
	if length < c.PartBytes {
		fix()
		data, err := r.fetchWhole(ctx, c, birth, length)
		if err != errGrown {
			return data, err
		}
	}
	if r.Client.ReadOnly() {
		return nil, upstash.ErrReadOnly
	}
	twin := &Record{Client: r.Client, Key: r.Key + ":save:" + scratchName(), Meaning: r.Meaning, Header: r.Header}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
		defer cancel()
		_, _ = r.Client.Do(ctx, upstash.Cmd("UNLINK", twin.Key).Repeatable(true))
	}()
	a := r.RunScript(ctx, r.Script(copyScript, []string{twin.Key}, strconv.Itoa(int(scratchTTL/time.Second))).
		Repeatable(true).Timeout(serverTime(length)))
	made, err := a.Numbers(2)
	if err != nil {
		return nil, orChanged(err)
	}
	if made[0] != birth {
		return nil, changedError{}
	}
	if made[1] < 0 || made[1] > maxStringBytes {
		return nil, ErrNegative
	}
	fix()
	data := make([]byte, made[1])
	err = twin.Download(ctx, c, birth, 0, len(data), func(at int, part []byte) { copy(data[at:], part) })
	return data, err
}

// errGrown says that a string has become longer than a part.
var errGrown = errors.New("grown")

// fetchWhole is Fetch by one script.
func (r *Record) fetchWhole(ctx context.Context, c Moves, birth int64, length int) (data []byte, err error) {
	err = c.eachPart(ctx, interrupted, length, func(ctx context.Context, _, _, _ int) (err error) {
		part, err := PartReader{r, birth, true}.Read(ctx, 0, c.PartBytes)
		data = part.Bytes
		if len(data) == c.PartBytes { // after an error it has none
			return errGrown
		}
		return orChanged(err)
	})
	return data, err
}

// changedError is ErrRecreated of a part that a region may have sent.
type changedError struct{}

func (changedError) Error() string {
	return "bloom: the filter was deleted, replaced or created again during the call, or the nearest" +
		" region does not have all of it yet: call again, and use a client without" +
		" upstash.WithoutSyncToken"
}
func (changedError) Is(target error) bool { return target == ErrRecreated }

// orChanged is the error of a read in a call that has seen the filter before: if
// it is gone, or another one, it is an ErrRecreated.
func orChanged(err error) error {
	if IsAnswer(err) {
		return changedError{}
	}
	return err
}

// MeasureBare reads the length of a Bare filter's string. A STRLEN alone would
// go to the nearest region, which may be behind, and the parts after it: the
// BITFIELD brings both to the primary. If the server refuses the BITFIELD,
// because the token may not run it or the database is full, the STRLEN alone
// has to do.
func (r *Record) MeasureBare(ctx context.Context) (length int, err error) {
	cmds := []upstash.Command{upstash.Cmd("STRLEN", r.Key)}
	if !r.Client.ReadOnly() {
		cmds = append(cmds, upstash.NewBitField(r.Key).Get("u1", 0).Command())
	}
	replies, err := r.Client.Pipeline(ctx, cmds...)
	if fault.IsDenied(err) { // as a whole
		replies, err = r.Client.Pipeline(ctx, cmds[0])
	}
	if err != nil {
		return 0, Explain(err)
	}
	n, err := replies[0].Int64()
	switch {
	case err != nil:
		return 0, Explain(err)
	case n < 0:
		return 0, ErrNegative
	case n == 0:
		return 0, BareMissing{}
	}
	return int(n), nil
}
