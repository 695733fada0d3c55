package main

import (
	"bufio"
	"cmp"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
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
		"panes            4 of 12h3s",
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
		"cuckoo  3      0%    1 in ", false,
	},
	{
		"sharded", "sharded filter",
		[]string{"--shards", "3"},
		"sharded          3 shards of ",
		"blocked  ", false,
	},
}

// Every kind is made, filled, asked, shown, listed and removed, with a seed too.
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
			one := sh.info("key")
			if one.Kind != k.kind || one.Key != "key" || one.Rate == nil || *one.Rate >= 0.01 || one.Bytes == 0 {
				t.Errorf("info: %+v", one)
			}
			kind, lines := k.kind, 2
			if kind == "sharded" {
				kind, lines = "shard", 4
			}
			if out := sh.want(0, k.row, "", "ls"); strings.Count(out, "\n") != lines || !strings.Contains(out, "  "+kind+"  ") {
				t.Errorf("ls prints\n%s", out)
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

			seeded := sh.with("UPBLOOM_SEED=7")
			seeded.want(0, "created", "", create...)
			seeded.want(0, "new   a", "", "add", "key", "a", "b")
			if k.kind == "window" || k.kind == "scalable" { // of whose parts it cannot know
				seeded.want(0, k.row, "", "ls")
				sh.want(0, "  blocked  -      -     -                never", "", "ls")
			}
			for _, args := range [][]string{{"check", "key", "a"}, {"info", "key"}, {"rm", "--yes", "key"}} {
				sh.want(3, "set UPBLOOM_SEED to the seed", "", args...)
			}
			seeded.want(0, "", "", "info", "key")
		})
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
			sh.create("key", k.flags...)
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
				{"make another at a new key", "replace", "key"},
				{"make another at a new key", "replace", "--yes", "--items", "1k", "key"},
				{saved + " holds a plain filter: use another key", "restore", "key", saved},
			} {
				if at != "key" && c[1] == "load" {
					continue // TestLoadShards has what load says of shards
				}
				needs := map[string]string{"add": "plain filter, as upbloom add --items", "load": "plain or sharded filter, as upbloom load"}[c[1]]
				needs = cmp.Or(needs, "plain filter, as upbloom "+c[1]) + " needs; nothing was changed: "
				sh.want(3, "key: the key holds a "+k.noun+", and not a "+needs+c[0], "c\nd\n", c[1:]...)
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
		"--expire-idle is for a window: it has no effect without --window|--expire-idle",
		"--expire-idle is for a window: it has no effect without --window|--scalable --expire-idle",
		"--window and --cuckoo: a filter is of one kind|--window 1h --cuckoo",
		"--scalable and --shards: a filter is of one kind|--shards 2 --scalable",
		"--ttl has no effect with --window: --expire-idle|--window 1h --ttl 1h",
		"--ttl has no effect with --cuckoo: a cuckoo filter does not expire|--cuckoo --ttl 1h",
		"--ttl has no effect with --shards|--shards 2 --ttl 1d",
		"--scheme has no effect with --shards|--shards 2 --scheme xxh3",
		"--scheme has no effect with --scalable|--scalable --scheme blocked",
		"upbloom: --window is 1s|--window 1s",
		"upbloom: --window is 120d: it must be at most 97d2h10m2s, 97 days for each of 1 to 4 --panes|--window 120d",
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
	sh.wantKeys("")
	sh.create("grows", "--scalable", "--ttl", "1d")
	sh.want(0, "expires in ", "", "ttl", "grows")
	sh.create("spread", "--shards", "2")
	sh.want(0, "no expiry", "", "ttl", "spread")
	sh.create("seen", "--window", "1h")
	sh.want(3, "made with another --window", "", "create", "--items", "1k", "--window", "2h", "seen")
	sh.create("idle", "--window", "1h", "--expire-idle")
	sh.want(0, "expires in 4h", "", "ttl", "idle")
	sh.want(3, "made with another --expire-idle", "", "create", "--items", "1k", "--window", "1h", "idle")
}

// A single shard is not asked. A sharded filter that has lost one is reported.
func TestShards(t *testing.T) {
	sh := newShell(t)
	sh.create("key", "--shards", "2")
	sh.want(0, "", numbered("a", 20), "add", "key", "-")
	sh.want(3, "use the key without the colon", "", "check", "key:1", "a-1")
	sh.want(0, "shard            ", "", "info", "key:1")
	sh.exec("RENAME", "key:1", "aside")
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
	sh.create("key", "--shards", "2")
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
	if sh.everything() != before {
		t.Error("the database was changed")
	}
	sh.exec("RENAME", "key:1", "aside")
	sh.want(3, "rename it back, or remove it by DEL", "c\n", "replace", "--yes", "--items", "1k", "aside")
}

// A full cuckoo filter takes nothing more. The error says what to do.
func TestFullCuckoo(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "--items", "20", "--cuckoo", "key")
	sh.want(2, "key at "+sh.host()+": cuckoo filter, 0 items, no false positives, no expiry", "", "rm", "key")
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

// A cuckoo filter damaged by a plain Add is reported as such, also by save.
func TestDamagedCuckoo(t *testing.T) {
	sh := newShell(t)
	sh.create("key", "--cuckoo")
	f, err := bloom.New(sh.s.Client(), "key", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(t.Context(), "a"); err == nil {
		t.Fatal("a plain Add at a cuckoo filter is no error")
	}
	if one := sh.info("key"); !one.Damaged {
		t.Errorf("%+v, want a damaged filter", one)
	}
	sh.want(0, "\nrepair           make it again, from its items: upbloom create -n 1002 -p 1/120 --cuckoo OTHER-KEY\n", "", "info", "key")
	file := filepath.Join(t.TempDir(), "saved")
	sh.want(0, "\nit is damaged, because something else wrote to its table: members may be denied", "", "save", "key", file)
	sh.exec("BITFIELD", "key", "SET", "u20", "136", "65535") // its count
	sh.want(3, "key: the cuckoo filter is damaged, because something else wrote to its table, and it counts more items than it has"+
		" room for: it cannot be saved, and upbloom info says how to make it again\n", "", "save", "key", file)
}

// If the program cannot find out what the key holds, it must not call the
// filter missing.
func TestKindsOutOfReach(t *testing.T) {
	for _, k := range otherKinds {
		for _, args := range [][]string{
			{"check", "key", "a"}, {"add", "key", "a"}, {"rm", "--yes", "key"}, {"info", "key"},
		} {
			sh := newShell(t)
			sh.create("key", k.flags...)
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

// remove removes what was added, and reports what was not there.
func TestRemoveItems(t *testing.T) {
	sh := newShell(t)
	sh.create("seats", "--cuckoo")
	sh.want(0, "", "", "add", "seats", "a", "b", "b")
	if out := sh.want(1, "", "", "remove", "seats", "a", "z"); out != "removed  a\nmissing  z\n" {
		t.Errorf("remove prints %q", out)
	}
	sh.want(1, "no    a", "", "check", "seats", "a")
	sh.want(0, "removed  b\nremoved  b\n", "b\nb\n", "remove", "seats", "-")
	var a answer
	decode(t, sh.want(1, "", "", "--json", "remove", "seats", "b"), &a)
	if a.Removed == nil || *a.Removed || a.Found != nil || a.New != nil {
		t.Errorf("%+v", a)
	}
	sh.want(2, "usage: upbloom remove", "", "remove", "seats")
	sh.want(3, "no filter at this key", "", "remove", "none", "a")
	for _, flag := range []string{"--scalable", "--window=1h", "--shards=2", "--scheme=blocked"} {
		sh.want(0, "", "", "create", "--items", "1k", flag, "key")
		sh.want(0, "", "", "add", "key", "a")
		sh.want(3, "items can be taken out only of a cuckoo filter", "", "remove", "key", "a")
		sh.want(0, "yes   a", "", "check", "key", "a")
		sh.want(0, "", "", "rm", "--yes", "key")
	}
	sh.want(0, "", "", "add", "seats", "c")
	sh.strikes("EVAL", upstashtest.Drop(upstashtest.AfterExec))
	sh.want(5, "seats: ", "", "remove", "seats", "c")
}

// So are lines in portions, each of which would fit.
func TestFillingInPortions(t *testing.T) {
	for _, flag := range []string{"--window=1h", "--shards=2"} {
		sh := newShell(t)
		sh.want(0, "", "", "create", "--items", "1k", flag, "key")
		sh.want(0, "new   a-1", numbered("a", 1_020), "add", "key", "-")
		refused := false
		for _, portion := range []string{"b", "c", "d", "e", "f"} {
			_, errOut, status := sh.run(numbered(portion, 1_020), "add", "key", "-")
			refused = refused || status == exitUsage && strings.Contains(errOut, "Nothing was changed")
		}
		if !refused {
			t.Errorf("%s: 6,120 items in portions were added to a filter for 1,000", flag)
		}
	}
	// The items of another day do not count.
	for _, panes := range []string{"1", "4"} {
		sh := newShell(t)
		sh.want(0, "", "", "create", "--items", "1k", "--window", "24h", "--panes", panes, "key")
		for _, day := range []string{"mon", "tue", "wed"} {
			sh.want(0, "new   "+day+"-1", numbered(day, 1_020), "add", "key", "-")
			sh.s.FastForward(24*time.Hour + time.Minute)
		}
		sh.s.FastForward(48 * time.Hour)
		sh.want(0, "new   sun-1", numbered("sun", 1_020), "add", "key", "-")
	}
}

// create says how far a scalable filter grows.
func TestCreateSaysHowFarItGrows(t *testing.T) {
	sh := newShell(t)
	for items, says := range map[string]string{
		"1k":  "",
		"5M":  "it grows to 2 layers, for 25,000,000 items, and no further, because another layer would pass 100 MB, the default of MaxBytes: ",
		"50M": "it does not grow, because a second layer would pass 100 MB, the default of MaxBytes: ",
	} {
		out := sh.want(0, says, "", "create", "--items", items, "--scalable", items)
		if says == "" && strings.Contains(out, "another layer") {
			t.Errorf("create of a filter that takes all its layers says that it does not: %s", out)
		}
	}
}

// The demo has every kind of filter, and can be served to other programs.
func TestDemo(t *testing.T) {
	sh := newShell(t)
	var all []state
	decode(t, sh.want(0, "", "", "--demo", "--json", "ls"), &all)
	kinds := make(map[string]string)
	for _, s := range all {
		kinds[s.Key] = s.Kind
	}
	for key, kind := range map[string]string{
		"demo:webhooks": "filter", "demo:deliveries": "window", "demo:urls": "scalable",
		"demo:seats": "cuckoo", "demo:pages:0": "shard",
	} {
		if kinds[key] != kind {
			t.Errorf("%s is a %q, want a %s", key, kinds[key], kind)
		}
	}
	sh.want(0, "sharded          3 shards of", "", "--demo", "info", "demo:pages")
	sh.want(2, "--demo and --redis", "", "--demo", "serve", "--redis", "127.0.0.1:1")

	cmd := sh.command("--demo", "serve", "--addr", "127.0.0.1:0")
	out := testenv.Start(t, cmd)
	there := *sh
	there.env = nil
	in := bufio.NewScanner(out)
	for len(there.env) < 2 && in.Scan() {
		there.env = append(there.env, setIn(in.Text()))
	}
	there.want(0, "yes   item-7", "", "check", "demo:seats", "item-7")
}

// setIn returns the variable, NAME=VALUE, that a line of serve sets in a shell.
func setIn(line string) string {
	name, value, _ := strings.Cut(line, "=")
	for _, before := range []string{"export ", "$env:"} {
		name = strings.TrimPrefix(name, before)
	}
	return strings.TrimSpace(name) + "=" + strings.Trim(value, " '")
}

// A window that has forgotten everything is as empty as a new one.
func TestForgottenWindow(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "-n", "1k", "--window", "1h", "key")
	sh.want(0, "", "", "add", "key", "a", "b")
	sh.s.FastForward(24 * time.Hour)
	sh.want(0, "key  window  4.2 KiB  blocked  0      0%    none             never\n", "", "ls")
	sh.want(0, "panes            0 of 1h5s, everything is forgotten, each 11,448 bits (1.4 KiB), k=6, blocked\n"+
		"items            about 0; one renewed in two panes counts twice\nfalse positives  none now, 1 in 101 at capacity\n", "", "info", "key")
	sh.want(1, "no    a", "", "check", "key", "a")
}

// If shards lie at a key without shard 0, or without more of them, each command
// says so, and none makes another filter beside them.
func TestShardsWithoutFirst(t *testing.T) {
	for _, lost := range []string{"key:0", "key:0 key:1"} {
		sh := newShell(t)
		lines := fileOf(t, "lines", "a\nb\n")
		sh.create("key", "--shards", "4")
		sh.want(0, "", "", "add", "key", "a", "b", "c", "d", "e", "f", "g", "h")
		sh.exec(append([]string{"DEL"}, strings.Fields(lost)...)...)
		before, _ := sh.keys()
		for _, line := range []string{
			"info key", "check key a", "add key a", "add -n 1k key a", "load key " + lines, "load -n 1k key " + lines,
			"replace key " + lines, "replace -n 1k key " + lines, "create -n 1k key", "create -n 1k --cuckoo key",
		} {
			sh.want(exitFilter, "key: shards of a sharded filter are here, and shard 0 is missing: ", "",
				strings.Fields(line)...)
		}
		gone := map[int]string{1: "key: shard 0 of 4 is missing", 2: "key: shards 0, 1 of 4 are missing"}
		sh.want(exitFilter, gone[len(strings.Fields(lost))]+", and others hold items: lost, or in another database;"+
			" nothing was changed: upbloom rm --rest removes the others\n", "", "create", "-n", "1k", "--shards", "4", "key")
		sh.wantKeys(before)
		sh.want(0, "removed from "+sh.host()+"\n", "", "rm", "--rest", "--yes", "key")
		sh.wantKeys("")
	}
}
