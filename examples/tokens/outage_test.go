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
		o := newOutlasting(client)
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
		if err := o.revoke(ctx, stolen); err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxStale)
		if err := o.check(ctx, stolen); err != errRevoked {
			t.Errorf("after the outage: %v, want %v", err, errRevoked)
		}
		if stats := s.Stats(); stats.Commands == 0 {
			t.Errorf("no command reached the server")
		}
	})
}

// No key outlives the tokens of its hour for long.
func TestHoursExpire(t *testing.T) {
	s := upstashtest.NewServer(t)
	client := s.Client()
	defer client.Close()
	o := newOutlasting(client)
	tok := token{"stolen", time.Now()}
	if err := o.revoke(t.Context(), tok); err != nil {
		t.Fatal(err)
	}
	if err := o.check(t.Context(), tok); err != errRevoked {
		t.Errorf("at first: %v, want %v", err, errRevoked)
	}
	s.FastForward(time.Hour + lifetime + skew + time.Second)
	if keys, err := s.Exec("KEYS", "*"); err != nil || len(keys.([]any)) != 0 {
		t.Errorf("keys left: %v, %v", keys, err)
	}
}
