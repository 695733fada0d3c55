package main

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// remove removes what was added, and reports what was not there.
func TestRemoveItems(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "--items", "1k", "--cuckoo", "seats")
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
	lost := false
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if lost || !strings.HasPrefix(r.Commands[0], "EVAL") {
			return upstashtest.Fault{}
		}
		lost = true
		return upstashtest.Drop(upstashtest.AfterExec)
	})
	sh.want(5, "seats: ", "", "remove", "seats", "c")
}

// create can also make a window that expires when it is empty.
func TestCreateExpireIdle(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "created", "", "create", "--items", "1k", "--window", "1h", "--expire-idle", "seen")
	sh.want(0, "expires in 4h", "", "ttl", "seen")
	sh.want(3, "made with another --expire-idle", "", "create", "--items", "1k", "--window", "1h", "seen")
	for _, flags := range []string{"", "--cuckoo", "--scalable", "--shards=2"} {
		args := append([]string{"create", "--items", "1k", "--expire-idle"}, strings.Fields(flags)...)
		sh.want(2, "--expire-idle is for a window: it has no effect without --window", "", append(args, "key")...)
	}
}

// For every kind, lines of standard input are refused if they would fill a
// filter far beyond its size. Items already in it do not count.
func TestFillingKindsTooFar(t *testing.T) {
	for _, flag := range []string{"--window=1h", "--scalable", "--shards=2"} {
		sh := newShell(t)
		sh.want(0, "", "", "create", "--items", "1k", flag, "key")
		fits, most := numbered("a", 1_200), 10_000
		if flag == "--scalable" {
			most = 600_000 // five layers hold 341,000
		}
		sh.want(0, "new   a-1", fits, "add", "key", "-")
		sh.want(0, "seen  a-1", fits, "add", "key", "-")
		at := "key"
		if flag == "--shards=2" {
			at = "key:0"
		}
		before := sh.stored(at)
		sh.want(2, "Nothing was changed", numbered("b", most), "add", "key", "-")
		if sh.stored(at) != before {
			t.Errorf("%s: items were added all the same", flag)
		}
		sh.want(2, "Nothing was changed", numbered("b", 2_000), "add", "--max-rate", "1/100000", "key", "-")
		sh.want(2, "Nothing was changed", "", "add", "--max-rate", "1e-12", "key", "x", "y")
		if flag != "--scalable" {
			sh.want(0, "new   b-1", numbered("b", most), "add", "--force", "key", "-")
		}
	}
}

// So are lines in portions, each of which would fit.
func TestFillingInPortions(t *testing.T) {
	for _, flag := range []string{"--window=1h", "--shards=2"} {
		sh := newShell(t)
		sh.want(0, "", "", "create", "--items", "1k", flag, "key")
		sh.want(0, "new   a-1", numbered("a", 1_200), "add", "key", "-")
		refused := false
		for _, portion := range []string{"b", "c", "d", "e", "f"} {
			_, errOut, status := sh.run(numbered(portion, 1_200), "add", "key", "-")
			refused = refused || status == exitUsage && strings.Contains(errOut, "Nothing was changed")
		}
		if !refused {
			t.Errorf("%s: 7,200 items in portions were added to a filter for 1,000", flag)
		}
	}
	// The items of another day do not count.
	for _, panes := range []string{"1", "4"} {
		sh := newShell(t)
		sh.want(0, "", "", "create", "--items", "1k", "--window", "24h", "--panes", panes, "key")
		for _, day := range []string{"mon", "tue", "wed"} {
			sh.want(0, "new   "+day+"-1", numbered(day, 1_200), "add", "key", "-")
			sh.s.FastForward(24*time.Hour + time.Minute)
		}
		sh.s.FastForward(48 * time.Hour)
		sh.want(0, "new   sun-1", numbered("sun", 1_200), "add", "key", "-")
	}
}

// create says how far a scalable filter grows.
func TestCreateSaysHowFarItGrows(t *testing.T) {
	sh := newShell(t)
	for items, says := range map[string]string{
		"1k":  "",
		"5M":  "it grows to 2 layers, for 25,000,000 items, and no further, because another layer would pass 100 MB\n",
		"50M": "it does not grow, because a second layer would pass 100 MB: ",
	} {
		out := sh.want(0, says, "", "create", "--items", items, "--scalable", items)
		if says == "" && strings.Contains(out, "another layer") {
			t.Errorf("create of a filter that takes all its layers says that it does not: %s", out)
		}
	}
}

// A first layer is for 1,000 items at least. The help says so.
func TestHelpOfTheLeastLayer(t *testing.T) {
	newShell(t).want(0, "up to 341 times --items (below 1,000 as for 1,000)", "", "create", "-h")
}

// The demo has every kind of filter, and can be served to other programs.
func TestDemo(t *testing.T) {
	sh := newShell(t)
	for key, kind := range map[string]string{
		"demo:webhooks": "filter", "demo:deliveries": "window", "demo:urls": "scalable",
		"demo:seats": "cuckoo", "demo:pages": "sharded",
	} {
		var s state
		decode(t, sh.want(0, "", "", "--demo", "--json", "info", key), &s)
		if s.Kind != kind {
			t.Errorf("%s is a %s, want a %s", key, s.Kind, kind)
		}
	}
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
	sh.want(0, "panes            0 of 1h4s, everything is forgotten, each 11,448 bits (1.4 KiB), k=6, blocked\n"+
		"false positives  none now\n", "", "info", "key")
	sh.want(1, "no    a", "", "check", "key", "a")
}
