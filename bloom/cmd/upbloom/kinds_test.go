package main

import (
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// otherKinds are the flags for each kind, and what the commands print about it.
var otherKinds = []struct {
	kind, noun string
	flags      []string
	info       string // of two items, one of them added twice
	row        string // of ls, between size and time to live
	expires    bool   // upbloom ttl can set it
}{
	{
		"window", "window",
		[]string{"--window", "24h", "--panes", "2"},
		"panes            4 of 12h2s",
		"blocked  2      0%    less than 1 in a billion  never", false,
	},
	{
		"scalable", "scalable filter",
		[]string{"--scalable"},
		"layers           1 of 5",
		"blocked  2      0%    less than 1 in a billion  never", true,
	},
	{
		"cuckoo", "cuckoo filter",
		[]string{"--cuckoo"},
		"items            3 of 1,002",
		"cuckoo  2      0%    1 in ", false,
	},
	{
		"sharded", "sharded filter",
		[]string{"--shards", "3"},
		"sharded          3 shards of ",
		"blocked  ", false,
	},
}

// Every kind is made, listed, filled, asked, shown and removed, with a seed too.
func TestEveryKind(t *testing.T) {
	for _, k := range otherKinds {
		t.Run(k.kind, func(t *testing.T) {
			sh := newShell(t)
			create := append([]string{"create", "--items", "1k"}, k.flags...)
			create = append(create, "key")
			sh.want(0, "created  "+k.noun, "", create...)
			sh.want(0, "it was there already", "", create...)
			out := sh.want(0, "", "", "add", "key", "a", "b", "a")
			if out != "new   a\nnew   b\nseen  a\n" {
				t.Errorf("add prints %q", out)
			}
			sh.want(1, "yes   b\nno    c\n", "", "check", "key", "b", "c")
			sh.want(0, "yes   a\n", "a\nb\n", "check", "key", "-")
			sh.want(0, k.info, "", "info", "key")
			var one state
			decode(t, sh.want(0, "", "", "--json", "info", "key"), &one)
			if one.Kind != k.kind || one.Key != "key" || one.Rate == nil || *one.Rate >= 0.01 || one.Bytes == 0 {
				t.Errorf("info: %+v", one)
			}
			sh.want(0, "no expiry", "", "ttl", "key")
			if k.expires {
				sh.want(0, "expires in 2d", "", "ttl", "key", "2d")
				sh.want(0, "no expiry", "", "ttl", "key", "none")
			} else {
				sh.want(2, "; nothing was changed", "", "ttl", "key", "2d")
			}
			sh.want(2, "--yes does it", "", "rm", "key")
			sh.want(0, "yes", "", "check", "key", "a")
			sh.want(0, "removed", "", "rm", "--yes", "key")
			sh.want(0, "no filters", "", "ls")

			seeded := *sh
			seeded.env = append(seeded.env, "UPBLOOM_SEED=7")
			seeded.want(0, "created", "", create...)
			seeded.want(0, "new   a", "", "add", "key", "a")
			for _, args := range [][]string{{"check", "key", "a"}, {"info", "key"}, {"rm", "--yes", "key"}} {
				sh.want(3, "set UPBLOOM_SEED to the seed", "", args...)
			}
			seeded.want(0, "", "", "info", "key")
		})
	}
}

// ls has a line for each kind, and a - for what it cannot know without the
// seed.
func TestListOfKinds(t *testing.T) {
	for _, k := range otherKinds {
		sh := newShell(t)
		sh.want(0, "", "", append(append([]string{"create", "--items", "1k"}, k.flags...), "key")...)
		sh.want(0, "", "", "add", "key", "a", "b")
		kind, lines := k.kind, 2
		if kind == "sharded" {
			kind, lines = "shard", 4
		}
		out := sh.want(0, k.row, "", "ls")
		if strings.Count(out, "\n") != lines || !strings.Contains(out, "  "+kind+"  ") {
			t.Errorf("ls of a %s prints\n%s", k.kind, out)
		}
		var list []state
		decode(t, sh.want(0, "", "", "--json", "ls"), &list)
		known := k.kind != "window" || list[0].Rate != nil && len(list[0].Parts) == 4
		if len(list) != lines-1 || list[0].Kind != kind || !known ||
			(list[0].Items == nil) != (k.kind == "window") {
			t.Errorf("ls of a %s: %+v", k.kind, list)
		}
		seeded := newShell(t)
		seeded.env = append(seeded.env, "UPBLOOM_SEED=7")
		seeded.want(0, "", "", append(append([]string{"create", "--items", "1k"}, k.flags...), "key")...)
		seeded.want(0, "", "", "add", "key", "a", "b")
		seeded.want(0, k.row, "", "ls")
		seeded.env = slices.Delete(seeded.env, len(seeded.env)-1, len(seeded.env))
		if k.kind == "window" || k.kind == "scalable" {
			seeded.want(0, "  blocked  -      -     -                never", "", "ls")
		}
	}
}

// Commands for plain filters refuse the other kinds, and change nothing.
func TestPlainCommandsAtOtherKinds(t *testing.T) {
	for _, k := range otherKinds {
		t.Run(k.kind, func(t *testing.T) {
			sh := newShell(t)
			sh.want(0, "", "", "add", "--items", "1k", "plain", "x")
			saved := filepath.Join(t.TempDir(), "saved")
			sh.want(0, "saved", "", "save", "plain", saved)
			sh.want(0, "", "", append(append([]string{"create", "--items", "1k"}, k.flags...), "key")...)
			sh.want(0, "", "", "add", "key", "a", "b")
			at := "key"
			if k.kind == "sharded" {
				at = "key:0"
			}
			before := sh.stored(at)
			for _, c := range [][]string{
				{"leave --items out", "add", "--items", "1k", "key", "c"},
				{"upbloom add KEY - adds", "load", "key"},
				{"upbloom add KEY - adds", "load", "--items", "1k", "key"},
				{"remove it with upbloom rm", "replace", "key"},
				{"remove it with upbloom rm", "replace", "--yes", "--items", "1k", "key"},
				{"from where its items come", "save", "key", filepath.Join(t.TempDir(), "new")},
				{"from where its items come", "restore", "key", saved},
			} {
				if at != "key" && c[1] == "load" {
					continue // TestLoadShards has what load says of shards
				}
				sh.want(3, c[0], "c\nd\n", c[1:]...)
				needs := "plain filter, as upbloom " + c[1] + " needs; "
				switch c[1] {
				case "add":
					needs = "plain filter, as upbloom add --items needs; "
				case "load":
					needs = "plain or sharded filter, as upbloom load needs; "
				}
				sh.want(3, "key: the key holds a "+k.noun+", and not a "+needs, "c\n", c[1:]...)
			}
			sh.want(3, "and not a plain filter: use another key", "", "create", "--items", "1k", "key")
			if k.kind == "cuckoo" {
				sh.want(2, "--max-rate has no effect on a cuckoo filter, which refuses by itself", "",
					"add", "--max-rate", "5%", "key", "c")
			}
			if at != "key" && sh.stored("key") != "" || sh.stored(at) != before {
				t.Error("the filter was changed, or another one was made beside it")
			}
			sh.want(3, "the key holds a plain filter, and not a "+k.noun, "",
				append(append([]string{"create", "--items", "1k"}, k.flags...), "plain")...)
		})
	}
}

// A flag without effect on the kind is an error, and so is a value the kind
// refuses.
func TestFlagsOfKinds(t *testing.T) {
	sh := newShell(t)
	for _, c := range []string{
		"--panes is for a window|--panes 2",
		"--panes is for a window|--cuckoo --panes 2",
		"--window and --cuckoo: a filter is of one kind|--window 1h --cuckoo",
		"--scalable and --shards: a filter is of one kind|--shards 2 --scalable",
		"--ttl has no effect with --window: --expire-idle|--window 1h --ttl 1h",
		"--ttl has no effect with --cuckoo: a cuckoo filter does not expire|--cuckoo --ttl 1h",
		"--ttl has no effect with --shards|--shards 2 --ttl 1d",
		"--scheme has no effect with --shards|--shards 2 --scheme xxh3",
		"--scheme has no effect with --scalable|--scalable --scheme blocked",
		"upbloom: --window is 1s|--window 1s",
		"upbloom: --window is 120d: it must be at most 97d2h10m3s, 97 days for each of 1 to 4 --panes|--window 120d",
		"upbloom: --window is 25s: it must be at least 30s, 10s for each pane|--window 25s --panes 3",
		"upbloom: --panes is 9: it must be from 1 to 4\n|--window 1h --panes 9",
		"--panes is 0|--window 1h --panes 0",
		"upbloom: --shards is 0|--shards 0",
		"upbloom: --shards is 999|--shards 999",
		"upbloom: --rate is 1e-12|--cuckoo --rate 1e-12",
		"--ttl is 0s|--scalable --ttl 0s",
		"--ttl is 100µs: use at least 1ms, or leave it out|--ttl 0.1ms",
	} {
		says, flags, _ := strings.Cut(c, "|")
		args := append([]string{"create", "--items", "1k"}, strings.Fields(flags)...)
		sh.want(2, says, "", append(args, "key")...)
	}
	if v, err := sh.s.Exec("DBSIZE"); err != nil || v != int64(0) {
		t.Errorf("%v keys are left, %v", v, err)
	}
	sh.want(0, "", "", "create", "--items", "1k", "--scalable", "--ttl", "1d", "grows")
	sh.want(0, "expires in ", "", "ttl", "grows")
	sh.want(0, "", "", "create", "--items", "1k", "--shards", "2", "spread")
	sh.want(0, "no expiry", "", "ttl", "spread")
	sh.want(0, "", "", "create", "--items", "1k", "--window", "1h", "seen")
	sh.want(3, "made with another --window", "", "create", "--items", "1k", "--window", "2h", "seen")
}

// A single shard is not asked. A sharded filter that has lost one is reported.
func TestShards(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "--items", "1k", "--shards", "2", "key")
	sh.want(0, "", numbered("a", 20), "add", "key", "-")
	sh.want(3, "use the key without the colon", "", "check", "key:1", "a-1")
	sh.want(0, "shard            ", "", "info", "key:1")
	if _, err := sh.s.Exec("RENAME", "key:1", "aside"); err != nil {
		t.Fatal(err)
	}
	sh.want(3, "a shard's key ends in a colon and a number: rename it back", "", "rm", "--yes", "aside")
	sh.want(3, "upbloom: key: 11 of 20 items done, 9 not done: shard 1 of 2 is missing: lost, or in another database, and"+
		" upbloom works on only one\n", "", append([]string{"check", "key"}, strings.Fields(numbered("a", 20))...)...)
	sh.want(3, "key: shard 1 of 2 is missing: ", "", "info", "key")
	sh.want(0, "removed", "", "rm", "--rest", "--yes", "key")
}

// A shard is no plain filter either. Each command says where its sharded filter
// is, or what can be done.
func TestPlainCommandsAtAShard(t *testing.T) {
	sh := newShell(t)
	saved := filepath.Join(t.TempDir(), "saved")
	sh.want(0, "", "", "add", "--items", "1k", "plain", "x")
	sh.want(0, "saved", "", "save", "plain", saved)
	sh.want(0, "", "", "create", "--items", "1k", "--shards", "2", "key")
	before := sh.everything()
	for _, args := range [][]string{
		{"add", "key:1", "c"},
		{"add", "--items", "1k", "key:1", "c"},
		{"load", "key:1"},
		{"load", "--items", "1k", "key:1"},
		{"replace", "key:1"},
		{"replace", "--yes", "--items", "1k", "key:1"},
		{"restore", "key:1", saved},
		{"create", "--items", "1k", "key:1"},
	} {
		sh.want(3, ": use the key without the colon and the number at its end", "c\nd\n", args...)
	}
	sh.want(3, "from where its items come", "", "save", "key:1", filepath.Join(t.TempDir(), "new"))
	if sh.everything() != before {
		t.Error("the database was changed")
	}
	if _, err := sh.s.Exec("RENAME", "key:1", "aside"); err != nil {
		t.Fatal(err)
	}
	sh.want(3, "rename it back, or remove it by DEL", "c\n", "replace", "--yes", "--items", "1k", "aside")
}

// A full cuckoo filter takes nothing more. The error says what to do.
func TestFullCuckoo(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "--items", "20", "--cuckoo", "key")
	sh.want(2, "key at "+sh.host()+": cuckoo filter, about 0 items, no false positives, no expiry", "", "rm", "key")
	before := sh.stored("key")
	sh.want(4, "is full: remove items, or make one with a larger --items (no place for item",
		numbered("a", 200), "add", "key", "-")
	// Items of many requests are refused before the first.
	sh.want(2, "there is no room for 2,000 more, each of which takes a place even if it is in\nNothing was changed.",
		numbered("a", 2000), "add", "key", "-")
	if sh.stored("key") != before {
		t.Error("items were added all the same")
	}
	sh.want(0, "", "", "create", "--items", "600", "--cuckoo", "more")
	sh.want(5, " of 2,000 items done, ", numbered("a", 2000), "add", "--force", "more", "-")
}

// A cuckoo filter damaged by a plain Add is reported as such.
func TestDamagedCuckoo(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "--items", "1k", "--cuckoo", "key")
	f, err := bloom.New(sh.s.Client(), "key", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(t.Context(), "a"); err == nil {
		t.Fatal("a plain Add at a cuckoo filter is no error")
	}
	var one state
	decode(t, sh.want(0, "", "", "--json", "info", "key"), &one)
	if !one.Damaged {
		t.Errorf("%+v, want a damaged filter", one)
	}
}

// If the program cannot find out what the key holds, it must not call the
// filter missing.
func TestKindsOutOfReach(t *testing.T) {
	for _, k := range otherKinds {
		for _, args := range [][]string{
			{"check", "key", "a"}, {"add", "key", "a"}, {"rm", "--yes", "key"}, {"info", "key"},
		} {
			sh := newShell(t)
			sh.want(0, "created", "", append(append([]string{"create", "--items", "1k"}, k.flags...), "key")...)
			var requests atomic.Int64
			sh.s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
				if requests.Add(1) > 1 {
					return upstashtest.ErrorObject("WRONGPASS no such token")
				}
				return upstashtest.Fault{}
			})
			sh.want(4, "", "", args...)
		}
	}
}
