package upstash

import "sync/atomic"

// syncTokens keeps the token of the latest state that this client has seen, for
// read-your-writes on a global database. Tokens are opaque and cannot be
// compared, so the order of requests decides which token replaces which. Of two
// writes that overlap, the one whose answer comes last wins, even if it is the
// older one. Nothing but sending them one after the other would avoid that, and
// the second would have to wait.
type syncTokens struct {
	current atomic.Pointer[string]
}

// load returns the token to send, "" at first, and a mark for store.
func (t *syncTokens) load() (string, *string) {
	p := t.current.Load()
	if p == nil {
		return "", nil
	}
	return *p, p
}

// store keeps the token of the answer to a request that was sent with mark. The
// answer to a read may come from a replica that lacks a write which ended
// meanwhile. So the token of a read replaces only the one that the read was
// sent with; the token of a write replaces any.
func (t *syncTokens) store(token string, mark *string, read bool) {
	if !isSyncToken(token) || mark != nil && *mark == token {
		return
	}
	kept := token // allocates, and not before here
	if read {
		t.current.CompareAndSwap(mark, &kept)
		return
	}
	t.current.Store(&kept)
}

// maxSyncToken is far above the length of the API's tokens. It bounds what each
// request carries along.
const maxSyncToken = 1 << 10

// isSyncToken reports whether token can be sent back in a header. One that
// cannot would fail every call from then on.
func isSyncToken(token string) bool {
	for i := 0; i < len(token); i++ {
		if token[i] < ' ' || token[i] > '~' {
			return false
		}
	}
	return token != "" && len(token) <= maxSyncToken
}
