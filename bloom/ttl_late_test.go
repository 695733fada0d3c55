package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// lateEval keeps every script back, to be sent later.
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

// A settling that arrives late sets no TTL on a filter that was made anew
// meanwhile, by a program that wants none.
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
		if err := late.Transport.RoundTrip(t.Context(), &late.kept[0], &resp); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %s", err, resp.Body)
		}
		wantNoTTL(t, s)
		add(t, handle(t, s.Client(), cfg), "c", true) // a writer of its own settles it
		wantTTL(t, s, time.Hour)
	})
}
