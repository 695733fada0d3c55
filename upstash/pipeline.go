package upstash

import "context"

// Pipeline sends several commands in one request and returns a reply for each,
// in order. It is not atomic: commands of other clients may run in between. If
// a command fails, the others still run; its [Reply] carries the error. Each
// command is billed. Without commands nothing is sent.
//
// The batch is tried again as a whole or not at all. After an attempt of
// unknown outcome it is tried again only if every command in it is repeatable.
// If the server runs some of the commands and refuses others, even for a limit
// such as [ErrQuota], the call has its answer and is not tried again: the
// commands that ran would run twice. [SafeToRetry] of a [Reply.Err] reports
// whether that command can be sent by itself. Only if the server refused a
// [Script] for its form, and did not run it, does it follow by itself in
// another request.
func (c *Client) Pipeline(ctx context.Context, cmds ...Command) ([]Reply, error) {
	x, err := c.batch("/pipeline", "PIPELINE", cmds)
	if err != nil || len(cmds) == 0 {
		return nil, err
	}
	for i := range cmds {
		if cmds[i].script != nil {
			x.setForm(i, c.scripts.form(cmds[i]))
		}
	}
	return c.many(ctx, x, cmds)
}

// MultiExec is [Client.Pipeline] as one transaction: no command of another
// client runs in between. Here too, if a command fails while it runs, the
// others still run. If the server discards the whole transaction, MultiExec
// returns a [*Error].
func (c *Client) MultiExec(ctx context.Context, cmds ...Command) ([]Reply, error) {
	x, err := c.batch("/multi-exec", "MULTI-EXEC", cmds)
	if err != nil || len(cmds) == 0 {
		return nil, err
	}
	for i := range cmds {
		if cmds[i].script != nil {
			// The others would run without a script that is refused for its form.
			x.setForm(i, c.scripts.form(cmds[i])&^bySum)
		}
	}
	return c.many(ctx, x, cmds)
}

// batch makes the call of several commands, which has no body yet.
func (c *Client) batch(path, name string, cmds []Command) (*call, error) {
	x := &call{
		name: name, commands: len(cmds), path: path,
		traits: traitRead | traitRepeatable,
	}
	for _, cmd := range cmds {
		if err := c.check(cmd); err != nil {
			return nil, err
		}
		if cmd.raw != nil {
			return nil, argumentError(cmd.name, "a command with a raw body has a request of its own: use Do")
		}
		x.timeout = max(x.timeout, cmd.timeout)
		// The batch only reads, or is repeatable, if all of its commands are;
		// it is a script if one of them is.
		x.traits = x.traits&cmd.traits&(traitRead|traitRepeatable) | (x.traits|cmd.traits)&traitScript
		x.base64 = x.base64 || cmd.binary
	}
	return x, nil
}

// setForm sets the form of the script of command i.
func (x *call) setForm(i int, form scriptForm) {
	if x.scriptForms == nil {
		x.scriptForms = make([]scriptForm, x.commands)
	}
	x.scriptForms[i] = form
}

// bodies returns the JSON of each command.
func (x *call) bodies(cmds []Command) [][]byte {
	bodies := make([][]byte, len(cmds))
	for i, cmd := range cmds {
		if bodies[i] = cmd.body(); cmd.script != nil {
			bodies[i] = cmd.script.as(x.scriptForms[i], bodies[i])
		}
	}
	return bodies
}

// many sends the call. If the server refuses the form of some scripts of a
// pipeline, these are sent once more, without the other commands.
func (c *Client) many(ctx context.Context, x *call, cmds []Command) ([]Reply, error) {
	bodies := x.bodies(cmds)
	x.body = joinCommands(bodies)
	if err := c.run(ctx, x); err != nil {
		return nil, err
	}
	replies := x.repliesTo(cmds, bodies)
	if x.scriptForms == nil || x.path != "/pipeline" {
		return replies, nil
	}
	var at []int
	var again []Command
	var forms []scriptForm
	for i, cmd := range cmds {
		if cmd.script == nil {
			continue
		}
		form := x.scriptForms[i]
		server, bad := replies[i].of().err.(*Error)
		if !bad {
			c.scripts.ran(cmd.script, form)
		} else if next, ok := c.scripts.next(cmd.script, form, server); ok {
			at, again, forms = append(at, i), append(again, cmd), append(forms, next)
		}
	}
	if len(again) == 0 {
		return replies, nil
	}
	var rest []Reply
	y, err := c.batch(x.path, x.name, again)
	if err == nil {
		y.scriptForms, y.earlier = forms, x.earlier
		rest, err = c.many(ctx, y, again)
	}
	for n, i := range at {
		if err != nil {
			replies[i] = failedReply(cmds[i].name, err)
		} else {
			replies[i] = rest[n]
		}
	}
	return replies, nil
}

func joinCommands(bodies [][]byte) []byte {
	size := 1
	for _, b := range bodies {
		size += len(b) + 1
	}
	dst := append(make([]byte, 0, size), '[')
	for i, b := range bodies {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, b...)
	}
	return append(dst, ']')
}
