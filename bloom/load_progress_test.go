package bloom_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Progress begins at 0 and ends with the whole string. The result has the
// server's number of requests.
func TestLoadReports(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, parts := inParts(middling())
	f := handle(t, s.Client(), cfg)
	var steps []int64
	s.ResetStats()
	r, err := f.Load(t.Context(), mails(0, 100), parts, bloom.MoveProgress(func(done, total int64) {
		steps = append(steps, done)
		if total != int64(f.Geometry().Bytes(bloom.LayoutHeaded)) {
			t.Errorf("the reported total is %d, want the length of the string", total)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 8 || steps[0] != 0 || steps[7] != r.Bytes || !slices.IsSorted(steps) {
		t.Errorf("progress %v, want 8 ascending steps from 0 to %d", steps, r.Bytes)
	}
	if got := s.Stats().Requests; r.Requests != got || got != 8 {
		t.Errorf("%d requests are reported, %d were sent, want 8", r.Requests, got)
	}
}

func TestLoadStopsWithItsContext(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, parts := inParts(middling())
	ctx, cancel := context.WithCancel(t.Context())
	f := handle(t, afterCommand(s, "SETEX", 3, cancel), cfg)
	_, err := f.Load(ctx, mails(0, 100), parts)
	if !errors.Is(err, context.Canceled) || !upstash.SafeToRetry(err) {
		t.Errorf("%v, want context.Canceled, which is safe to retry", err)
	}
	wantNoScratch(t, s, 0)
	s.ResetStats()
	endless := func(yield func(string) bool) {
		for yield("item") {
		}
	}
	const want = "bloom: nothing was loaded: context canceled"
	r, err := f.Load(ctx, endless)
	if err.Error() != want || !errors.Is(err, context.Canceled) || !upstash.SafeToRetry(err) {
		t.Errorf("%v, want %s, which is safe to retry", err, want)
	}
	if r.Items == 0 || r.Duration == 0 {
		t.Errorf("%+v after an endless sequence, want how much was read, and how long", r)
	}
	if _, err := f.Load(ctx, mails(0, 1)); !errors.Is(err, context.Canceled) || s.Stats().Requests != 0 {
		t.Errorf("%v and %d requests, want context.Canceled and none", err, s.Stats().Requests)
	}
	reader := handle(t, s.Client(upstash.WithReadOnly()), cfg)
	if _, err := reader.Load(t.Context(), mails(0, 1)); !errors.Is(err, upstash.ErrReadOnly) {
		t.Errorf("%v, want ErrReadOnly", err)
	}
}

// A panic of the function of MoveProgress reaches the caller, who may recover.
// Nothing of the upload stays, and the handle goes on.
func TestPanicInProgress(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, parts := inParts(middling())
	f := handle(t, s.Client(), cfg)
	panics := bloom.MoveProgress(func(done, _ int64) {
		if done > 0 {
			panic("at the first part")
		}
	})

	wantPanic(t, "Load", func() { _, _ = f.Load(t.Context(), mails(0, 100), parts, panics) })
	wantNoScratch(t, s, 0)
	if _, err := f.Load(t.Context(), mails(0, 100), parts); err != nil {
		t.Fatal(err)
	}
	wantPanic(t, "Snapshot", func() { _, _ = f.Snapshot(t.Context(), parts, panics) })
	sharded, err := bloom.NewSharded([]*upstash.Client{s.Client()}, "sharded", bloom.ShardedConfig{
		Capacity: 10_000, FPRate: 0.01, Shards: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sharded.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantPanic(t, "Sharded.Load", func() { _, _ = sharded.Load(t.Context(), mails(0, 100), panics) })
}

func wantPanic(t *testing.T, name string, call func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if v := recover(); v != "at the first part" {
			t.Errorf("%s: recovered %v, want the panic of the function", name, v)
		}
	}()
	call()
}
