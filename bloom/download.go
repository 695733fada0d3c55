package bloom

import (
	"context"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// How a filter's string is read in parts. Each part comes with the header and
// the birth number, read in the same atomic step: no part is of another filter.

// partScript returns the header, the birth number, and the bytes ARGV[2] to
// ARGV[3] of the string.
var partScript = upstash.NewScript(engine.LuaCheckHeader +
	`return {w[1], w[3], redis.call('GETRANGE', KEYS[1], ARGV[2], ARGV[3])}`)

// A partReader reads parts of the filter with a birth number.
type partReader struct {
	rec   *record
	birth int64
	// near lets the nearest region answer, and remembers nothing it says.
	near bool
}

// read returns the bytes from `from` up to, but without, `to`, or fewer if the
// string ends earlier. If the birth number is another, the error is
// ErrRecreated.
func (p partReader) read(ctx context.Context, from, to int) ([]byte, error) {
	args := []string{strconv.Itoa(from), strconv.Itoa(to - 1)}
	script := p.rec.Script(partScript, nil, args...).Repeatable(true) // runs on the primary
	if p.near {
		script = p.rec.ReadOnlyScript(partScript, args...)
	}
	script = script.Binary().Timeout(partTimeout(to - from))
	return p.rec.binary(ctx, script, func(reply upstash.Reply, err error) ([]byte, error) {
		return p.judge(reply, err, to-from)
	})
}

// readBare is read for a Bare filter, whose parts prove nothing.
func (r *record) readBare(ctx context.Context, from, to int) ([]byte, error) {
	cmd := upstash.Cmd("GETRANGE", r.Key, strconv.Itoa(from), strconv.Itoa(to-1)).Binary().
		Timeout(partTimeout(to - from))
	return r.binary(ctx, cmd, func(reply upstash.Reply, err error) ([]byte, error) {
		if err != nil {
			return nil, engine.Explain(err)
		}
		return partIn(reply, to-from)
	})
}

// partTimeout returns how long a part of n bytes may take.
func partTimeout(n int) time.Duration { return time.Duration(n/partRate) * time.Second }

// binary sends a command whose answer has bytes. It asks for RESP2, and for
// base64 if the server does not send RESP2. judge takes the answer apart.
func (r *record) binary(ctx context.Context, cmd upstash.Command,
	judge func(upstash.Reply, error) ([]byte, error),
) ([]byte, error) {
	var first error
	if !r.NoRESP2.Load() {
		part, err := judge(r.Client.Do(ctx, cmd))
		if err == nil || fault.NoAnswer(err) || engine.NoFilterHere(err) || fault.Is(err, ErrRecreated) {
			return part, err
		}
		first = err
	}
	replies, err := r.Client.Pipeline(ctx, cmd)
	if err == nil {
		var part []byte
		if part, err = judge(replies[0], replies[0].Err()); err == nil {
			r.NoRESP2.Store(true)
			return part, nil
		}
	}
	if first != nil {
		return nil, first // the first says more
	}
	return nil, err
}

// judge takes the answer of partScript apart.
func (p partReader) judge(reply upstash.Reply, err error, most int) ([]byte, error) {
	if err != nil {
		return nil, p.failed(err)
	}
	answers, err := reply.Array()
	if err != nil {
		return nil, p.failed(err)
	}
	if len(answers) == 0 {
		return nil, engine.WrongCount(0, 3)
	}
	word, err := replyWord(answers[0])
	if err != nil {
		return nil, err
	}
	if p.near {
		err = p.rec.Compare(word)
	} else {
		err = p.rec.Learn(word)
	}
	if err != nil {
		return nil, err
	}
	if len(answers) != 3 {
		return nil, engine.WrongCount(len(answers), 3)
	}
	birth, err := replyWord(answers[1])
	switch {
	case err != nil:
		return nil, err
	case birth != p.birth:
		return nil, ErrRecreated
	}
	return partIn(answers[2], most)
}

func (p partReader) failed(err error) error {
	if p.near {
		return engine.Explain(err)
	}
	return p.rec.Failed(err)
}

// partIn returns the bytes of a reply, most at most.
func partIn(reply upstash.Reply, most int) ([]byte, error) {
	part, err := reply.Bytes()
	if err != nil {
		return nil, engine.Explain(err)
	}
	if len(part) > most {
		return nil, fault.Errorf("bloom: %w: a part of %d bytes, and %d were asked for",
			upstash.ErrBadResponse, len(part), most)
	}
	return part, nil
}

// replyWord is fieldWord for a reply of a single number.
func replyWord(reply upstash.Reply) (int64, error) {
	n, err := reply.Int64()
	if err != nil {
		return 0, err
	}
	return engine.FieldWord(upstash.NullInt64{Int64: n, Valid: true})
}
