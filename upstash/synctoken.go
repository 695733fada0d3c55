package upstash

import "sync"

// syncTokens keeps the token of the latest state that this client has seen, for
// read-your-writes on a global database. Tokens are opaque and cannot be
// compared, so the order of requests decides which token replaces which. Of two
// writes that overlap, the one whose answer comes last wins, even if it is the
// older one. Nothing but sending them one after the other would avoid that, and
// the second would have to wait.
type syncTokens struct {
	mu      sync.Mutex // an atomic pointer would be one allocation more for each token
	current string
	version uint64 // counts the tokens
}

// load returns the token to send, "" at first, and a mark for store.
func (t *syncTokens) load() (token string, mark uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current, t.version
}

// store keeps the token of the answer to a request that was sent with another one
// and its mark. The answer to a read may come from a replica that lacks a write
// which ended meanwhile. So the token of a read replaces only the one that the
// read was sent with; the token of a write replaces any.
func (t *syncTokens) store(token, sent string, mark uint64, read bool) {
	if token == sent || !isSyncToken(token) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !read || mark == t.version {
		t.current = token
		t.version++
	}
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
