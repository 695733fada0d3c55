package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A filter that cannot be read has a line with the reason, hides no other, and
// shows in the exit status.
func TestListWithAFilterThatCannotBeRead(t *testing.T) {
	sh := newShell(t)
	for _, key := range []string{"a", "b", "c"} {
		sh.want(0, "new", "", "add", "--items", "100", key, "item")
	}
	sh.s.DenyFunc(func(command []string) bool { return slices.Contains(command, "b") })
	out, errOut, status := sh.run("", "ls")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "a  ") || !strings.HasPrefix(lines[2], "c  ") ||
		!strings.HasPrefix(lines[3], "b  ") || !strings.Contains(lines[3], "not read: ") {
		t.Errorf("ls prints\n%s", out)
	}
	if status != exitDatabase || !strings.Contains(errOut, "1 of 3 filters could not be read") {
		t.Errorf("status %d, %q", status, errOut)
	}
	sh.want(exitDatabase, "the sums lack 1 filter, which could not be read: ", "", "ls", "--total")
	var list []struct {
		state
		Error string `json:"error"`
	}
	decode(t, sh.want(exitDatabase, "", "", "--json", "ls"), &list)
	if len(list) != 3 || *list[0].Items != 1 || list[1].Key != "b" || list[1].Error == "" ||
		list[2].Error != "" {
		t.Errorf("as JSON: %+v", list)
	}
}

// If the database goes away, ls shows what it has read, and says that there is
// more.
func TestListThatIsNotComplete(t *testing.T) {
	sh := newShell(t)
	for i := range 2 * inspectAtOnce {
		sh.want(0, "", "", "add", "--items", "100", fmt.Sprintf("seen:%03d", i), "a")
	}
	// After SCAN, the first bits of all keys, and the first half.
	sh.s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		if n > 3 {
			return upstashtest.ErrorObject("ERR no")
		}
		return upstashtest.Fault{}
	})
	out, errOut, status := sh.run("", "ls")
	if n := strings.Count(out, "seen:"); n != inspectAtOnce || status != exitDatabase ||
		!strings.Contains(errOut, "the list is not complete: ") {
		t.Errorf("%d filters are listed, want %d; status %d, %q", n, inspectAtOnce, status, errOut)
	}
}

// info says whether UPBLOOM_SEED may be the seed of a filter.
func TestInfoOfASeed(t *testing.T) {
	sh := newShell(t)
	seeded, other := sh.with("UPBLOOM_SEED=7"), sh.with("UPBLOOM_SEED=8")
	seeded.want(0, "", "", "create", "--items", "100", "key")
	seeded.want(0, "", "", "create", "--items", "100", "--shards", "1", "sh")
	for _, key := range []string{"key", "sh:0"} {
		sh.want(0, "seed             secret, not known (UPBLOOM_SEED)\n", "", "info", key)
		seeded.want(0, "seed             secret, and UPBLOOM_SEED fits it\n", "", "info", key)
		other.want(0, "seed             secret, and UPBLOOM_SEED is another\n", "", "info", key)
	}
}

// The computed rate of an fnv1a filter is too low: it is said to be a bound, or
// not at all, wherever a rate is printed.
func TestRatesFNV1a(t *testing.T) {
	sh := newShell(t)
	f, err := bloom.New(sh.s.Client(), "emails", bloom.Config{Bits: 9600, Hashes: 7, Scheme: bloom.SchemeFNV1a})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "false positives  not known now", "", "info", "emails")
	sh.want(0, "  not known  ", "", "ls")
	sh.want(exitUsage, "about 1 item or more, false positives not known, no expiry\n", "", "rm", "emails")
	sh.want(0, " items or more, at least 1 in ", numbered("b", 299), "load", "emails")
	sh.want(0, "  at least 1 in ", "", "ls")
}

// Bits that something else has set look like many items, and a string that was
// lengthened works as before: info says both.
func TestInfoOfAStringThatSomethingElseWroteInto(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", numbered("a", 100), "add", "-n", "5k", "key", "-")
	if out := sh.want(0, "\nseed             usual\n", "", "info", "key"); strings.Contains(out, "too long") {
		t.Errorf("of a filter as it was made: %s", out)
	}
	sh.exec("EVAL", "for i = 192, 60192 do redis.call('SETBIT', KEYS[1], i, 1) end", "1", "key")
	out := sh.want(0, "\notherwise        if it was given far fewer items than that, something else set bits in the string", "", "info", "key")
	if !strings.Contains(out, "\ntoo long         7,525 bytes, and its header says 6,742: something else wrote into the key") {
		t.Errorf("info says\n%s", out)
	}
	sh.want(0, "", numbered("a", 100), "add", "-n", "5k", "part", "-")
	sh.exec("EVAL", "for i = 192, 20192 do redis.call('SETBIT', KEYS[1], i, 1) end", "1", "part")
	sh.want(0, " (wc -l FILE), something else set bits in the string, or a program of yours with another Capacity, FPRate or Seed: "+
		"stop it or give it a key of its own", "", "info", "part")

	sh.want(0, "", numbered("a", 100), "add", "-n", "5k", "smaller", "-")
	sh.adds("smaller", 4_000, 8_000)
	sh.want(0, " or a program of yours with another Capacity, FPRate or Seed: ", "", "info", "smaller")
	for kind, flag := range map[string]string{"window": "--window=1d", "cuckoo": "--cuckoo", "scalable": "--scalable", "idle": "--window=1h --expire-idle"} {
		sh.create(kind, strings.Fields(flag)...)
		if out := sh.want(0, "\nseed             usual\n", "", "info", kind); strings.Contains(out, "too long") {
			t.Errorf("%s: %s", kind, out)
		}
	}
	for _, kind := range []string{"window", "cuckoo"} {
		sh.exec("SETRANGE", kind, "100000", "x")
		sh.want(0, "\ntoo long         100,001 bytes, and its header says ", "", "info", kind)
	}
}

// adds adds items by a handle of another Capacity. It fails, and what it has sent
// stays.
func (sh *shell) adds(key string, capacity uint64, items int) {
	sh.t.Helper()
	f, err := bloom.New(sh.s.Client(), key, bloom.Config{Capacity: capacity, FPRate: 0.01})
	if err == nil {
		_, err = f.AddAll(sh.t.Context(), strings.Fields(numbered("b", items)))
	}
	if _, ok := errors.AsType[*bloom.MismatchError](err); !ok {
		sh.t.Fatal(err)
	}
}

// The bits of a smaller filter lie in front. info says so, how much of the string that
// is, and the rate that comes of it. It takes 8 commands more, and is not misled by a
// filter as it should be.
func TestInfoOfBitsOfASmallerFilter(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", numbered("a", 2_000), "add", "-n", "10k", "key", "-")
	sh.s.ResetStats()
	if one := sh.info("key"); one.Front != 0 || sh.s.Stats().Billed != 12 {
		t.Errorf("front %v, %d commands", one.Front, sh.s.Stats().Billed)
	}
	sh.adds("key", 2_500, 10_000)
	out := sh.want(0, "\ncrowded          79% of the bits in the first quarter are set, and 7% of the rest: a program with a"+
		" smaller Capacity or a higher FPRate adds to this key", "", "info", "key")
	_, said, _ := strings.Cut(out, "; false positives are 1 in ")
	one := 0.0
	_, err := fmt.Sscanf(said, "%f", &one)
	strangers, _, _ := sh.here(numbered("c", 20_000), "check", "key", "-")
	found := float64(strings.Count(strangers, "yes "))
	if front := sh.info("key").Front; err != nil || front != 0.25 || math.Abs(found*one/20_000-1) > 0.2 {
		t.Errorf("front %v, %v of 20,000 strangers are found: %s", front, found, out)
	}
	sh.s.SetFull(true) // queues no transaction
	if one := sh.info("key"); one.Front != 0.25 {
		t.Errorf("in a full database the front is %v", one.Front)
	}
	sh.s.SetFull(false)
	sh.s.DenyFunc(func(c []string) bool { return c[0] == "BITCOUNT" && c[3] != "-1" })
	sh.want(0, "\nseed             usual\ncrowded          not known, the parts were not counted: ", "", "info", "key")
	sh.s.DenyFunc(nil)
	for i, flags := range []string{"-n 60", "-n 1k", "-n 1k --scheme xxh3 --force", "-n 100k"} {
		key := fmt.Sprint("key", i)
		sh.want(0, "", numbered("a", []int{60, 1_000, 3_000, 5_000}[i]), append(append([]string{"add"}, strings.Fields(flags)...), key, "-")...)
		if one := sh.info(key); one.Front != 0 {
			t.Errorf("%s: the front is said to be fuller: %v", flags, one.Front)
		}
	}
}

// The figure of the runbook: 60,000 bits that were set anywhere look like 15,000 items.
func TestInfoOfForeignBits(t *testing.T) {
	sh := newShell(t)
	sh.create("KEY", "-n", "100k")
	random, body := rand.New(rand.NewPCG(1, 2)), make([]byte, 134_000)
	for range 60_000 {
		body[random.IntN(len(body))] |= 1 << random.IntN(8)
	}
	sh.exec("SETRANGE", "KEY", "24", string(body))
	if one := sh.info("KEY"); math.Abs(float64(*one.Items)/15_000-1) > 0.02 || one.Front != 0 {
		t.Errorf("%d items, front %v", *one.Items, one.Front)
	}
	for i := range 2_500 { // a bitmap at the front
		body[i] = 0xff
	}
	sh.exec("SETRANGE", "KEY", "24", string(body))
	sh.want(0, "\ncrowded ", "", "info", "KEY")
}
