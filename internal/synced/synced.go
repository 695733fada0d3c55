// Package synced says how the calls of an operation of package bloom use the
// sync tokens of their client. A client sends the token of the answer that came
// last. That may be the late answer to an older write, and its token would bring
// an older state of the database back.
package synced

import "context"

// An Operation is several calls of which the later ones must see at least what
// the first ones saw.
type Operation struct {
	token string
	fixed bool
	looks bool
}

type key struct{}

// With returns a context whose calls belong to the operation.
func With(ctx context.Context, o *Operation) context.Context {
	return context.WithValue(ctx, key{}, o)
}

// looking is an operation without a token of its own.
var looking = Operation{fixed: true, looks: true}

// Looking returns a context whose calls change nothing, although their commands
// count as writes. The client does not keep their tokens: a late one would take
// the place of a newer one, and a region that has all of the client's writes
// would have to wait for those of others.
func Looking(ctx context.Context) context.Context { return With(ctx, &looking) }

// Fix ends the operation's first calls, of which one at a time may run. Any
// number of those that follow may run at once.
func (o *Operation) Fix() { o.fixed = true }

// Take returns the operation of a context, or nil, and a context without it: its
// token belongs to one database, and an observer may use the context for
// another.
func Take(ctx context.Context) (context.Context, *Operation) {
	o, _ := ctx.Value(key{}).(*Operation)
	if o != nil {
		ctx = context.WithValue(ctx, key{}, (*Operation)(nil))
	}
	return ctx, o
}

// Token returns the sync token that a call has to send, or "" for the client's
// own.
func (o *Operation) Token() string {
	if o == nil {
		return ""
	}
	return o.token
}

// Looks reports whether the calls change nothing.
func (o *Operation) Looks() bool { return o != nil && o.looks }

// Answered is called with the sync token of an answer to a call. It is no older
// than the one that was sent.
func (o *Operation) Answered(token string) {
	if o != nil && !o.fixed {
		o.token = token
	}
}
