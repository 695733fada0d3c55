package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// withLimit makes a server and a client with one limit on requests.
func withLimit(t *testing.T, bytes int) (*upstashtest.Server, *upstash.Client) {
	t.Helper()
	s := upstashtest.NewServer(t, upstashtest.WithMaxRequest(int64(bytes)))
	return s, s.Client(upstash.WithMaxRequest(bytes), patient)
}

// Batches of all types are split at the client's limit: neither the client nor
// the server refuses a request.
func TestBatchesKeepTheClientsLimit(t *testing.T) {
	const limit = 16 << 10
	items := numbered("item", 1500)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s, c := withLimit(t, limit)
			f := k.new(t, c, 10_000)
			create(t, f, true)
			for name, call := range map[string]func(context.Context, []string) ([]bool, error){
				"AddAll": f.AddAll, "ExistsAll": f.ExistsAll,
			} {
				s.ResetStats()
				if got, err := call(t.Context(), items); err != nil || len(got) != len(items) || s.Stats().Requests < 2 {
					t.Errorf("%s: %v in %d requests, want no error in several", name, err, s.Stats().Requests)
				}
			}
			if table, is := f.(*bloom.Cuckoo); is {
				if got, err := table.RemoveAll(t.Context(), items); err != nil || count(got) != len(items) {
					t.Errorf("RemoveAll: %d removed, %v, want all", count(got), err)
				}
			}
		})
	}
}

// So are the rounds of an AddSeq and the parts of a string, whatever
// WithPartBytes says.
func TestMovesKeepTheClientsLimit(t *testing.T) {
	const limit = 4 << 10
	s, c := withLimit(t, limit)
	ctx, f, large := t.Context(), handle(t, c, middling()), bloom.WithPartBytes(8<<20)
	if r, err := f.AddSeq(ctx, mails(0, 1000)); err != nil || r.Items != 1000 {
		t.Errorf("AddSeq = %+v, %v, want 1,000 items", r, err)
	}
	for _, opts := range [][]bloom.MoveOption{nil, {large}} {
		for name, move := range map[string]func() error{
			"Load":    func() error { return errorOf(f.Load(ctx, mails(0, 1000), opts...)) },
			"Merge":   func() error { return errorOf(f.Merge(ctx, localOf(f, 0, 1000), opts...)) },
			"Replace": func() error { return f.Replace(ctx, localOf(f, 0, 1000), opts...) },
			"Snapshot": func() error {
				return errorOf(f.Snapshot(ctx, opts...))
			},
			"TakeBackup, Restore": func() error {
				b, err := bloom.TakeBackup(ctx, c, key, opts...)
				noError(t, err)
				do(t, s, "DEL", "copy")
				return errorOf(b.Restore(ctx, c, "copy", 0, opts...))
			},
		} {
			s.ResetStats()
			// The string has 13 KB.
			if err := move(); err != nil || s.Stats().Requests < 4 {
				t.Errorf("%s: %v in %d requests, want no error in four or more", name, err, s.Stats().Requests)
			}
		}
	}
	wantMails(t, f, 0, 1000)
}

// Calls of many filters are split as well, in their order.
func TestInKeepsTheClientsLimit(t *testing.T) {
	s, c := withLimit(t, 8<<10)
	var many []bloom.AnyFilter
	for i := range 40 {
		many = append(many, handleAt(t, c, fmt.Sprint("filter-", i), expiring(time.Hour)),
			windowAt(t, c, fmt.Sprint("window-", i), day()))
	}
	many = append(many, scalableAt(t, c, "grows", growing()), many[0], scalableAt(t, c, "grows too", growing()))
	for _, again := range []bool{false, true} {
		answers, err := bloom.AddIn(t.Context(), "a", many...)
		for i, a := range answers {
			if want := !again && i != 81; a.Yes != want || a.Err != nil {
				t.Fatalf("AddIn, filter %d: %+v, want %v", i, a, want)
			}
		}
		noError(t, err)
	}
	answers, err := bloom.ExistsIn(t.Context(), "a", many...)
	if err != nil || slices.Contains(yes(answers), false) {
		t.Errorf("ExistsIn = %v, %v, want yes of all", answers, err)
	}
	if n := do(t, s, "PTTL", "filter-39").(int64); n <= 0 {
		t.Error("the last filter has no TTL")
	}
}

// So are those about all shards, of which the first is made last and deleted first.
func TestShardsKeepTheClientsLimit(t *testing.T) {
	s, c := withLimit(t, 16<<10)
	f := sharded(t, shards(256), c)
	all := make([]string, 256)
	for i := range all {
		all[i] = shardKey(i)
	}
	create(t, f, true)
	create(t, f, false)
	s.ResetStats()
	if r, err := f.Load(t.Context(), mails(0, 300)); err != nil || r.Items != 300 || r.Requests != s.Stats().Requests {
		t.Errorf("Load = %+v, %v, want 300 items in %d requests", r, err, s.Stats().Requests)
	}
	found, err := bloom.InspectAll(t.Context(), c, all)
	noError(t, err)
	for i, one := range found {
		if one.Err != nil || one.Stats.Kind != bloom.KindShard {
			t.Fatalf("InspectAll, shard %d: %+v", i, one)
		}
	}
	s.Inject(upstashtest.Fault{}, upstashtest.Fault{}, upstashtest.InternalError(upstashtest.BeforeExec))
	if deleted, err := f.Delete(t.Context()); !deleted || err == nil || upstash.SafeToRetry(err) {
		t.Errorf("Delete = %v, %v, want true and an error that is not safe to retry", deleted, err)
	}
	if n := do(t, s, "DBSIZE").(int64); n == 0 || n == 256 {
		t.Errorf("%d of 256 shards are left, want some", n)
	}
	wantNoKey(t, s, shardKey(0))
	wantError(t, errorOf(f.Stats(t.Context())), bloom.ErrNotFound)
	for _, want := range []bool{true, false} {
		if deleted, err := f.Delete(t.Context()); deleted != want || err != nil {
			t.Errorf("Delete = %v, %v, want %v", deleted, err, want)
		}
	}
	if n := do(t, s, "DBSIZE"); n != int64(0) {
		t.Errorf("%v keys are left", n)
	}
}

// The scripts of these types are not split: their constructors say which limit is
// too low, and what they accept suffices. [upstash.WithMaxRequest] names the numbers.
func TestScriptsThatDoNotFit(t *testing.T) {
	s := upstashtest.NewServer(t)
	key := strings.Repeat("k", 40)
	for name, tt := range map[string]struct {
		least int
		makes func(c *upstash.Client) (bloomtest.Set, error)
	}{
		"Scalable": {5100, func(c *upstash.Client) (bloomtest.Set, error) {
			return bloom.NewScalable(c, key, bloom.ScalableConfig{Capacity: 1_000_000, FPRate: 0.01, TTL: time.Hour})
		}},
		"Cuckoo": {5400, func(c *upstash.Client) (bloomtest.Set, error) {
			return bloom.NewCuckoo(c, key, bloom.CuckooConfig{Capacity: 1_000_000, FPRate: 0.01})
		}},
		"Window": {1050, func(c *upstash.Client) (bloomtest.Set, error) {
			return bloom.NewWindow(c, key, bloom.WindowConfig{Capacity: 1_000_000, FPRate: 0.01, Span: time.Hour, Panes: 4, ExpireIdle: true})
		}},
	} {
		_, err := tt.makes(s.Client(upstash.WithMaxRequest(1 << 10)))
		if !errors.Is(err, upstash.ErrRequestTooLarge) || !upstash.SafeToRetry(err) || !strings.Contains(err.Error(), "WithMaxRequest") {
			t.Errorf("New%s with 1 KiB: %v, want ErrRequestTooLarge", name, err)
		}
		noError(t, errorOf(tt.makes(s.Client(upstash.WithMaxRequest(1<<10), upstash.WithReadOnly()))))
		limit := 1 << 10
		for ; err != nil; limit++ {
			_, err = tt.makes(s.Client(upstash.WithMaxRequest(limit)))
		}
		if limit--; limit < tt.least*95/100 || limit > tt.least {
			t.Errorf("New%s takes a limit of %d, want about %d", name, limit, tt.least)
		}
		s.FlushAll()
		f, err := tt.makes(s.Client(upstash.WithMaxRequest(limit)))
		noError(t, err)
		add(t, f, "a", true)
	}
}

// Others say so at their first call.
func TestLeastLimitOfALoad(t *testing.T) {
	s := upstashtest.NewServer(t)
	load := func(limit int) error {
		f := handleAt(t, s.Client(upstash.WithMaxRequest(limit)), strings.Repeat("k", 40), small())
		return errorOf(f.Load(t.Context(), mails(0, 9)))
	}
	limit := 1 << 10
	for errors.Is(load(limit), upstash.ErrRequestTooLarge) {
		limit++
	}
	noError(t, load(limit))
	if limit < 3900*95/100 || limit > 3900 {
		t.Errorf("a Load takes a limit of %d, want about 3,900", limit)
	}
}

// The database takes less than the client was told: the error names the option.
func TestServersOwnLimitNamesTheOption(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRequest(5000))
	f := handle(t, s.Client(), middling())
	for name, err := range map[string]error{
		"AddAll":    errorOf(f.AddAll(t.Context(), numbered("item", 1000))),
		"ExistsAll": errorOf(f.ExistsAll(t.Context(), numbered("item", 1000))),
		"Load":      errorOf(f.Load(t.Context(), mails(0, 9))),
	} {
		if !errors.Is(err, upstash.ErrRequestTooLarge) || !strings.Contains(err.Error(), "lower upstash.WithMaxRequest") {
			t.Errorf("%s: %v, want ErrRequestTooLarge, and the option named", name, err)
		}
	}
}
