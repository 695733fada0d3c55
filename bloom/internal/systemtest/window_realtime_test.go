package systemtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestWindowInRealTime adds and looks up items in windows whose panes are nearly
// as short as they can be, on the clocks of the machine, for as many minutes as
// UPBLOOM_WINDOW_MINUTES says. There are two clients. The wall clock of one is
// set back and forth by hours.
func TestWindowInRealTime(t *testing.T) {
	minutes, _ := strconv.ParseFloat(os.Getenv("UPBLOOM_WINDOW_MINUTES"), 64)
	if minutes == 0 {
		t.Skip("it takes minutes: set UPBLOOM_WINDOW_MINUTES")
	}
	for name, cfg := range map[string]bloom.WindowConfig{
		"panes of 15 s": {Span: 10 * time.Second, Panes: 1},
		"panes of 12 s": {Span: 40 * time.Second, Panes: 4, ExpireIdle: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
				t.Parallel()
				newLiveWindow(t, s, cfg).run(time.Duration(minutes * float64(time.Minute)))
			})
		})
	}
}

// A liveWindow compares the answers about each item with the earlier calls of
// both clients, by the times of their beginnings and ends.
type liveWindow struct {
	t       *testing.T
	s       *upstashtest.Server
	cfg     bloom.WindowConfig
	forgets time.Duration // nothing older is found

	begin  time.Time
	until  time.Duration
	items  []liveItem
	checks atomic.Int64
	told   [4]atomic.Int64 // how many Adds were new, seen, uncertain, and look-ups found
}

type liveItem struct {
	mu   sync.Mutex
	adds []*liveAdd
}

type liveAdd struct {
	began, ended time.Duration // ended is 0 while it is under way
	isNew, in    bool
}

func newLiveWindow(t *testing.T, s *upstashtest.Server, cfg bloom.WindowConfig) *liveWindow {
	cfg.Capacity, cfg.FPRate = 40_000, 5e-9 // a false positive would be a surprise
	pane := (cfg.Span + 5*time.Second) / time.Duration(cfg.Panes)
	pane = (pane + time.Second - 1).Truncate(time.Second)
	return &liveWindow{
		t: t, s: s, cfg: cfg, forgets: time.Duration(cfg.Panes+2)*pane + 4*time.Second,
		begin: time.Now(), items: make([]liveItem, 20_000),
	}
}

func (l *liveWindow) run(d time.Duration) {
	l.until = d
	var offset atomic.Int64 // of the second client's wall clock
	wrong := door.WithClock(
		func() time.Time { return time.Now().Add(time.Duration(offset.Load())) },
		func() time.Duration { return time.Since(l.begin) },
	).(upstash.Option)
	var running sync.WaitGroup
	for i, opts := range [][]upstash.Option{nil, {wrong}} {
		w, err := bloom.NewWindow(l.s.Client(opts...), bloomtest.Key, l.cfg)
		if err != nil {
			l.t.Fatal(err)
		}
		for j := range 4 {
			rng := rand.New(rand.NewPCG(uint64(i), uint64(j)))
			running.Go(func() { l.work(w, rng) })
		}
	}
	running.Go(func() {
		rng := rand.New(rand.NewPCG(2, 0))
		for l.now() < l.until {
			offset.Store(rng.Int64N(int64(4*time.Hour)) - int64(2*time.Hour))
			time.Sleep(time.Duration(rng.Int64N(int64(5 * time.Second))))
		}
	})
	running.Wait()
	l.t.Logf("%d checks: %d Adds were told new, %d seen, %d uncertain; %d look-ups found an item",
		l.checks.Load(), l.told[0].Load(), l.told[1].Load(), l.told[2].Load(), l.told[3].Load())
	if l.told[0].Load() == 0 || l.told[1].Load() == 0 || l.told[3].Load() == 0 {
		l.t.Error("too little was asked")
	}
}

func (l *liveWindow) now() time.Duration { return time.Since(l.begin) }

func (l *liveWindow) work(w *bloom.Window, rng *rand.Rand) {
	for l.now() < l.until {
		n := rng.IntN(len(l.items))
		name, item := fmt.Sprint("item ", n), &l.items[n]
		if rng.IntN(3) == 0 {
			l.look(w, name, item)
		} else {
			l.add(w, name, item)
		}
		time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
	}
}

func (l *liveWindow) look(w *bloom.Window, name string, item *liveItem) {
	began := l.now()
	found, err := w.Exists(l.t.Context(), name)
	if err != nil && !errors.Is(err, bloom.ErrNotFound) {
		l.t.Errorf("Exists(%s): %v", name, err)
		return
	}
	item.mu.Lock()
	defer item.mu.Unlock()
	l.check("Exists", name, item, nil, began, l.now(), found)
	if found {
		l.told[3].Add(1)
	}
}

func (l *liveWindow) add(w *bloom.Window, name string, item *liveItem) {
	a := &liveAdd{began: l.now()}
	item.mu.Lock()
	item.adds = append(item.adds, a)
	item.mu.Unlock()
	isNew, err := w.Add(l.t.Context(), name)
	item.mu.Lock()
	defer item.mu.Unlock()
	a.ended, a.in = l.now(), bloom.InFilter(err)
	switch {
	case errors.Is(err, bloom.ErrUncertain):
		l.told[2].Add(1)
		return
	case err != nil:
		l.t.Errorf("Add(%s): %v", name, err)
		return
	case isNew:
		l.told[0].Add(1)
	default:
		l.told[1].Add(1)
	}
	a.isNew = isNew
	l.check("Add", name, item, a, a.began, a.ended, !isNew)
}

// check compares an answer with the Adds of the item. own is the Add that it
// belongs to.
func (l *liveWindow) check(what, name string, item *liveItem, own *liveAdd, began, ended time.Duration, found bool) {
	l.checks.Add(1)
	explained := false
	kept := item.adds[:0]
	for _, a := range item.adds {
		if a.ended == 0 || began-a.ended < 2*l.forgets { // else it explains nothing
			kept = append(kept, a)
		}
		if a == own {
			continue
		}
		explained = explained || a.began < ended && (a.ended == 0 || began-a.ended <= l.forgets)
		switch {
		case found || a.ended == 0:
		case a.in && a.ended < began && ended-a.began < l.cfg.Span:
			l.t.Errorf("%s(%s) at %v did not find what was added at %v", what, name, began, a.began)
		case own != nil && a.isNew && max(ended, a.ended)-min(began, a.began) < l.cfg.Span:
			l.t.Errorf("Add(%s): two were told new, at %v and %v", name, a.ended, ended)
		}
	}
	item.adds = kept
	if found && !explained {
		l.t.Errorf("%s(%s) at %v found what nobody had added in the last %v", what, name, began, l.forgets)
	}
}
