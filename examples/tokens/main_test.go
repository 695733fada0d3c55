package main

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	_ "github.com/upbloom/upbloom/internal/testkit/testenv" // its clients are patient
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func newBench(t *testing.T) (*upstashtest.Server, *tokens) {
	t.Helper()
	s := upstashtest.NewServer(t)
	tk, err := newTokens(s.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tk.deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, tk
}

// One command refuses a revoked token. An expired token needs none.
func TestRevokedIsRefused(t *testing.T) {
	s, tk := newBench(t)
	now := time.Now()
	if err := tk.revoke(t.Context(), token{"stolen", now}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tok      token
		want     error
		commands int64
	}{
		{token{"stolen", now}, errRevoked, 1},
		{token{"good", now}, nil, 1},
		{token{"stolen", now.Add(-lifetime)}, errExpired, 0},
	} {
		s.ResetStats()
		if err := tk.check(t.Context(), tt.tok); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.tok.id, err, tt.want)
		}
		if n := s.Stats().Commands; n != tt.commands {
			t.Errorf("%s: %d commands, want %d", tt.tok.id, n, tt.commands)
		}
	}
}

// After an eviction no token is let in, and none can be revoked into an empty
// window, until somebody deploys again.
func TestEvictionLetsNobodyIn(t *testing.T) {
	s, tk := newBench(t)
	stolen := token{"stolen", time.Now()}
	if err := tk.revoke(t.Context(), stolen); err != nil {
		t.Fatal(err)
	}
	s.FlushAll()
	if err := tk.check(t.Context(), stolen); !errors.Is(err, bloom.ErrNotFound) {
		t.Errorf("check without a filter: %v, want ErrNotFound", err)
	}
	if err := tk.revoke(t.Context(), stolen); !errors.Is(err, bloom.ErrNotFound) {
		t.Errorf("revoke without a filter: %v, want ErrNotFound", err)
	}
	if made, err := tk.deploy(t.Context()); !made || err != nil {
		t.Errorf("the next deployment: %v, %v, want to know that the revocations are lost", made, err)
	}
}

// A full database refuses a check too, and then no token is let in. A client that
// only reads still checks.
func TestFullDatabase(t *testing.T) {
	s, tk := newBench(t)
	now := time.Now()
	if err := tk.revoke(t.Context(), token{"stolen", now}); err != nil {
		t.Fatal(err)
	}
	checks, err := newTokens(s.Client(upstash.WithReadOnly()))
	if err != nil {
		t.Fatal(err)
	}
	s.SetFull(true)
	for id, want := range map[string]error{"stolen": errRevoked, "good": nil} {
		if err := tk.check(t.Context(), token{id, now}); !errors.Is(err, upstash.ErrOutOfMemory) {
			t.Errorf("%s: %v, want ErrOutOfMemory", id, err)
		}
		if err := checks.check(t.Context(), token{id, now}); !errors.Is(err, want) {
			t.Errorf("%s, WithReadOnly: %v, want %v", id, err, want)
		}
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := "jti-1 <nil>\njti-2 the token was revoked\njti-3 the token has expired\n"
	if out.String() != want {
		t.Errorf("run printed %q, want %q", &out, want)
	}
}
