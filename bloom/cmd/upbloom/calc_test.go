package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestThreeDigits(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 0.0000154321: "0.0000154", 0.00134339: "0.00134", 999.4: "999", 999.6: "1,000",
		16_123.9: "16,100", 2_088_993: "2,090,000", 1e15 + 1: "1,000,000,000,000,000",
	} {
		if got := threeDigits(f); got != want {
			t.Errorf("%v: %q, want %q", f, got, want)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:8079": true, "127.1.2.3:0": true, "localhost:1": true, "[::1]:8079": true,
		"0.0.0.0:8079": false, ":8079": false, "[::]:0": false, "10.0.0.1:1": false, "example.com:1": false,
	} {
		if got := isLoopback(addr); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
}

// calc counts what the docs of the calls say, for a month.
func TestMonth(t *testing.T) {
	sh := newShell(t)
	for _, c := range []struct {
		args                                 string
		commands, filters, refreshes, copies float64 // downloaded refreshes
		total                                float64
	}{
		{"--adds 1000 --lookups 2000", 90_000, 1, 0, 0, 0.18},
		{"--adds 1M --lookups 10M", 330e6, 1, 0, 0, 660},
		{"--filters 1000 --lookups 1M", 30e6, 1000, 0, 0, 60.09},
		// 864 refreshes a day in each of 2 processes. Without Adds only the first
		// downloads the filter.
		{"--lookups 1M --mirror 100s --processes 2", 30*3*1728 + 2*3, 1, 30 * 1728, 2, 0.31},
		// Fewer look-ups than times at which a copy grows old.
		{"--lookups 10 --mirror 1s", 30*3*10 + 3, 1, 300, 1, 0},
		{"--mirror 100s --ticker", 30*3*1728 + 3, 1, 30 * 1728, 1, 0.31},
		// After each Add, each process downloads once at most.
		{
			"--lookups 1M --adds 100 --mirror 100s --processes 2", 30*(100+3*1728+3*200) + 2*3, 1,
			30 * 1728, 30*200 + 2, 0.353,
		},
		{
			"--lookups 1M --adds 1M --mirror 100s", 30 * (1e6 + 3*864 + 3*864), 1, 30 * 864,
			30 * 864, 60.31,
		},
	} {
		args := append([]string{"--json", "calc", "-n", "1M", "--price"}, strings.Fields(c.args)...)
		var p plan
		decode(t, sh.want(0, "", "", args...), &p)
		m := p.Month
		if m == nil || m.Money == nil {
			t.Errorf("%s: there is no month", c.args)
			continue
		}
		size := float64(p.Bytes) / 1e9
		near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-9*want }
		if m.Commands != c.commands || !near(m.StoredGB, c.filters*size) || m.Refreshes != c.refreshes ||
			!near(m.MirrorGB, c.copies*size) || math.Abs(m.Money.Total-c.total) > 0.005 {
			t.Errorf("%s: %+v, %+v, want %+v", c.args, *m, *m.Money, c)
		}
	}
}

// A Mirror in front of many small filters may cost more than it saves.
func TestMonthWithMirrors(t *testing.T) {
	sh := newShell(t)
	// 100,000 small filters: each Mirror refreshes for a look-up or two.
	small := []string{"calc", "-n", "1k", "--filters", "100k", "--lookups", "5M", "--adds", "200k", "--mirror", "5s"}
	sh.want(0, "without Mirrors  156,000,000 commands, $312.00 a month: the Mirrors cost more than they save", "",
		append(small, "--price")...)
	if out := sh.want(0, "without Mirrors  30,000,000 commands\n", "", "calc", "-n", "1k", "--lookups", "1M",
		"--mirror", "5s"); strings.Contains(out, "cost more") {
		t.Errorf("%s", out)
	}
	// A Mirror downloads its filter once after an Add, however many commands
	// the Add is billed as, and if it makes the filter.
	for _, more := range []string{"--ttl=10d", "--must-exist"} {
		var p plan
		decode(t, sh.want(0, "", "", "--json", "calc", "-n", "1k", "--filters", "1k", "--adds", "1k", "--lookups", "1M",
			"--mirror", "1m", more), &p)
		if got, want := p.Month.MirrorGB, 31_000*float64(p.Bytes)/1e9; math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%s: %v GB are downloaded, want %v", more, got, want)
		}
	}
}

// A Mirror of a long filter needs a MaxBytes. calc says so if NewMirror refuses
// the filter without it.
func TestMonthOfALargeMirror(t *testing.T) {
	sh := newShell(t)
	for items, needs := range map[uint64]string{
		49_955_990: "", // 64 MiB but for a byte
		49_955_995: "\nMirror           needs a MirrorConfig with MaxBytes 67,108,870 or more: the default is 64.0 MiB\n",
	} {
		out := sh.want(0, needs, "", "calc", "-n", strconv.FormatUint(items, 10), "--mirror", "5s", "--lookups", "1M")
		if needs == "" && strings.Contains(out, "MaxBytes") {
			t.Errorf("%d items: %s", items, out)
		}
		f, err := bloom.New(sh.s.Client(), "key", bloom.Config{Capacity: items, FPRate: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = bloom.NewMirror(f, bloom.MirrorConfig{}); (err == nil) != (needs == "") {
			t.Errorf("%d items: NewMirror says %v", items, err)
		}
	}
}

// calc counts what batches are billed, and refuses impossible ones.
func TestMonthOfBatches(t *testing.T) {
	sh := newShell(t)
	// A batch is several commands, for shards and with MustExist.
	for flags, says := range map[string]string{
		"--shards 2":               "8,975 commands\n  adding         1,000 AddAlls of 1,000 items, 9 commands each",
		"--must-exist":             "6,000 commands\n",
		"--window 1d --must-exist": "14,180 commands\n",
	} {
		sh.want(0, says, "", append([]string{"calc", "-n", "1M", "--adds", "1M", "--batch", "1k", "--monthly"},
			strings.Fields(flags)...)...)
	}
	for flags, says := range map[string]string{
		"": "  not in it      making each filter by Create, 4 commands, 5 with a TTL; WarnFill, 1 in 100 writes at most\n",
		"--scalable": "  growth         of an empty filter, by items that are all new, to 2 layers; it is stored so\n" +
			"  not in it      making each filter by Create, 4 commands, 5 with a TTL; WarnFill, 1 in 1,000,000 new" +
			" items of the last layer\n", // the third, for 16 million
		"--cuckoo":   "  not in it      making each filter by Create, 4 commands; up to 2.5 times as many a write while it is full\n",
		"--shards 3": "  not in it      making each filter by Create, 18 commands\n",
		"--window 1d --expire-idle": "  its panes      210 commands to clear old ones, 4,320 to ask for the time\n" +
			"  not in it      an Add that makes a window, 4 commands more; WarnFill, 1 in 100 writes at most\n",
	} {
		sh.want(0, says, "", append([]string{"calc", "-n", "1M", "--adds", "4M", "--monthly"},
			strings.Fields(flags)...)...)
	}
	sh.want(0, "1,000,000 single Adds, 3 commands each", "", "calc", "-n", "1M", "--adds", "1M", "--monthly",
		"--shards", "2")
	sh.want(2, "--must-exist has no effect with --shards", "", "calc", "-n", "1M", "--shards", "2", "--must-exist")
	sh.want(2, "a batch of 1,000,000 items is more than all items of 30 days", "", "calc", "-n", "1M", "--adds", "1k",
		"--batch", "1M")
	sh.want(2, "--must-exist and --expire-idle are both set", "", "calc", "-n", "1M", "--window", "1d",
		"--expire-idle", "--must-exist")
	sh.want(2, "--batch is 0", "", "calc", "-n", "1M", "--batch", "0")
}

// calc and info say the same of when a window forgets.
func TestCalcOfAWindowsSpan(t *testing.T) {
	sh := newShell(t)
	for _, c := range []struct{ flags, span, within string }{
		{"--window 10s", "10s", "42s"},
		{"--window 1m --panes 2", "1m", "2m8s"},
		{"--window 24h", "24h", "3d12s"},
		{"--window 7d --panes 4", "7d", "10d12h6s"},
	} {
		flags := append([]string{"-n", "1000"}, strings.Fields(c.flags)...)
		sh.want(0, "keeps            an item for "+c.span+" after its last Add, and for "+c.within+" at most\n", "",
			append([]string{"calc"}, flags...)...)
		sh.want(0, "", "", append(append([]string{"create"}, flags...), "key")...)
		sh.want(0, "finds an item for "+c.span+", and forgets it within "+c.within+"\n", "", "info", "key")
		sh.want(0, "", "", "rm", "--yes", "key")
	}
}

// calc says what happens beyond the capacity.
func TestOverFilled(t *testing.T) {
	sh := newShell(t)
	for flags, says := range map[string]string{
		"--window 1d":             "1 in 6.7 at 2,000,000, 1 in 1.1 at 5,000,000",
		"--window 1d --rate 0.1%": "1 in 23 at 2,000,000, 1 in 1.4 at 5,000,000", // see bloom.WindowConfig
		"--scalable":              "1 in 15 at 42,000,000", "--shards 4": "1 in 13 at 2,000,000",
		"--cuckoo": "never: an Add to a full filter is an error",
	} {
		sh.want(0, "  over-filled    "+says, "", append([]string{"calc", "-n", "1M"}, strings.Fields(flags)...)...)
	}
}

// calc says what an Add to a scalable filter costs. In later layers it looks less
// often, but it never takes fewer commands than one.
func TestCalcOfGrowingAdds(t *testing.T) {
	sh := newShell(t)
	const looks = " on average in the first layer, with its looks\n                 whether it must grow;" +
		" later layers look less often\n"
	for items, says := range map[string]string{
		"1k": "1.2 commands" + looks, "100k": "1 command" + looks, "50M": "1 command\n", // one layer
	} {
		sh.want(0, "\nAdd              "+says, "", "calc", "--scalable", "-n", items)
	}
}

// A month is printed only if a flag asks for it.
func TestMonthOnRequest(t *testing.T) {
	sh := newShell(t)
	var p plan
	decode(t, sh.want(0, "", "", "--json", "calc", "-n", "1M"), &p)
	if p.Month != nil {
		t.Errorf("a month that nobody asked for: %+v", p.Month)
	}
	sh.want(0, "$0.00 a month for storage alone\n", "", "calc", "-n", "1M", "--price")
	sh.want(0, "$660.00 a month", "", "calc", "-n", "1M", "--adds", "1M", "--lookups", "10M", "--price")
	sh.want(0, "330,000,000 commands", "", "calc", "-n", "1M", "--adds", "1M", "--lookups", "10M")
	sh.want(2, "no effect without --mirror", "", "calc", "-n", "1M", "--processes", "2")
	sh.want(2, "--filters is 0", "", "calc", "-n", "1M", "--filters", "0")
	sh.want(2, "--mirror is 0s", "", "calc", "-n", "1M", "--mirror", "0s")
}

// calc says the rate at which the filter is full as its Stats do, also of a
// scalable one that stops growing early.
func TestCalcRateOfStats(t *testing.T) {
	sh := newShell(t)
	ctx, client := t.Context(), sh.s.Client()
	scalable, err := bloom.NewScalable(client, "scalable", bloom.ScalableConfig{Capacity: 20_000_000, FPRate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	cuckoo, err := bloom.NewCuckoo(client, "cuckoo", bloom.CuckooConfig{Capacity: 5000, FPRate: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []handle{scalable, cuckoo} {
		if _, err := h.AddAll(ctx, []string{"a"}); err != nil {
			t.Fatal(err)
		}
	}
	grown, err := scalable.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	full, err := cuckoo.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for flags, rate := range map[string]float64{
		"--scalable -n 20M": grown.FPRate, "--cuckoo -n 5000 -p 0.000001": full.FPRate,
	} {
		sh.want(0, "false positives  "+human.OneIn(rate)+" at ", "", append([]string{"calc"}, strings.Fields(flags)...)...)
	}
}

// calc says what a Load costs, as the server counts it and load reports it.
func TestCalcOfALoad(t *testing.T) {
	sh := newShell(t, upstashtest.WithMaxRecord(200_000_000))
	for items, says := range map[string]string{
		"100": "2 requests, 11 commands\n", "1M": "3 requests, 14 commands\n", "5M": "8 requests, 29 commands\n",
		"80M": "105 requests, 319 commands\n",
	} {
		sh.want(0, "Load of all      "+says, "", "calc", "-n", items)
		var p plan
		decode(t, sh.want(0, "", "", "--json", "calc", "-n", items, "--adds", "1k"), &p)
		// A slow machine must not have it send a part twice.
		client := sh.s.Client(upstash.WithTimeout(0), upstash.WithRetry(0))
		f, err := bloom.New(client, "key-"+items, bloom.Config{Capacity: p.Items, FPRate: p.Rate})
		if err != nil {
			t.Fatal(err)
		}
		sh.s.ResetStats()
		if _, err = f.Load(t.Context(), slices.Values([]string{"a"})); err != nil {
			t.Fatal(err)
		}
		if got := sh.s.Stats(); int(got.Requests) != p.RequestsToLoad || int(got.Billed) != p.CommandsToLoad ||
			p.Month.LeftOut.Load != p.CommandsToLoad {
			t.Errorf("%s items: calc says %d requests, %d commands and %d not in the month; the server counts %d and %d",
				items, p.RequestsToLoad, p.CommandsToLoad, p.Month.LeftOut.Load, got.Requests, got.Billed)
		}
	}
	var p plan
	decode(t, sh.want(0, "", "", "--json", "calc", "-n", "1M"), &p)
	var m moved
	decode(t, sh.want(0, "", "a\n", "--json", "load", "-n", "1M", "key"), &m)
	if int(m.Requests) != p.RequestsToLoad || int(m.Commands) != p.CommandsToLoad {
		t.Errorf("calc says %d requests and %d commands, load says %d and %d", p.RequestsToLoad, p.CommandsToLoad,
			m.Requests, m.Commands)
	}
	sh.want(0, "at most\n                 a Load of all items of a filter, 14 commands\n", "", "calc", "-n", "1M",
		"--adds", "1k")
}

// calc's false positives of small filters, which are better than asked for, are
// those of info. They do not become fewer if there are more items.
func TestCalcRatesOfSmallFilters(t *testing.T) {
	sh := newShell(t)
	for _, tt := range []struct {
		flags string
		panes float64 // of two with all items info sees one
	}{
		{"--shards 7", 1}, {"--shards 1", 1}, {"--window 1h", 2}, {"--window 1h --panes 4", 2},
	} {
		size := append([]string{"-n", "300"}, strings.Fields(tt.flags)...)
		var p kindPlan
		decode(t, sh.want(0, "", "", append([]string{"--json", "calc"}, size...)...), &p)
		sh.want(0, "", "", append([]string{"create", "key"}, size...)...)
		sh.want(0, "", numbered("item", 300), "add", "key", "-")
		var s state
		decode(t, sh.want(0, "", "", "--json", "info", "key"), &s)
		if got := tt.panes * *s.Rate; p.Rate > 1.3*got || p.Rate < got/1.3 || p.Rate >= p.RateTwice {
			t.Errorf("%s: calc says %v, and %v of twice the items; info says %v", tt.flags, p.Rate, p.RateTwice, got)
		}
		if tt.flags == "--shards 1" {
			sh.want(0, "sharded          1 shard of ", "", "info", "key")
			sh.want(0, "sharded          1 shard of ", "", append([]string{"calc"}, size...)...)
		}
		sh.want(0, "", "", "rm", "--yes", "key")
	}
	sh.want(0, "less than 1 in a billion at 20", "", "calc", "-n", "10", "-p", "1e-9", "--shards", "256")
	sh.want(0, " at 1 item\n", "", "calc", "-n", "1")
}
