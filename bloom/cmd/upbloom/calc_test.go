package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// calculated runs calc with flags and returns its JSON, by the way.
func (sh *shell) calculated(flags string) (costs, map[string]cost) {
	sh.t.Helper()
	var all costs
	decode(sh.t, sh.want(0, "", "", append([]string{"--json", "calc"}, strings.Fields(flags)...)...), &all)
	ways := make(map[string]cost)
	for _, one := range all.Ways {
		ways[one.Way] = one
	}
	return all, ways
}

// A month is so many times its calls.
func TestCalcOfAMonth(t *testing.T) {
	_, ways := newShell(t).calculated("-n 1M --adds 1M --lookups 10M")
	if f := ways[plainKind]; f.Commands != 11e6 || f.Money != 22 || f.TrafficGB < 6 || f.TrafficGB > 8 {
		t.Errorf("filter: %+v", f)
	}
	if f := ways[cuckooKind]; f.Commands != 13e6 || f.Money != 26 {
		t.Errorf("cuckoo: %+v", f)
	}
	// The first GB of storage is free.
	if keys := ways[keysWay]; keys.Bytes != 113e6 || keys.Money != 22 {
		t.Errorf("keys: %+v", keys)
	}
}

// Each type is billed what its documentation says. With --batch each call has so
// many items. A global database bills each write once more for each region, and of
// the look-ups those of filters, which are BITFIELDs, but not with ReadsNearest.
// TestBilledWithRegions has the same.
func TestCalcOfBatchesAndRegions(t *testing.T) {
	sh := newShell(t)
	for flags, want := range map[string]map[string][2]int64{
		"": {
			plainKind: {1, 1}, windowKind: {1, 1}, cuckooKind: {3, 1}, shardedKind: {3, 1}, setWay: {1, 1}, keysWay: {1, 1},
		},
		"--batch 100": {
			plainKind: {1, 1}, windowKind: {1, 1}, setWay: {1, 1}, keysWay: {100, 1},
		},
		"--regions 2": {
			plainKind: {3, 3}, nearestWay: {3, 1}, windowKind: {3, 3}, setWay: {3, 1}, keysWay: {3, 1},
		},
		"--batch 100 --regions 2": {plainKind: {3, 3}, nearestWay: {3, 1}, keysWay: {300, 1}},
	} {
		all, ways := sh.calculated("-n 1M --adds 2M --lookups 10M " + flags)
		for way, want := range want {
			got := ways[way]
			commands := float64((2e6*want[0] + 10e6*want[1]) / int64(all.Batch))
			if got.AddCommands != want[0] || got.LookupCommands != want[1] || got.Commands != commands {
				t.Errorf("%s, %s: %+v, want %v", flags, way, got, want)
			}
		}
	}
	all, _ := sh.calculated("-n 1M --lookups 1M --regions 2")
	if slices.Contains(all.Cheapest, plainKind) || !slices.Contains(all.Cheapest, nearestWay) {
		t.Errorf("look-ups: %v", all.Cheapest)
	}
	sh.want(0, ", 100 in a call, 1 read region\n", "", "calc", "-n", "1M", "--batch", "100", "--regions", "1")
	sh.want(2, "--batch is 6: it must be from 1 to 5\n", "", "calc", "-n", "5", "--batch", "6")
	sh.want(2, "--batch is 20,000: it must be from 1 to 10,000\n", "", "calc", "-n", "1M", "--batch", "20k")
	sh.want(2, "--regions is 21: it must be at most 20\n", "", "calc", "-n", "5", "--regions", "21")
}

// calc prints the length that create makes.
func TestCalcSaysWhatCreateMakes(t *testing.T) {
	sh := newShell(t)
	for _, size := range []string{"--items=1000", "--items=54321 --rate=1/1000", "--items=7 --rate=5%"} {
		_, ways := sh.calculated(size)
		for kind, flag := range map[string]string{
			plainKind: "--scheme=blocked", windowKind: "--window=1h", scalableKind: "--scalable",
			cuckooKind: "--cuckoo", shardedKind: "--shards=2",
		} {
			sh.want(0, "created", "", append([]string{"create", "key", flag}, strings.Fields(size)...)...)
			s := sh.info("key")
			if got := ways[kind].Bytes; got != s.Bytes {
				t.Errorf("%s %s: calc says %d bytes, and it has %d", size, kind, got, s.Bytes)
			}
			sh.want(0, "removed", "", "rm", "--yes", "key")
		}
	}
}

// The cheapest may be a set or keys.
func TestCalcNamesTheCheapest(t *testing.T) {
	sh := newShell(t)
	all, _ := sh.calculated("-n 1M --adds 1M")
	if !slices.Contains(all.Cheapest, keysWay) || slices.Contains(all.Cheapest, cuckooKind) {
		t.Errorf("many adds: %v", all.Cheapest)
	}
	sh.want(0, "Of these a set and keys are never wrong.\n", "", "calc", "-n", "1M", "--adds", "1M")
	all, _ = sh.calculated("-n 300M --adds 1k")
	if slices.Contains(all.Cheapest, keysWay) || !slices.Contains(all.Cheapest, plainKind) {
		t.Errorf("many items: %v", all.Cheapest)
	}
	sh.want(0, "depends on --adds and --lookups", "", "calc", "-n", "1M")
}

// What cannot be, and what not every plan takes, is said.
func TestCalcOfLargeFilters(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "larger plans: filter, window,", "", "calc", "-n", "100M")
	sh.want(0, "There is no such plain filter: --items is 400,000,000, ", "", "calc", "-n", "400M")
	all, ways := sh.calculated("-n 1000M")
	if ways[plainKind].Impossible == "" || ways[shardedKind].Impossible != "" ||
		slices.Contains(all.Cheapest, plainKind) {
		t.Errorf("%+v", all)
	}
	sh.want(2, "--rate is 1e-12: calc compares rates from 1e-09", "", "calc", "-n", "5", "-p", "1e-12")
}

// An add to a cuckoo filter that is nearly full takes more than the row says, by
// what the note says. A scalable filter stops growing, and calc says where.
func TestCalcNotes(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "nearly full takes 1 or 2 commands more.\n", "", "calc", "-n", "1M", "--regions", "2")
	sh.want(0, "nearly full takes up to 5 commands more for each 500 items.\n", "", "calc", "-n", "1M", "--batch", "1k")
	_, one := sh.calculated("-n 5k --regions 2")
	_, many := sh.calculated("-n 5k --regions 2 --batch 1k")
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "a"}, upstashtest.Region{Name: "b"}))
	f, err := bloom.NewCuckoo(s.Client(upstash.WithTimeout(0)), "key", bloom.CuckooConfig{Capacity: 5_000, FPRate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	items := strings.Fields(numbered("i", 5_080))
	billed := func(items []string) int64 {
		s.ResetStats()
		if _, err := f.AddAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		return s.Stats().Billed
	}
	billed(items[:4_030])
	if n, row := billed(items[4_030:5_030]), many[cuckooKind].AddCommands; n <= row || n > row+2*5 {
		t.Errorf("1,000 items to a full filter: %d commands, and the row says %d", n, row)
	}
	sum, row := int64(0), one[cuckooKind].AddCommands
	for _, item := range items[5_030:] {
		sum += billed([]string{item})
	}
	if sum <= 50*row || sum > 50*(row+2) {
		t.Errorf("50 items to a full filter, one a call: %d commands, and the row says %d for one", sum, row)
	}

	const grows = "A scalable filter stops growing at 100 MB, the default of MaxBytes."
	sh.want(0, grows, "", "calc", "-n", "100M")
	if out := sh.want(0, "", "", "calc", "-n", "1M"); strings.Contains(out, grows) {
		t.Errorf("a small one: %s", out)
	}
}

// calc names no flag that it does not have.
func TestCalcAdvisesItsOwnFlags(t *testing.T) {
	sh := newShell(t)
	for _, size := range []string{"1M 1e-9", "400M 1%", "1000M 1%", "1e10 1e-9", "1e11 1%", "1e14 1%", "1e18 10%"} {
		n, p, _ := strings.Cut(size, " ")
		out := sh.want(0, "There is no such ", "", "calc", "-n", n, "-p", p)
		for _, flag := range regexp.MustCompile(`--[a-z]+`).FindAllString(out, -1) {
			if !slices.Contains([]string{"--items", "--rate", "--adds", "--lookups", "--batch", "--regions", "--stale", "--processes"}, flag) {
				t.Errorf("%s items at %s: it names %s:\n%s", n, p, flag, out)
			}
		}
	}
}

// calc takes as many shards as the items need, with records above 100 MB if the
// most do not hold them in shorter ones.
func TestCalcTakesEnoughShards(t *testing.T) {
	sh := newShell(t)
	for items, want := range map[string]string{
		"1e10": "sharded       12.5 GiB ",
		"1e11": "one of the larger plans: sharded, set.\n",
		"1e12": "a shard of 256 does not fit into a Redis string: lower it, or raise --rate",
	} {
		if out := sh.want(0, "", "", "calc", "-n", items, "-p", "1%"); !strings.Contains(out, want) {
			t.Errorf("%s items: want %q in\n%s", items, want, out)
		}
	}
}

// A set and keys of e-mail addresses take of Redis what calc says.
func TestCalcSaysWhatRedisTakes(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRedis(testenv.Redis(t)))
	const n = 100_000
	used := func() (bytes float64) {
		reply, err := s.Exec("INFO", "memory")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(reply.(string)) {
			_, _ = fmt.Sscanf(line, "used_memory:%f", &bytes)
		}
		return bytes
	}
	for what, c := range map[string]struct {
		add  string
		want float64
	}{
		setWay:  {"redis.call('SADD', 'set', email)", setBytes},
		keysWay: {"redis.call('SET', 'seen:' .. email, '1', 'EX', '86400')", keyBytes},
	} {
		before := used()
		script := "for i = 1, %d do local email = string.format('user-%%07d@example.com', i) %s end"
		if _, err := s.Exec("EVAL", fmt.Sprintf(script, n, c.add), "0"); err != nil {
			t.Fatal(err)
		}
		if got := (used() - before) / n; math.Abs(got/c.want-1) > 0.2 {
			t.Errorf("%s: Redis takes %.0f bytes an item, and calc says %.0f", what, got, c.want)
		}
	}
}
