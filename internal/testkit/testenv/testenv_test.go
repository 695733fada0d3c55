package testenv

import (
	"net"
	"testing"
)

func TestEachRedisIsAnother(t *testing.T) {
	a, b := processAt(Redis(t)), processAt(Redis(t))
	if a == 0 || b == 0 || a == b {
		t.Errorf("the processes are %d and %d, want two different ones", a, b)
	}
}

func TestRedisStopsWithItsTest(t *testing.T) {
	var addr string
	t.Run("use", func(t *testing.T) { addr = Redis(t) })
	if addr != "" && processAt(addr) != 0 {
		t.Errorf("redis-server at %s outlived its test", addr)
	}
}

// A shared Redis serves the next test, empty, unless a test changed more than its
// data. None outlives the suite.
func TestShareRedis(t *testing.T) {
	Need(t, "redis", "redis-server")
	var last string
	ShareRedis(func() int {
		use := func(leaves string) (addr, keys string) {
			t.Run(leaves, func(t *testing.T) {
				addr = Redis(t)
				keys = Ask(t, addr, "DBSIZE")
				Ask(t, addr, leaves)
			})
			return addr, keys
		}
		first, _ := use("SET key value")
		second, keys := use("CONFIG SET maxmemory 100mb")
		third, _ := use("PING")
		if second != first || keys != ":0\r\n" || processAt(third) == 0 {
			t.Errorf("%s, then %s with %q keys, then %s", first, second, keys, third)
		}
		if third != second && processAt(second) != 0 {
			t.Errorf("%s, which was changed, still runs", second)
		}
		if got := Ask(t, third, "CONFIG GET maxmemory"); got != "*2\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n" {
			t.Errorf("the next Redis has %q", got)
		}
		last = third
		return 0
	})
	if processAt(last) != 0 {
		t.Errorf("redis-server at %s outlived its suite", last)
	}
}

func TestClosedAddrRefuses(t *testing.T) {
	addr := ClosedAddr(t)
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Errorf("ClosedAddr: %s takes a connection, want it refused", addr)
	}
	if l, err := net.Listen("tcp", addr); err == nil {
		_ = l.Close()
		t.Errorf("ClosedAddr: another listener can take %s, want it held", addr)
	}
}

func TestRequired(t *testing.T) {
	for _, tt := range []struct {
		list, name string
		want       bool
	}{
		{"", "redis", false},
		{"redis", "redis", true},
		{"node, redis", "redis", true},
		{"node,redis", "red", false},
		{"redis-cluster", "redis", false},
	} {
		if got := required(tt.list, tt.name); got != tt.want {
			t.Errorf("required(%q, %q) = %v, want %v", tt.list, tt.name, got, tt.want)
		}
	}
}
