package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestCreate(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "created  10,759 bits", "", "create", "--items", "1k", "--ttl", "1d", "key")
	sh.want(0, "expires in 24h", "", "ttl", "key")
	sh.want(0, "", "", "add", "key", "a")
	sh.want(0, "it was there already, and is as it was  about 1 item", "", "create", "--items", "1k", "key")
	sh.want(3, "another plain filter is at this key", "", "create", "--items", "2k", "key")
	sh.want(2, "--items is missing", "", "create", "key")
	var m made
	decode(t, sh.want(0, "", "", "--json", "create", "-n", "1k", "--scheme", "xxh3", "second"), &m)
	if !m.Created || m.Key != "second" || m.Bytes == 0 || m.TTL != 0 {
		t.Errorf("%+v", m)
	}
	sh.want(0, "xxh3", "", "info", "second")
}

func TestTTL(t *testing.T) {
	sh := newShell(t)
	sh.create("key")
	sh.want(0, "no expiry", "", "ttl", "key")
	sh.want(0, "expires in 7d", "", "ttl", "key", "1w")
	var e expiring
	decode(t, sh.want(0, "", "", "--json", "ttl", "key", "90m"), &e)
	if e.Key != "key" || e.TTL < 5000 || e.TTL > 5400 {
		t.Errorf("%+v", e)
	}
	sh.want(2, "upbloom rm", "", "ttl", "key", "0s")
	sh.want(2, `"soon" is no time`, "", "ttl", "key", "soon")
	sh.want(0, "no expiry", "", "ttl", "key", "none")
	for _, args := range [][]string{{"ttl", "missing"}, {"ttl", "missing", "1h"}, {"ttl", "missing", "none"}} {
		sh.want(3, "missing: no filter at this key", "", args...)
	}
	sh.exec("SET", "text", "just some text that is long enough")
	sh.want(3, "not a filter", "", "ttl", "text", "1h")
	if left := sh.exec("TTL", "text"); left != int64(-1) {
		t.Errorf("the TTL of other data is %v", left)
	}
}

// rm removes only filters, and only if told twice.
func TestRemove(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "1k", "key", "a")
	sh.unchanged("key", "key at "+sh.host()+": about 1 item", "yes\n", "rm", "key")
	sh.unchanged("key", "--yes does it", "", "rm", "key")
	sh.unchanged("key", "upbloom: --rest is for the shards of a sharded filter, and the key holds a plain filter: leave --rest"+
		" out to remove that\n", "", "rm", "--rest", "--yes", "key")
	sh.want(0, `{"key":"key","removed":true,"host":"`+sh.host()+"\"}\n", "", "--json", "rm", "--yes", "key")
	sh.want(3, "key: no filter at this key", "", "rm", "--yes", "key")
	for _, c := range []struct {
		command []string
		what    string
	}{
		{[]string{"SET", "text", "just some text that is long enough"}, "text: a string of 34 bytes"},
		{[]string{"LPUSH", "list", "v"}, "list: data of type list"},
	} {
		sh.exec(c.command...)
		key := c.command[1]
		sh.want(3, c.what+", and no filter with a header: it was left alone. If it is not needed, remove it"+
			" with the command DEL", "", "rm", "--yes", key)
		if sh.exec("EXISTS", key) != int64(1) {
			t.Errorf("%s is gone", key)
		}
	}
}

// rm removes the shards that an interrupted one has left, and nothing else.
func TestRemoveRest(t *testing.T) {
	sh := newShell(t)
	sh.create("key", "--shards", "3")
	for _, command := range [][]string{{"DEL", "key:0"}, {"SET", "key:7", "some text of another program"}} {
		sh.exec(command...)
	}
	for _, args := range [][]string{{"rm", "key"}, {"rm", "--yes", "key"}} {
		sh.want(3, "key: here are 2 shards of a sharded filter whose shard 0 is missing: it was lost, or it is in another"+
			" database; nothing was removed: upbloom rm --rest removes the shards that are here\n", "", args...)
	}
	sh.want(2, "key at "+sh.host()+": 2 shards of a sharded filter whose shard 0 is missing\nNothing was removed: --yes does it.\n", "",
		"rm", "--rest", "key")
	first, came := sh.stored("key:1"), false // a create brings shard 0 back meanwhile
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if came = came || r.Commands[0] == "EVAL"; came {
			sh.exec("SET", "key:0", first)
		}
		return upstashtest.Fault{}
	})
	sh.want(exitDatabase, "key: it was left alone: it has changed since it was listed, or is gone", "", "rm", "--rest", "--yes", "key")
	sh.s.InjectFunc(nil)
	sh.exec("DEL", "key:0")
	sh.want(0, "removed from "+sh.host()+"\n", "", "rm", "--rest", "--yes", "key")
	sh.wantKeys("key:7")
	sh.want(3, "key: no filter at this key", "", "rm", "--yes", "key")
	sh.want(3, "key: no filter at this key", "", "rm", "key")
}

// The shards that are left must have the seed, too.
func TestRemoveRestOfAnotherSeed(t *testing.T) {
	sh := newShell(t)
	seeded := sh.with("UPBLOOM_SEED=7")
	seeded.want(0, "", "", "create", "--items", "1k", "--shards", "3", "key")
	sh.exec("DEL", "key:0")
	sh.want(3, "key: the filter has another seed: set UPBLOOM_SEED to the seed that it was made with\n", "",
		"rm", "--rest", "--yes", "key")
	sh.wantKeys("key:1 key:2")
	seeded.want(0, "removed from "+sh.host()+"\n", "", "rm", "--rest", "--yes", "key")
	sh.wantKeys("")
}

// A filter may lie in several databases, and the program knows one. Half of it
// is not removed unasked.
func TestRemovePartOfAFilter(t *testing.T) {
	sh, far := newShell(t), upstashtest.NewServer(t)
	f, err := bloom.NewSharded([]*upstash.Client{sh.s.Client(), far.Client()}, "key",
		bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, _ := sh.keys()
	for _, args := range [][]string{{"rm", "key"}, {"rm", "--yes", "key"}} {
		sh.want(3, "shards 1, 3 of 4 are missing: lost, or in another database, and upbloom works on only one;"+
			" nothing was removed: upbloom rm --rest removes", "", args...)
	}
	sh.wantKeys(before)
	sh.want(2, "key at "+sh.host()+": the shards of a sharded filter that are here\nNothing was removed: --yes does it.\n", "",
		"rm", "--rest", "key")
	sh.want(0, "removed from "+sh.host()+"\n", "", "rm", "--rest", "--yes", "key")
	sh.wantKeys("")
	if found, err := f.Exists(t.Context(), "a"); found || !errors.Is(err, bloom.ErrNotFound) && err != nil {
		t.Errorf("the other half: %v, %v", found, err)
	}
}

// A token that may run only some commands of a script: the message says what was made
// all the same, and the exit status is not that of a refusal.
func TestScriptsThatEndHalfWay(t *testing.T) {
	addr := testenv.Redis(t)
	sh := newShell(t, upstashtest.WithRedis(addr))
	testenv.UsersMay(t, addr, "-pexpire")
	sh.want(exitUnknown, "the next Add tries again: the token may not run PEXPIRE: use a token that may\n", "",
		"create", "a", "--items", "1000", "--ttl", "1h")
	testenv.UsersMay(t, addr, "+pexpire -setbit")
	sh.create("b")
	sh.want(exitUnknown, "there is no TTL now, but a write with a TTL will set one again: the token may not run SETBIT:"+
		" use a token that may\n", "", "ttl", "b", "none")
	testenv.UsersMay(t, addr, "+setbit -getrange -bitfield_ro")
	for _, args := range [][]string{{"create", "c", "--items", "1000"}, {"save", "b", t.TempDir() + "/b"}} {
		_, said, status := sh.run("", args...)
		if status != exitDatabase || !strings.HasSuffix(said, ": use a full token\n") || strings.Contains(said, "MiB") {
			t.Errorf("%v: status %d, %q, want that it takes a full token", args, status, said)
		}
	}
	testenv.UsersMay(t, addr, "+getrange +bitfield_ro")
}
