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
