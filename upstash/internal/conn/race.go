//go:build !wasm

package conn

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// openFunc opens a socket, as a net.Dialer's DialContext does.
type openFunc func(ctx context.Context, network, address string) (net.Conn, error)

// headStart is how long an address has before the next one is tried beside it:
// RFC 8305, section 5.
const headStart = 250 * time.Millisecond

// race dials the addresses one after another, each as soon as the one before it
// has failed or had its head start, and returns the first connection. So a
// silent address costs a moment, and not the whole time of a dial. A single
// address is dialled here: without a race, no goroutine and no timer delay the
// first answer of a process.
func race(ctx context.Context, open openFunc, addrs []string) (net.Conn, error) {
	if len(addrs) == 1 {
		return open(ctx, "tcp", addrs[0])
	}
	wait := headStart
	if deadline, ok := ctx.Deadline(); ok { // so that each gets its turn before it
		wait = min(wait, time.Until(deadline)/time.Duration(len(addrs)))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		c   net.Conn
		err error
	}
	results := make(chan result)
	running := 0
	next := time.NewTimer(0)
	defer next.Stop()
	var won net.Conn
	var firstErr error
	for running > 0 || len(addrs) > 0 {
		select {
		case <-next.C:
			if len(addrs) == 0 {
				continue
			}
			addr := addrs[0]
			addrs = addrs[1:]
			running++
			go func() {
				c, err := open(ctx, "tcp", addr)
				results <- result{c, err}
			}()
			next.Reset(wait)
		case r := <-results:
			running--
			switch {
			case r.err != nil:
				if firstErr == nil {
					firstErr = r.err
				}
				next.Reset(0)
			case won == nil:
				won, addrs = r.c, nil
				cancel() // the others end at once, and the loop waits for them
			default:
				_ = r.c.Close()
			}
		}
	}
	if won == nil {
		return nil, firstErr
	}
	return won, nil
}

// byTurns returns the addresses with both families alternating, and with the
// resolver's order in each.
func byTurns(ips []netip.Addr) []netip.Addr {
	var first, other []netip.Addr
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() == ips[0].Unmap().Is4() {
			first = append(first, ip)
		} else {
			other = append(other, ip)
		}
	}
	turns := make([]netip.Addr, 0, len(ips))
	for i := range ips {
		if i < len(first) {
			turns = append(turns, first[i])
		}
		if i < len(other) {
			turns = append(turns, other[i])
		}
	}
	return turns
}
