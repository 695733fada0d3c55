package engine

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// InParts sends commands in one request, or in several, one after the other, if
// upstash.WithMaxRequest asks for it. take gets each reply as it comes, or the
// error of its whole request: then nothing more is sent, and the errors of the
// rest say so. It returns the number of requests.
func InParts(ctx context.Context, c *upstash.Client, cmds []upstash.Command,
	take func(i int, reply upstash.Reply, err error),
) (requests int64) {
	var failed error
	for from := 0; from < len(cmds); {
		to, size := from, len("]")
		for to < len(cmds) && (to == from || size+cmds[to].Size()+len(",") <= door.MaxRequest(c)) {
			size += cmds[to].Size() + len(",") // before the first one it is a bracket
			to++
		}
		replies, err := make([]upstash.Reply, to-from), failed
		if failed == nil {
			requests++
			if got, e := c.Pipeline(ctx, cmds[from:to]...); e == nil {
				replies = got
			} else {
				err, failed = e, fault.Unsent(e)
			}
		}
		for i, reply := range replies {
			take(from+i, reply, err)
		}
		from = to
	}
	return requests
}

// Pipeline is InParts for commands of which none counts if one request fails.
func Pipeline(ctx context.Context, c *upstash.Client, cmds []upstash.Command) (replies []upstash.Reply, err error) {
	InParts(ctx, c, cmds, func(_ int, reply upstash.Reply, failed error) {
		replies = append(replies, reply)
		if err == nil {
			err = failed
		}
	})
	return replies, Explain(err)
}
