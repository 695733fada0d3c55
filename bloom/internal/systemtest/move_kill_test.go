//go:build unix

package systemtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestMoveKilled kills processes at random moments of Load and Replace. The
// target is then unchanged or complete, its TTL and own words stay, and nothing
// is left behind without a TTL. UPBLOOM_KILLS sets the number of kills.
func TestMoveKilled(t *testing.T) {
	if url := os.Getenv("UPBLOOM_KILL_URL"); url != "" {
		moveUntilKilled(t, url)
		return
	}
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("UPBLOOM_KILLS")); err == nil {
		kills = n
	}
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		rng := rand.New(rand.NewPCG(1, 2))
		cfg := bloomtest.Middling()
		cfg.TTL = time.Hour
		f := bloomtest.Handle(t, s.Client(), cfg)
		loaded, replaced, untouched := 0, 0, 0
		for i := range kills {
			bloomtest.Do(t, s, "FLUSHALL")
			bloomtest.Add(t, f, "before", true)
			bloomtest.NoError(t, bloomtest.ErrorOf(f.Expire(t.Context(), 30*time.Minute)))
			before := bloomtest.Stored(t, s)
			what := []string{"load", "replace"}[i%2]
			killAfter(t, s, what, time.Duration(rng.IntN(6000))*time.Microsecond)

			after := bloomtest.Stored(t, s)
			bloomtest.WantTTL(t, s, 30*time.Minute)
			bloomtest.WantScratchExpires(t, s, bloomtest.Key)
			items, err := f.Cardinality(t.Context())
			bloomtest.NoError(t, err)
			switch {
			case after == before:
				untouched++
			case what == "load":
				loaded++
				bloomtest.WantMails(t, f, 0, 3000)
				bloomtest.Exists(t, f, "before", true)
				if bloomtest.OwnWords(t, after) != bloomtest.OwnWords(t, before) {
					t.Errorf("the second word was %x and is %x", bloomtest.OwnWords(t, before), bloomtest.OwnWords(t, after))
				}
			default:
				replaced++
				bloomtest.WantMails(t, f, 0, 3000)
			}
			if after != before && (items < 2900 || items > 3100) {
				t.Errorf("%d items after a %s", items, what)
			}
		}
		t.Logf("%d killed: %d left the filter as it was, %d had loaded it, %d had replaced it",
			kills, untouched, loaded, replaced)
		if kills >= 50 && (untouched == 0 || loaded == 0 || replaced == 0) {
			t.Error("no kill came before the last step, or none after it")
		}
	})
}

// killAfter starts a process that loads or replaces, and kills it d after it
// began.
func killAfter(t *testing.T, s *upstashtest.Server, what string, d time.Duration) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run", "^"+name+"$")
	cmd.Env = append(os.Environ(),
		"UPBLOOM_KILL_URL="+s.URL, "UPBLOOM_KILL_TOKEN="+s.Token, "UPBLOOM_KILL_WHAT="+what)
	out := testenv.Start(t, cmd)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the process says %q: %v", line, err)
	}
	time.Sleep(d)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// TestBackupKilled kills processes at random moments of a backup and its restore.
// The filter is then unchanged, the restored one missing or complete, and nothing
// is left behind without a TTL.
func TestBackupKilled(t *testing.T) {
	if url := os.Getenv("UPBLOOM_KILL_URL"); url != "" {
		backUpUntilKilled(t, url)
		return
	}
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("UPBLOOM_KILLS")); err == nil {
		kills = n
	}
	const to = bloomtest.Key + ":copy"
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		rng := rand.New(rand.NewPCG(1, 2))
		f, err := bloom.NewCuckoo(s.Client(), bloomtest.Key, bloom.CuckooConfig{Capacity: 4000, FPRate: 0.01})
		bloomtest.NoError(t, err)
		bloomtest.NoError(t, bloomtest.ErrorOf(f.AddAll(t.Context(), bloomtest.Numbered("item", 3000))))
		before, restored := bloomtest.Stored(t, s), 0
		for range kills {
			bloomtest.Do(t, s, "DEL", to)
			killAfter(t, s, "backup", time.Duration(rng.IntN(8000))*time.Microsecond)
			if bloomtest.Stored(t, s) != before {
				t.Error("the filter was changed")
			}
			bloomtest.WantScratchExpires(t, s, bloomtest.Key, to)
			if bloomtest.Do(t, s, "EXISTS", to) == int64(0) {
				continue
			}
			restored++
			after := bloomtest.StoredAt(t, s, to)
			if after[:8]+after[16:] != before[:8]+before[16:] {
				t.Error("a part of the filter was restored")
			}
		}
		t.Logf("%d killed: %d had restored the filter", kills, restored)
		if kills >= 50 && (restored == 0 || restored == kills) {
			t.Error("no kill came before the last step, or none after it")
		}
	})
}

// backUpUntilKilled runs in that process. It takes a backup, restores it to
// another key, and waits.
func backUpUntilKilled(t *testing.T, url string) {
	c, err := upstash.New(url, os.Getenv("UPBLOOM_KILL_TOKEN"))
	bloomtest.NoError(t, err)
	fmt.Println("ready")
	b, err := bloom.TakeBackup(context.Background(), c, bloomtest.Key, bloom.WithPartBytes(1<<10))
	if err == nil {
		_, err = b.Restore(context.Background(), c, bloomtest.Key+":copy", 0, bloom.WithPartBytes(1<<10))
	}
	bloomtest.NoError(t, err)
	time.Sleep(time.Minute)
}

// moveUntilKilled runs in that process. It moves once and waits.
func moveUntilKilled(t *testing.T, url string) {
	c, err := upstash.New(url, os.Getenv("UPBLOOM_KILL_TOKEN"))
	bloomtest.NoError(t, err)
	cfg, parts := bloomtest.Middling(), bloomtest.InParts()
	cfg.TTL = time.Hour
	f := bloomtest.Handle(t, c, cfg)
	l := bloomtest.LocalOf(f, 0, 3000)
	fmt.Println("ready")
	if os.Getenv("UPBLOOM_KILL_WHAT") == "load" {
		_, err = f.Merge(context.Background(), l, parts)
	} else {
		err = f.Replace(context.Background(), l, parts)
	}
	bloomtest.NoError(t, err)
	time.Sleep(time.Minute)
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
