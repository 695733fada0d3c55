//go:build unix

package bloom_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestMoveKilled kills processes in the midst of Load and Replace, at random
// moments: the target is then as it was or complete, its TTL and own words
// stay, and nothing is left behind without a TTL. UPBLOOM_KILLS sets how many
// are killed.
func TestMoveKilled(t *testing.T) {
	if url := os.Getenv("UPBLOOM_KILL_URL"); url != "" {
		moveUntilKilled(t, url)
		return
	}
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("UPBLOOM_KILLS")); err == nil {
		kills = n
	}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		rng := rand.New(rand.NewPCG(1, 2))
		cfg, _ := inParts(middling())
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		loaded, replaced, untouched := 0, 0, 0
		for i := range kills {
			do(t, s, "FLUSHALL")
			add(t, f, "before", true)
			if _, err := f.Expire(t.Context(), 30*time.Minute); err != nil {
				t.Fatal(err)
			}
			before := stored(t, s)
			what := []string{"load", "replace"}[i%2]
			killAfter(t, s, what, time.Duration(rng.IntN(6000))*time.Microsecond)

			after := stored(t, s)
			wantTTL(t, s, 30*time.Minute)
			wantScratchExpires(t, s, key)
			items, err := f.Cardinality(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case after == before:
				untouched++
			case what == "load":
				loaded++
				wantMails(t, f, 0, 3000)
				exists(t, f, "before", true)
				if ownWords(t, after) != ownWords(t, before) {
					t.Errorf("the second word was %x and is %x", ownWords(t, before), ownWords(t, after))
				}
			default:
				replaced++
				wantMails(t, f, 0, 3000)
			}
			if after != before && (items < 2900 || items > 3100) {
				t.Errorf("%d items after a %s", items, what)
			}
		}
		t.Logf("%d killed: %d left the filter as it was, %d had loaded it, %d had replaced it",
			kills, untouched, loaded, replaced)
		if kills >= 50 && (untouched == 0 || loaded == 0 || replaced == 0) {
			t.Error("the kills did not fall on every side of the last step")
		}
	})
}

// killAfter starts a process that loads or replaces, and kills it some time
// after it began.
func killAfter(t *testing.T, s *upstashtest.Server, what string, d time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestMoveKilled$")
	cmd.Env = append(os.Environ(),
		"UPBLOOM_KILL_URL="+s.URL, "UPBLOOM_KILL_TOKEN="+s.Token, "UPBLOOM_KILL_WHAT="+what)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the process says %q: %v", line, err)
	}
	time.Sleep(d)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// moveUntilKilled is the process. It moves once and waits.
func moveUntilKilled(t *testing.T, url string) {
	c, err := upstash.New(url, os.Getenv("UPBLOOM_KILL_TOKEN"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, parts := inParts(middling())
	cfg.TTL = time.Hour
	f := handle(t, c, cfg)
	l := localOf(f, 0, 3000)
	fmt.Println("ready")
	if os.Getenv("UPBLOOM_KILL_WHAT") == "load" {
		_, err = f.Merge(context.Background(), l, parts)
	} else {
		err = f.Replace(context.Background(), l, parts)
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
}

// Load and Replace under every fault: a nil error means that the items are in,
// and any error leaves a filter that is as it was or complete.
func TestMoveUnderFaults(t *testing.T) {
	for _, fault := range upstashtest.EveryFault() {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			s := upstashtest.NewServer(t)
			cfg, parts := inParts(middling())
			for _, nth := range []int64{0, 7} { // the first part or request, and the last step
				for _, what := range []string{"load", "replace", "snapshot"} {
					do(t, s, "FLUSHALL")
					f := handle(t, impatient(s, upstash.WithTimeout(250*time.Millisecond)), cfg)
					patient := handle(t, s.Client(), cfg)
					add(t, patient, "before", true)
					before := stored(t, s)
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
						_, err = f.Load(t.Context(), mails(0, 1000), parts)
					case "replace":
						err = f.Replace(t.Context(), localOf(f, 0, 1000), parts)
					case "snapshot":
						l, err = f.Snapshot(t.Context(), parts)
					}
					s.InjectFunc(nil)
					// A fault of the connection strikes the request after the one
					// that drew it.
					_, _ = s.Client(upstash.WithRetry(0)).Do(t.Context(), upstash.Cmd("PING"))
					wantScratchExpires(t, s, key)
					if what == "snapshot" {
						if err == nil && !l.Exists("before") {
							t.Errorf("request %d: a snapshot without an item that was in", nth+1)
						}
						continue
					}
					if err == nil || stored(t, s) != before {
						if fault.String() != "vanished-filter" {
							wantMails(t, patient, 0, 1000)
						}
					}
					if err != nil && upstash.SafeToRetry(err) && stored(t, s) != before &&
						!errors.Is(err, bloom.ErrLoadLost) {
						t.Errorf("request %d of a %s: %v is safe to retry, and the filter has changed", nth+1, what, err)
					}
				}
			}
		})
	}
}
