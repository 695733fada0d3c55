//go:build linux

package systemtest

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

var mirrorFor = flag.Duration("mirror.for", 4*time.Second, "how long TestMirrorOfAWindowInRealTime runs")

const (
	runSpan, runStale, runPatience = 20 * time.Second, time.Second, 2 * time.Second
	runPane                        = runSpan + 5*time.Second
)

// TestMirrorOfAWindowInRealTime lets four processes look items up in their Mirrors
// of one Window, at Redis, while this one adds and renews items. One process at a
// time is stopped by SIGSTOP, and the server is silent for some seconds now and
// then. Each process judges its answers by what it was told was added, and when.
func TestMirrorOfAWindowInRealTime(t *testing.T) {
	if c, is := inAnotherProcess(t, upstash.WithRetry(0), upstash.WithTimeout(time.Second)); is {
		mirrorChild(t, c)
		return
	}
	s := upstashtest.NewServer(t, upstashtest.WithRedis(testenv.Redis(t)))
	w := runWindow(t, s.Client(upstash.WithRetry(0)))
	bloomtest.NoError(t, bloomtest.ErrorOf(w.Create(t.Context())))
	var children []*mirrorProcess
	for range 4 {
		children = append(children, startMirrorProcess(t, s))
	}
	rng, ends := rand.New(rand.NewPCG(1, 2)), time.Now().Add(*mirrorFor)
	var stopping sync.WaitGroup
	stopping.Go(func() { stopNowAndThen(t, children, ends) })
	silent, items := time.Time{}, []string{}
	for n := 0; time.Now().Before(ends); n++ {
		time.Sleep(40 * time.Millisecond)
		if n%1000 == 900 {
			silent = time.Now().Add(time.Duration(rng.IntN(4)) * time.Second)
			s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
				return upstashtest.Drop(upstashtest.BeforeExec)
			})
		} else if !silent.IsZero() && time.Now().After(silent) {
			silent = time.Time{}
			s.InjectFunc(nil)
		}
		item := fmt.Sprint("item-", n)
		if len(items) > 0 && rng.IntN(3) == 0 { // renew one of the last
			item = items[len(items)-1-rng.IntN(min(len(items), 200))]
		} else {
			items = append(items, item)
		}
		began := time.Now()
		_, err := w.Add(t.Context(), item)
		line := fmt.Sprintln(item, began.UnixNano(), time.Now().UnixNano())
		if err != nil {
			line = fmt.Sprintln(item, 0, 0) // nobody knows
		}
		for _, c := range children {
			c.tell(line)
		}
	}
	stopping.Wait()
	all := tallies{}
	for _, c := range children {
		all.add(c.end(t))
	}
	t.Logf("in %v: %+v", *mirrorFor, all)
	if all.WrongNo+all.OldYes > 0 || all.LookUps == 0 || all.Yes == 0 || all.No == 0 {
		t.Errorf("%+v, want answers, and none of them wrong", all)
	}
}

func runWindow(t *testing.T, c *upstash.Client) *bloom.Window {
	w, err := bloom.NewWindow(c, bloomtest.Key, bloom.WindowConfig{Capacity: 3000, FPRate: 1e-6, Span: runSpan})
	bloomtest.NoError(t, err)
	return w
}

// stopNowAndThen stops a process for up to three panes, and then another.
func stopNowAndThen(t *testing.T, children []*mirrorProcess, ends time.Time) {
	rng := rand.New(rand.NewPCG(3, 4))
	rest := func(most time.Duration) {
		time.Sleep(min(time.Duration(rng.Int64N(int64(most))), max(0, time.Until(ends))))
	}
	for time.Now().Before(ends) {
		rest(3 * time.Second)
		c := children[rng.IntN(len(children))]
		if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
		rest([]time.Duration{time.Second, runSpan, 3 * runPane}[rng.IntN(3)])
		if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
}

// tallies are what a process has counted.
type tallies struct{ LookUps, Yes, No, Errors, WrongNo, OldYes int }

func (n *tallies) add(o tallies) {
	n.LookUps, n.Yes, n.No = n.LookUps+o.LookUps, n.Yes+o.Yes, n.No+o.No
	n.Errors, n.WrongNo, n.OldYes = n.Errors+o.Errors, n.WrongNo+o.WrongNo, n.OldYes+o.OldYes
}

type mirrorProcess struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	lines chan string
	sent  sync.WaitGroup
}

func startMirrorProcess(t *testing.T, s *upstashtest.Server) *mirrorProcess {
	t.Helper()
	cmd, in := anotherProcess(t, s.URL, s.Token)
	c := &mirrorProcess{cmd: cmd, in: in, lines: make(chan string, 1<<16)}
	c.out = bufio.NewScanner(testenv.Start(t, cmd))
	c.sent.Go(func() { // the process may be stopped
		for line := range c.lines {
			_, _ = io.WriteString(in, line)
		}
		_ = in.Close()
	})
	return c
}

func (c *mirrorProcess) tell(line string) { c.lines <- line }

// end has the process end, and returns what it counted.
func (c *mirrorProcess) end(t *testing.T) (got tallies) {
	t.Helper()
	close(c.lines)
	c.sent.Wait()
	for c.out.Scan() {
		text, ok := strings.CutPrefix(c.out.Text(), "counted ")
		if !ok {
			if strings.Contains(c.out.Text(), " was added ") {
				t.Error(c.out.Text())
			}
			continue
		}
		_, err := fmt.Sscan(text, &got.LookUps, &got.Yes, &got.No, &got.Errors, &got.WrongNo, &got.OldYes)
		bloomtest.NoError(t, err)
	}
	return got
}

// added is what a process knows of an item: when its last Add began, and was
// acknowledged; both zero if that is not known.
type added struct{ began, ended time.Time }

// mirrorChild looks items up until its input ends, and it has been told a yes and a
// no: on a busy machine that takes longer.
func mirrorChild(t *testing.T, c *upstash.Client) {
	m := bloomtest.Mirror(t, runWindow(t, c), bloom.MirrorConfig{MaxStale: runStale, StaleIfError: runPatience})
	var mu sync.Mutex
	known, names := map[string]added{}, []string{}
	var over atomic.Bool
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			var item string
			var began, ended int64
			_, _ = fmt.Sscan(in.Text(), &item, &began, &ended)
			mu.Lock()
			if _, ok := known[item]; !ok {
				names = append(names, item)
			}
			known[item] = added{}
			if began > 0 {
				known[item] = added{time.Unix(0, began), time.Unix(0, ended)}
			}
			mu.Unlock()
		}
		over.Store(true)
	}()
	var n tallies
	rng := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	for i := 0; !over.Load() || n.Yes == 0 || n.No == 0; i++ {
		time.Sleep(2 * time.Millisecond)
		if i%100 == 0 {
			n.judge(m, fmt.Sprint("never-", i), added{})
		}
		if i%500 == 0 { // one of its own
			item := fmt.Sprint("own-", os.Getpid(), "-", i)
			began := time.Now()
			if _, err := m.AddThrough(context.Background(), item); err == nil {
				mu.Lock()
				known[item] = added{began, time.Now()}
				names = append(names, item)
				mu.Unlock()
			}
		}
		mu.Lock()
		if len(names) == 0 {
			mu.Unlock()
			continue
		}
		item := names[len(names)-1-rng.IntN(min(len(names), 4000))]
		last := known[item]
		mu.Unlock()
		n.judge(m, item, last)
	}
	fmt.Println("counted", n.LookUps, n.Yes, n.No, n.Errors, n.WrongNo, n.OldYes)
}

// judge looks an item up. Its clock and the server's are one.
func (n *tallies) judge(m *bloom.Mirror, item string, last added) {
	began := time.Now().Round(0)
	found, err := m.Exists(context.Background(), item)
	ended := time.Now().Round(0)
	if err != nil {
		n.Errors++
		return
	}
	n.LookUps++
	lag := runStale + runPatience
	if strings.HasPrefix(item, "own-") {
		lag = 0 // the copy has it
	}
	if found {
		n.Yes++
	} else {
		n.No++
	}
	switch {
	case last.ended.IsZero():
	case found && began.Sub(last.ended) > 3*runPane+runStale+runPatience:
		n.OldYes++
		fmt.Printf("yes: %s was added %v before\n", item, began.Sub(last.ended))
	case !found && began.Sub(last.ended) > lag && ended.Sub(last.began) < runSpan:
		n.WrongNo++
		fmt.Printf("no: %s was added %v before\n", item, began.Sub(last.ended))
	}
}
