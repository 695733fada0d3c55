//go:build !wasm

package conn

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// address is how a simulated address behaves. It answers a dial after a time,
// with an error or a connection. If the time is 0, it never answers.
type address struct {
	after time.Duration
	err   error
}

var errRefused = errors.New("refused")

// network is a simulated network.
type network struct {
	addresses map[string]address
	mu        sync.Mutex
	dialled   []string
	open      int
}

func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, addr)
	n.mu.Unlock()
	a := n.addresses[addr]
	if a.after == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(a.after) // ignores ctx, as if it were too late to stop
	if a.err != nil {
		return nil, a.err
	}
	near, far := net.Pipe()
	_ = far.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open++
	return &madeUp{near, addr, n}, nil
}

type madeUp struct {
	net.Conn
	addr string
	n    *network
}

func (c *madeUp) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.open--
	return c.Conn.Close()
}

// TestRace runs on a virtual clock. An address that never answers must not use
// up the time of the others.
func TestRace(t *testing.T) {
	dead, slow := address{}, address{after: 700 * time.Millisecond}
	fast, refuses := address{after: time.Millisecond}, address{time.Millisecond, errRefused}
	for _, tt := range []struct {
		name    string
		addrs   []address // named a, b, ...
		timeout time.Duration
		want    string // the address, or "" for an error
		took    time.Duration
		err     error
	}{
		{"one", []address{fast}, time.Second, "a", time.Millisecond, nil},
		{"the first answers", []address{fast, fast}, time.Second, "a", time.Millisecond, nil},
		{"a dead first", []address{dead, fast}, time.Second, "b", 251 * time.Millisecond, nil},
		{"little time", []address{dead, fast}, 100 * time.Millisecond, "b", 51 * time.Millisecond, nil},
		{"two dead", []address{dead, dead, fast}, time.Second, "c", 501 * time.Millisecond, nil},
		{"the first refuses", []address{refuses, fast}, time.Second, "b", 2 * time.Millisecond, nil},
		{"a slow first wins", []address{slow, dead}, time.Second, "a", 700 * time.Millisecond, nil},
		{"a slow first loses", []address{slow, fast}, time.Second, "b", 700 * time.Millisecond, nil},
		{"all refuse", []address{refuses, refuses}, time.Second, "", 2 * time.Millisecond, errRefused},
		{"all dead", []address{dead, dead}, time.Second, "", time.Second, context.DeadlineExceeded},
		{"no limit", []address{dead, fast}, 0, "b", 251 * time.Millisecond, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{addresses: map[string]address{}}
				var names []string
				for i, a := range tt.addrs {
					names = append(names, string(rune('a'+i)))
					n.addresses[names[i]] = a
				}
				ctx := t.Context()
				if tt.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.timeout)
					defer cancel()
				}
				start := time.Now()
				c, err := race(ctx, n.dial, names)
				if took := time.Since(start); took != tt.took || !errors.Is(err, tt.err) {
					t.Errorf("took %v, %v; want %v, %v", took, err, tt.took, tt.err)
				}
				if tt.want == "" {
					return
				}
				if c == nil || c.(*madeUp).addr != tt.want || n.open != 1 {
					t.Fatalf("got %v with %d open; want %s alone", c, n.open, tt.want)
				}
				_ = c.Close()
			})
		})
	}
}

func TestAddressesGoByTurns(t *testing.T) {
	var ips []netip.Addr
	for _, s := range []string{"2001:db8::1", "2001:db8::2", "192.0.2.1", "::ffff:192.0.2.2", "192.0.2.3"} {
		ips = append(ips, netip.MustParseAddr(s))
	}
	n := &network{}
	d := Dialer{
		Open:   n.dial,
		Lookup: func(context.Context, string, string) ([]netip.Addr, error) { return ips, nil },
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := d.dialHost(ctx, "x", "443"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	want := []string{
		"[2001:db8::1]:443", "192.0.2.1:443", "[2001:db8::2]:443", "192.0.2.2:443", "192.0.2.3:443",
	}
	if !slices.Equal(n.dialled, want) {
		t.Errorf("dialled %v, want %v", n.dialled, want)
	}
}
