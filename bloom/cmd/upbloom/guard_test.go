package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A failing dump behind a pipe, or the wrong file, empties no filter.
func TestReplaceThatWouldEmpty(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", numbered("a", 500), "load", "--items", "1000", "key")
	sh.unchanged("key", "from key at "+sh.host(), "", "replace", "key", os.DevNull)
	sh.unchanged("key", "would remove about 50", "", "replace", "key", os.DevNull)
	sh.unchanged("key", "--allow-empty does it", "\n\n\n", "replace", "key")
	sh.unchanged("key", "fewer than half", numbered("b", 200), "replace", "key")
	sh.unchanged("key", "fewer than half", numbered("b", 200), "replace", "--items", "5000", "--yes", "key")
	sh.unchanged("key", "fewer than --min-items 400", numbered("b", 399), "replace", "--min-items", "400", "key")
	sh.want(0, "", numbered("b", 400), "replace", "--min-items", "400", "key")
	sh.want(1, "no    a-1\nyes   b-1\n", "", "check", "key", "a-1", "b-1")
	sh.want(0, ", at "+sh.host(), "only\n", "replace", "--yes", "key")
	out := sh.want(0, "", "", "replace", "--allow-empty", "key")
	if !strings.Contains(out, "before  about 1 item,") || !strings.Contains(out, "after   about 0 items,") {
		t.Errorf("replace prints %q", out)
	}
	sh.want(1, "no    only", "", "check", "key", "only")
	sh.want(exitUsage, "has no items", "", "replace", "--items", "100", "new")
	if sh.stored("new") != "" {
		t.Error("an empty input has made a filter")
	}
	sh.unchanged("key", "--allow-empty loads it", "", "load", "key")
	sh.want(0, "loaded 0 lines", "", "load", "--allow-empty", "key")
}

// info says of a filter that is over its capacity what that means, and which
// command makes it larger.
func TestInfoOverCapacity(t *testing.T) {
	sh := newShell(t)
	for i, c := range []struct {
		flags string
		items int
		says  string
	}{
		{"-n 10k", 120_000, "12 times: nearly every look-up says yes\nrepair           upbloom replace --yes -n 250k KEY FILE"},
		{"-n 10k -p 1/1000", 15_000, "1.5 times: 1 in 155 look-ups of other items says yes\nrepair           upbloom replace" +
			" --yes -n 30k -p 1/1000 KEY FILE"},
		{"-n 1k --scheme xxh3", 3_000, "3.0 times: 43 in 100 look-ups of other items say yes\nrepair           upbloom replace" +
			" --yes -n 6k --scheme xxh3 KEY FILE"},
		{"-n 1k --window 1h", 3_000, "2.9 times: 24 in 100 look-ups of other items say yes\nrepair           make a larger one:" +
			" upbloom create -n 5.9k --window 1h OTHER-KEY"},
		{"-n 1k --shards 2", 4_000, "4.0 times: 29 in 100 look-ups of other items say yes\nrepair           make a larger one:" +
			" upbloom create -n 8.1k --shards 2 OTHER-KEY"},
	} {
		key := "k" + strconv.Itoa(i)
		sh.want(0, "", "", append(append([]string{"create"}, strings.Fields(c.flags)...), key)...)
		sh.want(0, "", numbered("a", c.items), "add", "--force", key, "-")
		sh.want(0, "\nover capacity    "+strings.ReplaceAll(c.says, "KEY FILE", key+" FILE"), "", "info", key)
		if _, advice, ok := strings.Cut(c.says, "upbloom replace "); ok { // as advised, it has room for more
			advice = strings.TrimSuffix(advice, "KEY FILE")
			sh.want(0, "replaced", numbered("a", c.items), append(append([]string{"replace"}, strings.Fields(advice)...), key)...)
			sh.want(0, "loaded", numbered("b", c.items/2), "load", key)
		}
	}
	ended := make([]string, 9_000)
	for i := range ended {
		ended[i] = fmt.Sprint("item-", i)
	}
	cfg := bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01, MaxBytes: 12_000}
	grown, err := bloom.NewScalable(sh.s.Client(upstash.WithTimeout(0)), "ended", cfg)
	if err == nil {
		_, err = grown.AddAll(t.Context(), ended)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := sh.want(0, "\nover capacity    ", "", "info", "ended")
	if !strings.Contains(out, " times: ") || !strings.Contains(out, "upbloom create -n ") {
		t.Errorf("info of a Scalable whose growth has ended: %s", out)
	}
	sh.create("fits")
	sh.want(0, "", numbered("a", 1000), "add", "fits", "-")
	if out := sh.want(0, "", "", "info", "fits"); strings.Contains(out, "over capacity") {
		t.Errorf("at its capacity: %s", out)
	}
}

// Overfilling is refused. The error says by how much.
func TestFillingTooFar(t *testing.T) {
	sh := newShell(t)
	lines := numbered("a", 20_000)
	sh.want(exitUsage, "the plain filter would hold about 19,825 items, with 100 in 100 false positives, and it is"+
		" for 100\nNothing was changed. Make a larger one (upbloom calc --items N shows sizes), or set --max-rate"+
		" or --force.\n", lines, "load", "--items", "100", "new")
	if sh.stored("new") != "" {
		t.Error("a refused load has made a filter")
	}
	sh.want(0, "\nafter   more than 3,", lines, "load", "--items", "100", "--force", "full")
	sh.want(0, "\nover capacity    at least 20 times: every look-up says yes\nrepair           upbloom replace --yes -n N full"+
		" FILE, of all its items, makes it for twice as many; N is twice the lines of FILE: the filter does not know any"+
		" more how many items it holds; programs that run with the old Capacity get errors from then on\n", "", "info", "full")
	sh.want(0, `"saturated":true`, "more\n", "--json", "load", "--force", "full")
	sh.unchanged("full", "replace would remove more than 3,", "", "replace", "full")
	sh.want(0, "\nbefore  more than 3,", numbered("a", 50), "replace", "--yes", "full")
	sh.want(exitUsage, "would hold about 2,0", numbered("a", 2000), "load", "--items", "1k", "new")
	sh.want(exitUsage, "and it is for 1,000", numbered("a", 2000), "load", "--items", "1k", "new")
	sh.want(0, "loaded", numbered("a", 1000), "load", "--items", "1k", "key")

	sh.unchanged("key", "--items N with --yes takes a larger one", numbered("b", 5000), "replace", "key")
	// What the filter was made for is in its string.
	for _, command := range []string{"load", "replace"} {
		sh.unchanged("key", "would hold about ", numbered("b", 5000), command, "key")
		sh.unchanged("key", "false positives, and it is for 998\nNothing was changed.", numbered("b", 5000), command, "key")
	}
	sh.unchanged("key", "and it is for 998\n", numbered("b", 1000), "load", "key")
	sh.unchanged("key", "and it is for 998\n", numbered("b", 1001), "add", "key", "-")
	sh.unchanged("key", "and the limit is 1 in 20", numbered("b", 1000), "load", "--max-rate", "5%", "key")
	sh.want(0, "loaded", numbered("b", 1000), "load", "--max-rate", "1/3", "key")
	sh.unchanged("key", "and the limit is 1 in 20", numbered("b", 1), "load", "--max-rate", "5%", "key")
	sh.unchanged("key", "and the limit is 1 in 20", "a new item\n", "add", "--max-rate", "5%", "key", "-")
	sh.want(0, "loaded", lines, "load", "--force", "key")
	sh.want(exitUsage, "above 0 and below 1", "a\n", "load", "--max-rate", "1", "key")
}

// Without flags the limit is what the string says that the filter was made for, of
// each kind. A filter that does not say it may get ten times the rate that its k
// is for.
func TestLimitOfTheString(t *testing.T) {
	sh := newShell(t)
	for flags, says := range map[string]string{
		"-p 9%":               "and it is for 1,002\n",
		"-p 1%":               "and it is for 998\n",
		"-p 0.1%":             "and it is for 1,002\n",
		"-p 1% --scheme xxh3": "and it is for 997\n",
		"-p 5% --shards 2":    "the sharded filter would hold about ",
		"-p 1% --window 1d":   "the newest pane of the window would hold about ",
		"-p 1% --scalable":    "the scalable filter would hold about ",
		"-p 40%":              "it does not say what it was made for: without --max-rate the limit for k=2 is 1 in 1.1\n",
	} {
		lines, fits, scalable := numbered("a", 6_000), numbered("a", 1_000), strings.Contains(flags, "--scalable")
		if scalable { // five layers hold 341,000
			lines = numbered("a", 400_000)
		}
		key := "made for" + strings.TrimPrefix(flags, "-p")
		sh.want(0, "", "", append(strings.Fields("create -n 1k "+flags), key)...)
		sh.want(0, "new   a-1", fits, "add", key, "-")
		sh.want(0, "seen  a-1", fits, "add", key, "-") // which does not count twice
		before := sh.everything()
		_, refusal, status := sh.run(lines, "add", key, "-")
		if status != exitUsage || !strings.Contains(refusal, says) || !strings.Contains(refusal, ", and ") {
			t.Errorf("%s: status %d, %s, want %q and the limit", flags, status, refusal, says)
		}
		sh.want(2, "Nothing was changed", "", "add", "--max-rate", "1e-12", key, "x", "y")
		if sh.everything() != before {
			t.Errorf("%s: items were added all the same", flags)
		}
		if !scalable {
			sh.want(0, "new", lines, "add", "--force", key, "-")
		}
	}
	file := filepath.Join(t.TempDir(), "saved")
	sh.want(0, "", "", "add", "--items", "1k", "key", "a")
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "restored", "", "restore", "restored", file)
	sh.want(0, "about 1 of 998\n", "", "info", "restored")
	sh.unchanged("restored", " and it is for 998\n", numbered("a", 3000), "load", "restored")
}

// If a file is loaded again, its items are in the filter already. The program
// must not count them twice.
func TestLoadingAgain(t *testing.T) {
	sh := newShell(t)
	lines := numbered("a", 1000)
	for range 2 {
		sh.want(0, "loaded 1,000 lines", lines, "load", "--items", "1000", "key")
		sh.want(0, "loaded 1,000 lines", lines, "load", "--max-rate", "1.5%", "key")
	}
	file := filepath.Join(t.TempDir(), "saved")
	sh.want(0, "saved", "", "save", "key", file)
	sh.unchanged("key", " and it is for 998\n", "", "restore", "--merge", "key", file)
	sh.want(0, "restored 0 new bits", "", "restore", "--merge", "--force", "key", file)
	sh.want(0, "", numbered("b", 900), "load", "--items", "1000", "other")
	sh.unchanged("other", "and the limit is 1 in 33", "", "restore", "--merge", "--max-rate", "3%", "other", file)
}

// What a filter holds of an input is estimated by one look-up: nothing downloads
// the filter, of any kind.
func TestOverlapIsEstimated(t *testing.T) {
	for _, flags := range [][]string{{}, {"--shards", "2"}} {
		sh := newShell(t)
		sh.want(0, "", "", slices.Concat([]string{"create", "-n", "100k"}, flags, []string{"key"})...)
		sh.want(0, "", numbered("a", 80_000), "load", "key")
		for half, status := range map[string]int{"a": 0, "b": exitUsage} {
			sh.s.ResetStats()
			sh.want(status, "", numbered("a", 40_000)+numbered(half, 80_000), "load", "key")
			if read := sh.s.Stats().BytesOut; read > 60_000 {
				t.Errorf("%v, with lines of %s: %d bytes were read", flags, half, read)
			}
		}
	}
}

// load says what is in the filter afterwards, as info does, without asking.
func TestLoadSaysWhatIsIn(t *testing.T) {
	sh := newShell(t)
	last := ""
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		last = strings.Join(r.Commands, " ")
		return upstashtest.Fault{}
	})
	for i, args := range [][]string{{"load", "-n", "1k", "key"}, {"load", "key"}, {"load", "--force", "key"}} {
		lines := numbered("same", 400) + numbered(fmt.Sprint(i), []int{0, 500, 50_000}[i])
		out := sh.want(0, "", lines, args...)
		if last != "EVAL" {
			t.Errorf("%q asks %s after its upload", args, last)
		}
		s, err := bloom.Inspect(t.Context(), sh.s.Client(), "key")
		if err != nil {
			t.Fatal(err)
		}
		after := "after   " + strings.TrimSuffix(brief(s), ", no expiry") + "\n"
		if !strings.HasSuffix(out, after) || s.Saturated != (i == 2) {
			t.Errorf("%q prints %q, want %q", args, out, after)
		}
	}
}

// A flag without effect is an error.
func TestFlagsWithoutEffect(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "a\nb\n", "load", "--items", "1000", "--ttl", "1d", "key")
	file := filepath.Join(t.TempDir(), "saved")
	sh.want(0, "saved", "", "save", "key", file)
	for _, c := range [][]string{
		{"--rate is for a new filter: it has no effect without --items", "load", "--rate", "0.1", "key"},
		{"--ttl is for a new filter: it has no effect without --items", "add", "--ttl", "1h", "key", "a"},
		{"--scheme is for a new filter", "load", "--scheme", "xxh3", "key"},
		{"--renew-ttl sets its TTL", "replace", "--items", "1000", "--ttl", "1h", "key"},
		{"use --renew-ttl alone", "replace", "--items", "1000", "--ttl", "1h", "--renew-ttl", "1h", "key"},
		{"--renew-ttl is 0s", "replace", "--renew-ttl", "0s", "key"},
		{"--ttl is 0s", "add", "--items", "1000", "--ttl", "0s", "key", "a"},
		{"--items is 0", "add", "--items", "0", "key", "a"},
		{"upbloom ttl sets that of one that is there", "restore", "--merge", "--ttl", "1h", "key", file},
		{"choose one of them", "restore", "--merge", "--replace", "key", file},
		{"no effect without --merge", "restore", "--replace", "--force", "key", file},
		{"no effect without --merge", "restore", "--max-rate", "5%", "key", file},
		{"no effect without --replace", "restore", "--yes", "key", file},
		{"--ttl is 0s", "restore", "--ttl", "0s", "new", file},
	} {
		sh.unchanged("key", c[0], "a\nb\n", c[1:]...)
	}
}

// replace keeps the TTL or renews it. restore sets what is left of that in the file,
// and says if the file knows none.
func TestTTLOfReplaceAndRestore(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "a\nb\n", "load", "--items", "1000", "--ttl", "1h", "key")
	sh.want(0, "after   about 1 item, less than 1 in a billion false positives, expires in 1h\n",
		"b\n", "replace", "key")
	sh.want(0, "expires in 2d", "a\n", "replace", "--renew-ttl", "2d", "key")
	sh.want(0, "expires in 3d", "a\n", "replace", "--items", "100", "--renew-ttl", "3d", "new")
	file := filepath.Join(t.TempDir(), "saved")
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "expires in 2d\n", "", "restore", "copy", file)
	b, err := bloom.TakeBackup(t.Context(), sh.s.Client(), "key")
	if err != nil {
		t.Fatal(err)
	}
	var stream strings.Builder
	_, _ = b.WriteTo(&stream)
	sh.want(0, "no expiry: a saved filter holds no TTL, and upbloom ttl sets one", "", "restore", "third",
		fileOf(t, "without a note", stream.String()))
	sh.want(0, "expires in 5h\n", "", "restore", "--ttl", "5h", "second", file)
}

// An Add of a handle for another filter sets bits before it learns of it. The
// program therefore looks first.
func TestAddToAnotherFilter(t *testing.T) {
	sh := newShell(t)
	seeded := sh.with("UPBLOOM_SEED=7")
	sh.want(0, "", "a\n", "load", "--items", "1000", "key")
	sh.exec("SET", "text", "\x00\x00\x00\x00\x00\x00\x00\x00 other data")
	for _, c := range []struct {
		sh   *shell
		says string
		args []string
	}{
		{sh, "leave --items out", []string{"add", "--items", "5", "key", "b"}},
		{seeded, "has no seed: unset", []string{"add", "--items", "1000", "key", "b"}},
		{sh, "not a filter", []string{"add", "--items", "1000", "text", "b"}},
	} {
		key := c.args[len(c.args)-2]
		before := sh.stored(key)
		c.sh.want(exitFilter, c.says, "", c.args...)
		if sh.stored(key) != before {
			t.Errorf("%q has changed what is there", c.args)
		}
	}
	sh.want(0, "new   b", "", "add", "--items", "1000", "key", "b")
}

// A plain filter is restored to a free key without its seed. To bring it into
// one that is there, restore compares the seed with the file's.
func TestRestoreWithAnotherSeed(t *testing.T) {
	sh := newShell(t)
	seeded := sh.with("UPBLOOM_SEED=7")
	dir := t.TempDir()
	plain, secret := filepath.Join(dir, "plain"), filepath.Join(dir, "secret")
	sh.want(0, "", "a\n", "load", "--items", "1000", "a")
	sh.want(0, "", "", "save", "a", plain)
	seeded.want(0, "", "a\n", "load", "--items", "1000", "b")
	seeded.want(0, "", "", "save", "b", secret)
	sh.want(0, "restored a new filter", "", "restore", "new", secret)
	seeded.want(0, "yes   a", "", "check", "new", "a")
	sh.want(exitUsage, "upbloom: "+secret+": the filter has another seed: set", "", "restore", "--merge", "new", secret)
	seeded.want(exitUsage, "upbloom: "+plain+": the filter has no seed: unset", "", "restore", "--replace", "a", plain)
	seeded.want(0, "restored 0 new bits", "", "restore", "--merge", "new", secret)
	seeded.want(0, "restored 1.3 KiB, ", "", "restore", "--replace", "--yes", "new", secret)
}

// A limit of --max-rate is one of the whole filter, as info says its rate: not of
// a window's newest pane, nor of layers as one filter.
func TestMaxRateOfTheWholeFilter(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "-n", "1k", "--window", "1h", "panes")
	sh.want(0, "", "", "create", "-n", "1k", "--scalable", "layers")
	sh.toTheNextPane("panes")
	sh.want(0, "", numbered("a", 1_400), "add", "--force", "panes", "-")
	sh.toTheNextPane("panes")
	sh.want(0, "", numbered("a", 6_000), "add", "--force", "layers", "-")
	for key, says := range map[string]string{"panes": "the window would take", "layers": "the scalable filter would take"} {
		sh.want(0, "", numbered("b", 1_001), "add", "--force", key, "-")
		s := sh.info(key)
		above, below := fmt.Sprint(*s.Rate*1.05), fmt.Sprint(*s.Rate*0.95)
		sh.want(2, says+" about 1 item more, and have 1 in ", "new to it", "add", "--max-rate", below, key, "-")
		sh.want(0, "new to it", "new to it", "add", "--max-rate", above, key, "-")
	}
}

// A sample counts distinct items, exactly as long as they are few, and keeps
// some of all of them.
func TestSample(t *testing.T) {
	for _, n := range []int{0, 1, unasked - 1, unasked, 20_000, 300_000} {
		var s sample
		for i := range 3 * n {
			s.add(strconv.Itoa(i % max(n, 1)))
		}
		got, off := float64(s.distinct()), 0.0
		if n >= unasked {
			off = 4 / math.Sqrt(unasked)
		}
		if math.Abs(got-float64(n)) > off*float64(n) || len(s.items) != min(n, unasked) {
			t.Errorf("%d items: about %v distinct ones, and %d kept", n, got, len(s.items))
		}
		below := 0
		for _, item := range s.items {
			if i, err := strconv.Atoi(item); err == nil && i < n/2 {
				below++
			}
		}
		if n > unasked && math.Abs(float64(below)/unasked-0.5) > 4*0.5/math.Sqrt(unasked) {
			t.Errorf("%d items: %d of %d kept are of the first half", n, below, unasked)
		}
	}
}
