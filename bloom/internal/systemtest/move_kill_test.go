//go:build unix

package systemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestMoveKilled kills processes amid Load and Replace. The target is then
// unchanged or complete, its TTL and own words stay, and nothing is left behind
// without a TTL.
func TestMoveKilled(t *testing.T) {
	if c, is := inAnotherProcess(t, upstash.WithTimeout(time.Hour)); is {
		moveUntilKilled(t, c)
		return
	}
	cfg := bloomtest.Middling()
	cfg.TTL = time.Hour
	eachKiller(t, func(t *testing.T, k *killer) {
		s, f := k.server, bloomtest.Handle(t, k.client, cfg)
		var before string
		begin := func() {
			bloomtest.Do(t, s, "FLUSHALL")
			bloomtest.Add(t, f, "before", true)
			bloomtest.NoError(t, bloomtest.ErrorOf(f.Expire(t.Context(), 30*time.Minute)))
			before = bloomtest.Stored(t, s)
		}
		complete := func() bool {
			bloomtest.WantTTL(t, s, 30*time.Minute)
			bloomtest.WantScratchExpires(t, s, bloomtest.Key)
			if bloomtest.Stored(t, s) == before {
				return false
			}
			bloomtest.WantMails(t, f, 0, 3000)
			items, err := f.Cardinality(t.Context())
			bloomtest.NoError(t, err)
			if items < 2900 || items > 3100 {
				t.Errorf("%d items", items)
			}
			return true
		}
		k.deaths(t, "replace", begin, complete)
		k.deaths(t, "load", begin, func() bool {
			bloomtest.Exists(t, f, "before", true)
			if now := bloomtest.OwnWords(t, bloomtest.Stored(t, s)); now != bloomtest.OwnWords(t, before) {
				t.Errorf("the second word was %x and is %x", bloomtest.OwnWords(t, before), now)
			}
			return complete()
		})
	})
}

// moveUntilKilled runs in that process. It moves once and waits.
func moveUntilKilled(t *testing.T, c *upstash.Client) {
	cfg, parts := bloomtest.Middling(), bloomtest.InParts()
	cfg.TTL = time.Hour
	f := bloomtest.Handle(t, c, cfg)
	l := bloomtest.LocalOf(f, 0, 3000)
	untilKilled(t, func() (err error) {
		if os.Getenv("UPBLOOM_KILL_WHAT") == "load" {
			_, err = f.Merge(context.Background(), l, parts)
			return err
		}
		return f.Replace(context.Background(), l, parts)
	})
}

// TestBackupKilled kills processes amid a backup and its restore. The filter is
// then unchanged, the restored one missing or complete, and nothing is left behind
// without a TTL.
func TestBackupKilled(t *testing.T) {
	if c, is := inAnotherProcess(t, upstash.WithTimeout(time.Hour)); is {
		backUpUntilKilled(t, c)
		return
	}
	const to = bloomtest.Key + ":copy"
	eachKiller(t, func(t *testing.T, k *killer) {
		s := k.server
		f, err := bloom.NewCuckoo(k.client, bloomtest.Key, bloom.CuckooConfig{Capacity: 4000, FPRate: 0.01})
		bloomtest.NoError(t, err)
		bloomtest.NoError(t, bloomtest.ErrorOf(f.AddAll(t.Context(), bloomtest.Numbered("item", 3000))))
		before := bloomtest.Stored(t, s)
		begin := func() { bloomtest.Do(t, s, "DEL", to) }
		k.deaths(t, "backup", begin, func() bool {
			if bloomtest.Stored(t, s) != before {
				t.Error("the filter was changed")
			}
			bloomtest.WantScratchExpires(t, s, bloomtest.Key, to)
			if bloomtest.Do(t, s, "EXISTS", to) == int64(0) {
				return false
			}
			after := bloomtest.StoredAt(t, s, to)
			if after[:8]+after[16:] != before[:8]+before[16:] {
				t.Error("a part of the filter was restored")
			}
			return true
		})
	})
}

// backUpUntilKilled runs in that process. It takes a backup, restores it to
// another key, and waits.
func backUpUntilKilled(t *testing.T, c *upstash.Client) {
	untilKilled(t, func() error {
		b, err := bloom.TakeBackup(context.Background(), c, bloomtest.Key, bloom.WithPartBytes(1<<10))
		if err == nil {
			_, err = b.Restore(context.Background(), c, bloomtest.Key+":copy", 0, bloom.WithPartBytes(1<<10))
		}
		return err
	})
}

// untilKilled says when do begins and when it is done, and waits as long as the
// test lives.
func untilKilled(t *testing.T, do func() error) {
	fmt.Println(killReady)
	bloomtest.NoError(t, do())
	fmt.Println(killDone)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// Under every fault, if Load or Replace returns no error, the items are in.
// After any error the filter is unchanged or complete. The faults that only take
// time, and then are as Drop and RateLimit(0), are left to the long form.
func TestMoveUnderFaults(t *testing.T) {
	var running sync.WaitGroup
	atOnce := make(chan struct{}, 8) // they mostly wait for timeouts
	slow := []upstashtest.Fault{
		upstashtest.Stall(upstashtest.BeforeExec), upstashtest.Stall(upstashtest.AfterExec),
		upstashtest.RateLimit(time.Second),
	}
	for _, fault := range upstashtest.EveryFault() {
		if !testenv.Long() && slices.Contains(slow, fault) {
			continue
		}
		for _, nth := range []int64{0, 7} { // the first part or request, and the last step
			for _, what := range []string{"load", "replace", "snapshot"} {
				atOnce <- struct{}{}
				running.Go(func() {
					defer func() { <-atOnce }()
					name := fmt.Sprintf("%v/%s/%d", fault, what, nth)
					t.Run(name, func(t *testing.T) { moveUnder(t, fault, nth, what) })
				})
			}
		}
	}
	running.Wait()
}

// moveUnder meets a fault in request nth of a move, counted from 0.
func moveUnder(t *testing.T, fault upstashtest.Fault, nth int64, what string) {
	s := upstashtest.NewServer(t)
	cfg, parts := bloomtest.Middling(), bloomtest.InParts()
	f := bloomtest.Handle(t, bloomtest.Impatient(s, upstash.WithTimeout(250*time.Millisecond)), cfg)
	patient := bloomtest.Handle(t, s.Client(), cfg)
	bloomtest.Add(t, patient, "before", true)
	before := bloomtest.Stored(t, s)
	s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		if n == nth+1 {
			return fault
		}
		return upstashtest.Fault{}
	})
	var err error
	var l *bloom.Local
	switch what {
	case "load":
		_, err = f.Load(t.Context(), bloomtest.Mails(0, 1000), parts)
	case "replace":
		err = f.Replace(t.Context(), bloomtest.LocalOf(f, 0, 1000), parts)
	case "snapshot":
		l, err = f.Snapshot(t.Context(), parts)
	}
	s.InjectFunc(nil)
	// A fault of the connection can strike the request after the one that drew
	// it.
	_, _ = s.Client(upstash.WithRetry(0)).Do(t.Context(), upstash.Cmd("PING"))
	bloomtest.WantScratchExpires(t, s, bloomtest.Key)
	if what == "snapshot" {
		if err == nil && !l.Exists("before") {
			t.Errorf("request %d: a snapshot without an item that was in", nth+1)
		}
		return
	}
	if err == nil || bloomtest.Stored(t, s) != before {
		if fault.String() != "vanished-filter" {
			bloomtest.WantMails(t, patient, 0, 1000)
		}
	}
	if err != nil && upstash.SafeToRetry(err) && bloomtest.Stored(t, s) != before &&
		!errors.Is(err, bloom.ErrLoadLost) {
		t.Errorf("request %d of a %s: %v is safe to retry, but the filter has changed", nth+1, what, err)
	}
}
