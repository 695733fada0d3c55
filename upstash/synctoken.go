package upstash

import (
	"math"
	"sync"
)

// syncTokens keeps the token of the latest state this client has seen, for
// read-your-writes on a global database. Tokens cannot be compared, so the
// order of requests decides which replaces which. Of two overlapping writes,
// the one whose answer comes last wins, even if it is the older. Only
// serializing writes would avoid this, and it is not worth the wait.
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

// store keeps the token of an answer to a request that was sent with the token
// sent and its mark. The token of a write replaces any. That of a read replaces
// only the one it was sent with: the read may come from a replica that lacks a
// write that ended meanwhile.
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

// noMark is the mark of a read that was sent with another token than the
// client's: its answer may be older than what the client has seen.
const noMark = math.MaxUint64

// maxSyncToken is far above the length of the API's tokens. It bounds what each
// request carries along.
const maxSyncToken = 1 << 10

// isSyncToken reports whether token can be sent back in a header. Any other
// would fail every call from then on.
func isSyncToken(token string) bool {
	for i := 0; i < len(token); i++ {
		if token[i] < ' ' || token[i] > '~' {
			return false
		}
	}
	return token != "" && len(token) <= maxSyncToken
}
