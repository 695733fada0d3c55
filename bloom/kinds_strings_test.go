package bloom_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A kindString is a whole string that another program made, with the Config
// that it is for.
type kindString struct {
	Kind     bloom.Kind
	Capacity uint64
	P        float64
	Seed     uint64 `json:"seed,string"`
	Span     int64  `json:"span_seconds"`
	Seconds  int64  `json:"pane_seconds"`
	Panes    int
	Idle     bool
	Epoch    int64
	Items    []string
	FoundAt  map[string][]string `json:"found_at"`
	Hex      string
}

type windowTurn struct {
	Panes   int
	C, To   int64
	Steps   int64
	Cleared []int `json:"cleared_panes"`
}

func loadKinds(t *testing.T) (v struct {
	Strings     []kindString
	WindowTurns []windowTurn `json:"window_turns"`
},
) {
	t.Helper()
	data, err := os.ReadFile("testdata/v1-kinds.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Strings) != 8 || len(v.WindowTurns) != 144 {
		t.Fatalf("%d strings and %d turns, want 8 and 144", len(v.Strings), len(v.WindowTurns))
	}
	return v
}

func (v kindString) bytes(t *testing.T) string {
	t.Helper()
	data, err := hex.DecodeString(v.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (v kindString) windowConfig() bloom.WindowConfig {
	return bloom.WindowConfig{
		Capacity: v.Capacity, FPRate: v.P, Span: time.Duration(v.Span) * time.Second,
		Panes: v.Panes, Seed: v.Seed, ExpireIdle: v.Idle,
	}
}

// at is a clock in the midst of an epoch.
func (v kindString) at(epoch int64) *serverClock {
	return &serverClock{now: time.Unix(epoch*v.Seconds+v.Seconds/2, 0)}
}

// A window that another program wrote: what Go finds in it, at every epoch around
// the window's own.
func TestWindowOfAnotherProgram(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		windows := 0
		for _, v := range loadKinds(t).Strings {
			if v.Kind != bloom.KindWindow {
				continue
			}
			windows++
			for after, want := range v.FoundAt {
				do(t, s, "SET", key, v.bytes(t))
				d, err := strconv.ParseInt(after, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				c, _ := timedClient(t, s, v.at(v.Epoch+d))
				opened, err := bloom.OpenWindow(t.Context(), c, key, bloom.OpenSeed(v.Seed))
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range []*bloom.Window{window(t, c, v.windowConfig()), opened} {
					found, err := w.ExistsAll(t.Context(), v.Items)
					if err != nil {
						t.Fatal(err)
					}
					for i, item := range v.Items {
						if found[i] != slices.Contains(want, item) {
							t.Errorf("%v, %s epochs after: %s: %v", w, after, item, found[i])
						}
					}
				}
			}
		}
		if windows != 2 {
			t.Errorf("%d windows, want 2", windows)
		}
	})
}

// A window that Go writes, epoch by epoch, is the string of the other program.
func TestWindowIsTheFormat(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		compared := 0
		for _, v := range loadKinds(t).Strings {
			if v.Kind != bloom.KindWindow || !v.Idle {
				continue // the other has items in its spare pane: the next Add turns it
			}
			compared++
			s.FlushAll()
			for d := int64(-v.Panes); d <= 0; d++ {
				c, _ := timedClient(t, s, v.at(v.Epoch+d))
				w := window(t, c, v.windowConfig())
				for _, item := range v.Items {
					if strings.HasPrefix(item, fmt.Sprintf("epoch %d,", d)) {
						if _, err := w.Add(t.Context(), item); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			got, want := stored(t, s), v.bytes(t)
			got = strings.TrimRight(got[:8]+want[8:16]+got[16:], "\x00") // but for the birth number
			if got != strings.TrimRight(want, "\x00") {
				t.Errorf("stored\n%x, want\n%x", got, want)
			}
		}
		if compared != 1 {
			t.Errorf("%d windows compared, want 1", compared)
		}
	})
}

// A turn clears the panes that the format names, and no others.
func TestWindowTurnClears(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		turned := 0
		for _, v := range loadKinds(t).WindowTurns {
			if v.Steps > 1<<19 {
				continue // to is behind C: no writer turns back
			}
			turned++
			s.FlushAll()
			cfg := bloom.WindowConfig{
				Capacity: 1, FPRate: 0.5, Panes: v.Panes,
				Span: time.Duration(60*v.Panes-4) * time.Second, // 60 s a pane
			}
			at := func(epoch int64) *bloom.Window {
				c, _ := timedClient(t, s, &serverClock{now: time.Unix(60*epoch+30, 0)})
				return window(t, c, cfg)
			}
			w := at(v.C)
			if _, err := w.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			pane := int(w.Geometry().Bits+7) / 8
			for j := range v.Panes + 2 {
				do(t, s, "SETRANGE", key, strconv.Itoa(24+j*pane), strings.Repeat("\xff", pane))
			}
			if _, err := at(v.To).Add(t.Context(), "item"); err != nil {
				t.Fatal(err)
			}
			body := stored(t, s)[24:]
			for j := range v.Panes + 2 {
				full := body[j*pane:(j+1)*pane] == strings.Repeat("\xff", pane)
				if want := !slices.Contains(v.Cleared, j); full != want {
					t.Errorf("%+v: pane %d was left: %v, want %v", v, j, full, want)
				}
			}
		}
		if turned != 128 {
			t.Errorf("%d turns, want 128", turned)
		}
	})
}
