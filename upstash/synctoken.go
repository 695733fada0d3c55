package upstash

import "sync/atomic"

// syncTokens keeps the token of the latest state this client has seen, for
// read-your-writes on a global database. Tokens are opaque: they cannot be
// compared, so what replaces what is decided by the order of requests.
type syncTokens struct {
	current atomic.Pointer[string]
}

// load gives the token to send, "" at first, and a mark for store.
func (t *syncTokens) load() (string, *string) {
	p := t.current.Load()
	if p == nil {
		return "", nil
	}
	return *p, p
}

// store keeps the token that answered a request which was sent with mark. The answer
// to a read may come from a replica behind a write that finished meanwhile, so it
// takes only the place of the token that it was sent with. A write's token
// always counts.
func (t *syncTokens) store(token string, mark *string, read bool) {
	if token == "" || mark != nil && *mark == token {
		return
	}
	kept := token // on the heap from here on only
	if read {
		t.current.CompareAndSwap(mark, &kept)
		return
	}
	t.current.Store(&kept)
}
