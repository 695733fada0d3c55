//go:build !wasm

package conn

import "net"

// records passes on the input of TLS, and keeps track of the records in it: RFC
// 8446, section 5.1.
type records struct {
	net.Conn
	head [5]byte
	have int // bytes of the head
	left int // bytes of the record still to come
}

func (r *records) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.pass(p[:n])
	return n, err
}

func (r *records) pass(p []byte) {
	for len(p) > 0 {
		if r.left > 0 {
			n := min(r.left, len(p))
			r.left, p = r.left-n, p[n:]
			continue
		}
		n := copy(r.head[r.have:], p)
		r.have, p = r.have+n, p[n:]
		if r.have == len(r.head) {
			r.have, r.left = 0, int(r.head[3])<<8|int(r.head[4])
		}
	}
}

// partial reports whether the last record has begun to come and is incomplete.
func (r *records) partial() bool { return r.have > 0 || r.left > 0 }
