package upstash

import "context"

// Pipeline sends several commands in one request and returns a reply for each,
// in order. It is not atomic: commands of other clients may run in between, and
// a command that fails stops none of the others; its Reply carries the error.
// Each command is billed. Without commands nothing is sent.
//
// The batch is tried again as a whole or not at all. After an attempt of
// unknown outcome it is tried again only if every command in it is repeatable.
// If the server runs some of the commands and refuses others, even for a limit
// such as ErrQuota, the call has its answer and is not tried again: the
// commands that ran would run twice. SafeToRetry of Reply.Err says whether one
// that was refused can be sent by itself.
func (c *Client) Pipeline(ctx context.Context, cmds ...Command) ([]Reply, error) {
	return c.many(ctx, "/pipeline", "PIPELINE", cmds)
}

// MultiExec is Pipeline as one transaction: no command of another client runs
// in between. Here too a command that fails while it runs stops none of the
// others. If the server discards the whole transaction, MultiExec returns a
// *Error.
func (c *Client) MultiExec(ctx context.Context, cmds ...Command) ([]Reply, error) {
	return c.many(ctx, "/multi-exec", "MULTI-EXEC", cmds)
}

func (c *Client) many(ctx context.Context, path, name string, cmds []Command) ([]Reply, error) {
	if len(cmds) == 0 {
		return nil, nil
	}
	x := call{
		name: name, commands: len(cmds), path: path,
		traits: traitRead | traitRepeatable,
	}
	size := 2
	for _, cmd := range cmds {
		if err := c.check(cmd); err != nil {
			return nil, err
		}
		if cmd.raw != nil {
			return nil, argumentError(cmd.name, "a command with a raw body has a request of its own: use Do")
		}
		size += len(cmd.body()) + 1
		x.timeout = max(x.timeout, cmd.timeout)
		// The batch only reads, or is repeatable, if all of its commands are;
		// it is a script if one of them is.
		x.traits = x.traits&cmd.traits&(traitRead|traitRepeatable) | (x.traits|cmd.traits)&traitScript
		x.base64 = x.base64 || cmd.binary
	}
	x.body = joinCommands(make([]byte, 0, size), cmds)
	if err := c.run(ctx, &x); err != nil {
		return nil, err
	}
	return x.repliesTo(cmds), nil
}

func joinCommands(dst []byte, cmds []Command) []byte {
	dst = append(dst, '[')
	for i, cmd := range cmds {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, cmd.body()...)
	}
	return append(dst, ']')
}
