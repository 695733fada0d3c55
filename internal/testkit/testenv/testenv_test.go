package testenv

import "testing"

func TestRedisAnswersPing(t *testing.T) {
	addr := Redis(t)
	if !ping(addr) {
		t.Errorf("no PONG from %s", addr)
	}
}

func TestRedisStopsWithItsTest(t *testing.T) {
	var addr string
	t.Run("use", func(t *testing.T) { addr = Redis(t) })
	if addr != "" && ping(addr) {
		t.Errorf("redis-server at %s outlived its test", addr)
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
