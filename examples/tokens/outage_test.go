package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Ten minutes without Redis, over a full hour: revoked tokens stay refused, and good
// ones are let in.
func TestTenMinutesWithoutRedis(t *testing.T) {
	s := upstashtest.NewServer(t) // outside of the bubble
	client := s.Client(upstash.WithTimeout(time.Second), upstash.WithRetry(0))
	defer client.Close()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		o := deployed(t, client)
		time.Sleep(55 * time.Minute) // of the first hour of 2000
		now := time.Now()
		good, stolen := token{"good", now}, token{"stolen", now}
		if err := errors.Join(o.revoke(ctx, stolen), o.refresh(ctx)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxStale)
		if err := o.refresh(ctx); err != nil {
			t.Fatal(err)
		}

		s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
			return upstashtest.Drop(upstashtest.BeforeExec)
		})
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(time.Second) {
			if err := o.check(ctx, stolen); err != errRevoked {
				t.Fatalf("stolen, %v after the outage began: %v", time.Since(began), err)
			}
			for _, tok := range []token{good, {"later", time.Now()}} {
				if err := o.check(ctx, tok); err != nil {
					t.Fatalf("%s, %v after the outage began: %v", tok.id, time.Since(began), err)
				}
			}
		}
		s.InjectFunc(nil)

		stolen = token{"stolen later", time.Now()}
		other := deployed(t, client) // another process
		if err := errors.Join(other.refresh(ctx), o.revoke(ctx, stolen)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxStale)
		if err := other.check(ctx, stolen); err != nil {
			t.Errorf("within maxStale: %v, want no request", err)
		}
		time.Sleep(time.Nanosecond)
		for _, process := range []*outlasting{o, other} {
			if err := process.check(ctx, stolen); err != errRevoked {
				t.Errorf("after the outage: %v, want %v", err, errRevoked)
			}
		}
		if stats := s.Stats(); stats.Commands == 0 {
			t.Errorf("no command reached the server")
		}
	})
}

func deployed(t *testing.T, client *upstash.Client) *outlasting {
	t.Helper()
	all, err := newTokens(client)
	if err == nil {
		_, err = all.deploy(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	o, err := newOutlasting(all)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A process that is first asked in the outage refuses all tokens, as long as it has
// no copy. One refresh before it is enough.
func TestStartInAnOutage(t *testing.T) {
	s := upstashtest.NewServer(t)
	client := s.Client(upstash.WithRetry(0))
	defer client.Close()
	ready, late := deployed(t, client), deployed(t, client)
	stolen, good := token{"stolen", time.Now()}, token{"good", time.Now()}
	if err := errors.Join(late.revoke(t.Context(), stolen), ready.refresh(t.Context())); err != nil {
		t.Fatal(err)
	}
	late = deployed(t, client)
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.Drop(upstashtest.BeforeExec)
	})
	if err := ready.check(t.Context(), stolen); err != errRevoked {
		t.Errorf("stolen: %v, want %v", err, errRevoked)
	}
	if err := ready.check(t.Context(), good); err != nil {
		t.Errorf("good: %v", err)
	}
	if err := late.check(t.Context(), good); err == nil {
		t.Error("a token was let in without a copy")
	}
}
