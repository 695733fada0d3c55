package bloom_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

type transportFunc func(context.Context, *upstash.Request, *upstash.Response) error

func (f transportFunc) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	return f(ctx, req, resp)
}

// The error of a lost database outranks that of one that refused, whichever is the
// first.
func TestLostDatabaseOutranksARefusedOne(t *testing.T) {
	for _, refused := range []int{0, 1} {
		s := [2]*upstashtest.Server{upstashtest.NewServer(t), upstashtest.NewServer(t)}
		f := sharded(t, shards(4), once(s[0]), once(s[1]))
		create(t, f, true)
		s[refused].Inject(upstashtest.RateLimit(0))
		s[1-refused].Inject(upstashtest.Drop(upstashtest.AfterExec))
		_, err := f.AddAll(t.Context(), numbered("item", 100))
		batch, is := errors.AsType[*bloom.BatchError](err)
		if !is || upstash.SafeToRetry(batch.Err) || !strings.Contains(err.Error(), "may have run") || errors.Is(err, upstash.ErrRateLimited) {
			t.Errorf("database %d refused, and the other lost: %v, want the lost one's error", refused, err)
		}
	}
}

// A shard that was made anew during an AddAll was made with all others: what they
// acknowledged before is gone as well.
func TestAllShardsAreMadeAnew(t *testing.T) {
	for _, databases := range []int{1, 2} {
		var others []*upstash.Client
		first, anew := make(chan struct{}), false
		remake := func() {
			other := sharded(t, shards(2), others...)
			noError(t, errorOf(other.Delete(t.Context())))
			create(t, other, true)
		}
		// Shard 0 has one request. After the first of shard 1 the filter is
		// deleted, and made again.
		var clients []*upstash.Client
		for i := range databases {
			s, requests := upstashtest.NewServer(t), 0
			others = append(others, s.Client())
			clients = append(clients, s.Client(upstash.WithObserver(func(_ context.Context, e upstash.Event) {
				if e.Label != "bloom.Sharded.AddAll" || e.Err != nil {
					return
				}
				requests++
				if requests == 1 && i == 0 {
					close(first)
				}
				if requests == 1 && i == databases-1 {
					<-first
					anew = true
					remake()
				}
			})))
		}
		f := batched(sharded(t, shards(2), clients...), 20_000, 1)
		create(t, f, true)
		var items, later []string
		for _, item := range numbered("item", 700) {
			if f.ShardOf(item) == 1 {
				later = append(later, item)
			} else if len(items) < 9 {
				items = append(items, item)
			}
		}
		items = append(items, later...)
		added, err := f.AddAll(t.Context(), items)
		batch, is := errors.AsType[*bloom.BatchError](err)
		if !anew || !is || !errors.Is(err, bloom.ErrRecreated) || batch.Count(bloom.ItemDone) != 0 || count(added) != 0 {
			t.Fatalf("%d databases: made anew %v, %d new, %v; want ErrRecreated and no item done", databases, anew, count(added), err)
		}
		if _, err := f.AddAll(t.Context(), batch.Remaining(items)); err != nil {
			t.Errorf("%d databases: what remains: %v", databases, err)
		}
		wantFound(t, f, items)
	}
}

// ends reports whether a call ended its goroutine.
func ends(call func()) bool {
	returned, over := false, make(chan struct{})
	go func() {
		defer close(over)
		call()
		returned = true
	}()
	<-over
	return !returned
}

// exiting ends the goroutine of the n-th event of a command, as the FailNow of a
// test does.
func exiting(command string, n int) upstash.Option {
	var mu sync.Mutex
	return upstash.WithObserver(func(_ context.Context, e upstash.Event) {
		mu.Lock()
		if e.Command == command {
			n--
		}
		now := n == 0 && e.Command == command
		mu.Unlock()
		if now {
			runtime.Goexit()
		}
	})
}

// If a callback ends its goroutine, the goroutine of the call ends too: it has no
// answers. The handle and its client work on.
func TestCallbackThatEndsItsGoroutine(t *testing.T) {
	s := upstashtest.NewServer(t)
	full := handle(t, s.Client(), middling())
	mustAdd(t, full, slices.Collect(mails(0, 300))...)
	exits := bloom.WithProgress(func(done, _ int64) {
		if done > 0 {
			runtime.Goexit()
		}
	})
	seq := func(yield func(string) bool) {
		for m := range mails(0, 5000) {
			if !yield(m) || m == "user-4500@example.com" {
				runtime.Goexit()
			}
		}
	}
	both := sharded(t, shards(4), s.Client(exiting("PIPELINE", 2)))
	create(t, sharded(t, shards(4), s.Client()), true)
	observed := func(command string, n int) *bloom.Filter {
		return batched(handle(t, s.Client(exiting(command, n)), middling()), 2000, 2)
	}
	items, fresh := slices.Collect(mails(0, 300)), numbered("new", 300)
	for name, call := range map[string]func(ctx context.Context){
		"AddAll":         func(ctx context.Context) { _, _ = observed("BITFIELD", 5).AddAll(ctx, fresh) },
		"ExistsAll":      func(ctx context.Context) { _, _ = observed("BITFIELD", 5).ExistsAll(ctx, items) },
		"AddSeq":         func(ctx context.Context) { _, _ = observed("BITFIELD", 5).AddSeq(ctx, mails(300, 900)) },
		"Sharded.AddAll": func(ctx context.Context) { _, _ = batched(both, 20_000, 2).AddAll(ctx, fresh) },
		"Load":           func(ctx context.Context) { _, _ = observed("SETEX", 2).Load(ctx, mails(0, 9), partsOf(2000, 2)) },
		"Snapshot":       func(ctx context.Context) { _, _ = observed("EVAL_RO", 2).Snapshot(ctx, partsOf(2000, 2)) },
		"progress of Load": func(ctx context.Context) {
			_, _ = full.Load(ctx, mails(0, 9), partsOf(2000, 2), exits)
		},
		"progress of Snapshot": func(ctx context.Context) { _, _ = full.Snapshot(ctx, partsOf(2000, 2), exits) },
		"progress of AddSeq":   func(ctx context.Context) { _, _ = full.AddSeq(ctx, mails(0, 300), exits) },
		"items of AddSeq":      func(ctx context.Context) { _, _ = batched(handle(t, s.Client(), middling()), 2000, 2).AddSeq(ctx, seq) },
		"items of Load":        func(ctx context.Context) { _, _ = full.Load(ctx, seq) },
	} {
		if !ends(func() { call(t.Context()) }) {
			t.Errorf("%s: the call returned, want its goroutine to end", name)
		}
	}
	wantMails(t, full, 0, 300)
	add(t, full, "after all", true)
}

// TestItemStates: package bloom converts the engine's states by their numbers.
func TestItemStates(t *testing.T) {
	for state, is := range map[bloom.ItemState]engine.ItemState{
		bloom.ItemNotDone:   engine.NotDone,
		bloom.ItemDone:      engine.Done,
		bloom.ItemUncertain: engine.Uncertain,
		bloom.ItemUnknown:   engine.Unknown,
	} {
		if state != bloom.ItemState(is) {
			t.Errorf("%v is %d, and the engine's is %d", state, state, is)
		}
	}
}
