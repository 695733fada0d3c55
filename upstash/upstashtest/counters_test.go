package upstashtest

import (
	"testing"
)

func TestStats(t *testing.T) {
	s := NewServer(t)
	body := `[["SET","a","1"],["INCR","a"],["NOPE"],["LPUSH","a","x"]]`
	got := do(t, s, call{path: "/pipeline", body: body})
	do(t, s, call{path: "/", body: "x", token: "-"})
	refusal := `{"error":"` + textUnauthorized + `"}`
	want := Stats{
		Requests: 2, Commands: 3, Billed: 3,
		BytesIn: int64(len(body)), BytesOut: int64(len(got.body) + len(refusal)),
	}
	if s.Stats() != want {
		t.Errorf("got %+v, want %+v", s.Stats(), want)
	}
	s.ResetStats()
	if s.Stats() != (Stats{}) {
		t.Errorf("Stats after ResetStats: %+v, want zeros", s.Stats())
	}
	if _, err := s.Exec("GET", "a"); err != nil || s.Stats() != (Stats{}) {
		t.Errorf("Stats after an Exec: %+v, %v, want zeros", s.Stats(), err)
	}
	do(t, s, call{path: "/multi-exec", body: `[["INCR","a"],["EXPIRE","a","9","NX"]]`})
	if n := s.Stats().Commands; n != 2 {
		t.Errorf("Stats.Commands after a transaction of two: %d, want 2", n)
	}
}
