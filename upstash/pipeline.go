package upstash

import "context"

// Pipeline sends several commands in one request and returns a reply for each,
// in order. It is not atomic: commands of other clients may run in between, and
// a command that fails stops none of the others; its Reply carries the error.
// Each command is billed. No command at all sends nothing.
//
// It is repeated after an attempt of unknown outcome only if every command in
// it is repeatable.
func (c *Client) Pipeline(ctx context.Context, cmds ...Command) ([]Reply, error) {
	return c.many(ctx, "/pipeline", "PIPELINE", cmds)
}

// MultiExec is Pipeline as one transaction: all commands run with nothing in
// between. A command that fails while it runs still stops none of the others.
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
		// All must be reads, all must be repeatable; one script is enough.
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
