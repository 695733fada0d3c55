package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// If more items are added than a filter is for, calc says what its false
// positive rate is then, and which size suits them.
func TestCalcOfOverfill(t *testing.T) {
	for _, c := range []struct {
		flags, adds, says string
		panes             int // of a window that hold items, otherwise 1
	}{
		{"", "--monthly --adds 3k", "1 in 4.8 false positives at 3,000 items in 30d", 1},
		{"", "--adds 3k --ttl 1d", "1 in 4.8 false positives at 3,000 items in 24h", 1},
		{"", "--adds 6k --ttl 1d --filters 2", "1 in 4.8 false positives at 3,000 items in each in 24h", 1},
		{"--shards 2", "--monthly --adds 3k", "1 in 6.5 false positives at 3,000 items in 30d", 1},
		{"--window 1d", "--adds 3k", "1 in 2.3 false positives at 3,000 items in 24h", 2},
		{"--window 1d --panes 2", "--adds 3k", "1 in 18 false positives at 3,000 items in 24h", 3},
	} {
		sh := newShell(t)
		text, over := sh.overfill("--items 1k", c.flags, c.adds)
		if over == nil || over.Items != 3000 ||
			!strings.Contains(text, "  over-filled    "+c.says+", if all are new:\n"+
				"                 use --items 3000 to size it for them\n") {
			t.Errorf("%s %s: %+v\n%s", c.flags, c.adds, over, text)
			continue
		}
		sh.want(0, "created", "", strings.Fields("create --items 1k "+c.flags+" key")...)
		var s state
		decode(t, sh.want(0, "", "", "--json", "info", "key"), &s)
		pane, each := time.Duration(s.PaneSpan)*time.Second, 3000
		if pane > 0 { // a quarter into a pane, whenever the test runs
			sh.s.FastForward(pane*5/4 - time.Duration(time.Now().UnixNano())%pane)
			each = int(3000 * pane / (24 * time.Hour))
		}
		for i := range c.panes {
			if i > 0 {
				sh.s.FastForward(pane)
			}
			sh.want(0, "new", numbered(fmt.Sprint(i), each), "add", "--force", "key", "-")
		}
		decode(t, sh.want(0, "", "", "--json", "info", "key"), &s)
		if math.Abs(*s.Rate-over.Rate) > 0.05*over.Rate {
			t.Errorf("%s %s: calc says a rate of %v, and it is %v", c.flags, c.adds, over.Rate, *s.Rate)
		}
		if _, over := sh.overfill("--items 3000", c.flags, c.adds); over != nil {
			t.Errorf("%s %s: %+v with the size that calc says", c.flags, c.adds, over)
		}
	}
}

// overfill returns what calc says, and what of it is about too many items.
func (sh *shell) overfill(flags ...string) (string, *overfill) {
	sh.t.Helper()
	var p struct{ Month month }
	args := append([]string{"calc"}, strings.Fields(strings.Join(flags, " "))...)
	if err := decodeSome(sh.want(0, "", "", append([]string{"--json"}, args...)...), &p); err != nil {
		sh.t.Fatal(err)
	}
	return sh.want(0, "", "", args...), p.Month.Over
}

// A filter that grows, one that refuses items and one whose panes have room for
// them are other cases.
func TestCalcOfOverfillByKind(t *testing.T) {
	sh := newShell(t)
	for flags, says := range map[string]string{
		"--adds 20M":                        "use --items 600000000 --shards 9 to size it for them\n",
		"--adds 20M --shards 2 --rate 5%":   "use --items 600000000 --shards 5 to size it for them\n",
		"--adds 300M --shards 2":            "use --items 9000000000 --shards 121 to size it for them\n",
		"--adds 300M --scalable":            "they are too many for one such filter, use several\n",
		"--adds 20M --cuckoo":               "they are too many for one such filter, use several\n",
		"--adds 300M --window 2d":           "they are too many for one such filter, use several\n",
		"--adds 20M --scheme xxh3":          "use --items 600000000 --shards 9 to size it for them\n",
		"--adds 20M --scheme xxh3 --ttl 1d": "use --items 20000000 to size it for them\n",
	} {
		if text, _ := sh.overfill("--items 1k", flags); !strings.Contains(text, ":\n                 "+says) {
			t.Errorf("%s: want %q\n%s", flags, says, text)
		}
	}
	for flags, size := range map[string]string{ // "" if nothing is to be said
		"--items 1k --monthly --adds 1k":                "",
		"--items 1k --lookups 3k":                       "",
		"--items 1k --window 1d --panes 2 --adds 1001":  "",
		"--items 1k --scalable --monthly --adds 341k":   "",
		"--items 1k --scalable --monthly --adds 682k":   "2000",
		"--items 1k --cuckoo --monthly --adds 1k":       "",
		"--items 1k --cuckoo --monthly --adds 3k":       "3000",
		"--items 1k --scalable --monthly --adds 30000k": "87977",
	} {
		text, over := sh.overfill(flags)
		if (over == nil) != (size == "") || !strings.Contains(text, size) ||
			over != nil && !strings.Contains(text, ":\n                 use --items "+size+" to size it for them\n") {
			t.Errorf("%s: %+v\n%s", flags, over, text)
		}
		if over != nil && (over.Rate == 0) != strings.Contains(text, "it may refuse some of 3,000 items in 30d") {
			t.Errorf("%s: %+v\n%s", flags, over, text)
		}
		if over == nil {
			continue
		}
		if _, over := sh.overfill(flags + " --items " + size); over != nil {
			t.Errorf("%s: %+v with --items %s", flags, over, size)
		}
	}
}

// The size that calc says suits the items, and a record of 100 MB if there is
// such a size.
func TestCalcSaysASizeThatFits(t *testing.T) {
	const larger = " on one of the larger plans, or several filters\n"
	sh := newShell(t)
	for flags, most := range map[string]int{ // for which there is a size, in millions
		"--scalable": 70, "--scalable --rate 0.1%": 51, "--cuckoo": 70, "--window 30d": 12, "": 900, "--shards 2": 900,
	} {
		for _, millions := range []int{3, 12, 51, 57, 60, 70, 87, 900} {
			adds := fmt.Sprintf("--monthly --adds %dM", millions)
			text, over := sh.overfill("--items 1k", flags, adds)
			_, advice, _ := strings.Cut(text, ", if all are new:\n")
			if flags == "--cuckoo" {
				_, advice, _ = strings.Cut(text, ", unless others are removed:\n")
			}
			_, size, _ := strings.Cut(advice, "use --items ")
			size, _, fits := strings.Cut(size, " to size it for them\n")
			if over == nil || fits != (millions <= most) ||
				!fits && !strings.Contains(advice, larger) && !strings.Contains(advice, "they are too many") {
				t.Errorf("%s %s: %v\n%s", flags, adds, over, text)
				continue
			}
			if !fits {
				continue
			}
			kept := flags
			if strings.Contains(size, "--shards") {
				kept = ""
			}
			text, over = sh.overfill(kept, "--items", size, adds)
			if over != nil || strings.Contains(text, "larger plans") {
				t.Errorf("%s %s: with --items %s\n%s", flags, adds, size, text)
			}
		}
	}
}
