package bloom_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// oneLost loses the answer of the first request, and sends no other.
type oneLost struct{ requests atomic.Int32 }

func (o *oneLost) RoundTrip(context.Context, *upstash.Request, *upstash.Response) error {
	if o.requests.Add(1) > 1 {
		return upstash.NotSent(errors.New("no connection"))
	}
	time.Sleep(time.Second)
	return io.ErrUnexpectedEOF
}

// Of two parts of a batch, one is never sent, and then the answer of the other is
// lost. The error is that of the other: its items are unknown, and "did not run"
// would not explain it.
func TestReasonOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := upstash.New("http://127.0.0.1", "token", upstash.WithTransport(new(oneLost)), upstash.WithRetry(0))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		cfg := small()
		cfg.Layout, cfg.Scheme = bloom.LayoutBare, bloom.SchemeXXH3 // no request goes ahead to look at the header
		cfg.BatchBytes, cfg.BatchParallel = 1000, 2
		_, err = handle(t, client, cfg).AddAll(t.Context(), numbered("item", 30))
		var batch *bloom.BatchError
		if !errors.As(err, &batch) || !slices.Contains(batch.Items, bloom.ItemUnknown) ||
			!slices.Contains(batch.Items, bloom.ItemNotDone) {
			t.Fatalf("AddAll: %v, want items that are unknown and others that were not sent", err)
		}
		if upstash.SafeToRetry(batch.Err) || !strings.Contains(err.Error(), "may have run") {
			t.Errorf("AddAll: %v, want the reason of the unknown items", err)
		}
	})
}
