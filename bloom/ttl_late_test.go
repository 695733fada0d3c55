package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// lateEval keeps every script back. The test sends them later.
type lateEval struct {
	upstash.Transport
	kept []upstash.Request
}

func (l *lateEval) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	if bytes.HasPrefix(req.Body, []byte(`["EVAL"`)) {
		kept := *req
		kept.Body, kept.Header = bytes.Clone(req.Body), append([]upstash.Header(nil), req.Header...)
		l.kept = append(l.kept, kept)
		return errors.New("kept back")
	}
	return l.Transport.RoundTrip(ctx, req, resp)
}

// hangingEval lets every script hang until its context ends, and records how
// long that would be.
type hangingEval struct {
	upstash.Transport
	left []time.Duration
}

func (h *hangingEval) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	if !bytes.HasPrefix(req.Body, []byte(`["EVAL"`)) {
		return h.Transport.RoundTrip(ctx, req, resp)
	}
	deadline, _ := ctx.Deadline()
	h.left = append(h.left, time.Until(deadline))
	<-ctx.Done()
	return ctx.Err()
}

// If a server hangs while settling, it delays the caller for a second at most,
// whatever the client's timeout. The Add's answer stands.
func TestSettlingThatHangs(t *testing.T) {
	defer bloom.SetSettleTimeout(bloom.SetSettleTimeout(bloom.UsualSettleTimeout))
	s := upstashtest.NewServer(t)
	web := &http.Client{}
	defer web.CloseIdleConnections()
	hanging := &hangingEval{Transport: httptransport.New(web)}
	c := s.Client(upstash.WithTransport(hanging), upstash.WithTimeout(time.Hour))
	add(t, handle(t, c, expiring(time.Hour)), "a", true)
	if len(hanging.left) == 0 || hanging.left[0] > time.Second {
		t.Errorf("the settling may take %v, want a second at most", hanging.left)
	}
	wantNoTTL(t, s)
}

// A late settling sets no TTL on a filter that another program has made since,
// without a TTL.
func TestLateSettlingMeetsAnotherFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		web := &http.Client{}
		defer web.CloseIdleConnections()
		late := &lateEval{Transport: httptransport.New(web)}
		cfg := small()
		plain := handle(t, s.Client(), cfg)
		cfg.TTL = time.Hour
		f := handle(t, s.Client(upstash.WithTransport(late), upstash.WithRetry(0)), cfg)
		add(t, f, "a", true)
		if len(late.kept) != 1 {
			t.Fatalf("%d scripts were kept back, want the settling", len(late.kept))
		}
		if _, err := plain.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		add(t, plain, "b", true)
		var resp upstash.Response
		err := late.Transport.RoundTrip(t.Context(), &late.kept[0], &resp)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("the late script: %v, %s, want status 200", err, resp.Body)
		}
		wantNoTTL(t, s)
		add(t, handle(t, s.Client(), cfg), "c", true) // a new writer settles it
		wantTTL(t, s, time.Hour)
	})
}

// A PTTL of 0 means less than a millisecond; the filter has a TTL. A filter
// about to expire must still expire after Merge, Replace or Union. One made
// after the expiry is not settled, and stays.
func TestMovesAtTheEndOfTheTTL(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		f, src := handle(t, c, small()), handleAt(t, c, "source", small())
		add(t, src, "item", true)
		l := localOf(f, 0, 9)
		for name, move := range map[string]func() error{
			"Merge":   func() error { _, err := f.Merge(t.Context(), l); return err },
			"Replace": func() error { return f.Replace(t.Context(), l) },
			"Union":   func() error { return bloom.Union(t.Context(), f, src) },
		} {
			for range 20 {
				if _, err := f.Create(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := f.Expire(t.Context(), 2*time.Millisecond); err != nil {
					t.Fatal(err)
				}
				for settled := true; settled; {
					if err := move(); err != nil {
						t.Fatal(name, err)
					}
					word := do(t, s, "BITFIELD", key, "GET", "u1", "127").([]any)
					settled = word[0] == int64(1)
					if settled && do(t, s, "PTTL", key) == int64(-1) {
						t.Fatalf("%s made a filter stay that was about to expire", name)
					}
				}
				do(t, s, "DEL", key)
			}
		}
	})
}
