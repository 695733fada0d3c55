package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A hurried operator's typing mistake is an error that names it, and changes
// nothing.
func TestStumbles(t *testing.T) {
	sh := newShell(t)
	sh.create("key", "--cuckoo")
	sh.create("seen", "--window", "1d")
	before := sh.stored("key")
	for line, at := range map[string]int{
		"ls _": 1, "info _": 1, "check _ a": 1, "add key _": 2, "add key a _": 3, "ttl key _": 2, "save key _": 2,
		"save --force key _": 2, "save --yes --match * _": 1, "load key _": 2, "replace key _": 2, "restore key _": 2,
		"restore --yes --match * _": 1, "save _ file": 1,
	} {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.TrimPrefix(args[i], "_")
		}
		sh.want(2, fmt.Sprintf("upbloom: argument %d is empty: is a variable of the shell not set?", at), "", args...)
	}
	sh.want(2, `"300000d": it is too long: the longest time is 106751d; none lets the filter stay`, "", "ttl", "key", "300000d")
	wrong := sh.with("UPSTASH_REDIS_REST_TOKEN=wrong")
	if out := wrong.want(4, "WRONGPASS", "", "ls"); out != "" {
		t.Errorf("ls with a wrong token prints %q", out)
	}
	for _, command := range []string{"check", "add", "remove"} {
		// An empty pipe, such as a failed command's, must not mean "all were
		// found".
		sh.want(2, "standard input has no items", "", command, "key", "-")
		sh.want(2, "standard input has no items", "\n\n\r\n", command, "key", "-")
		sh.want(2, `"exit":2`, "", "--json", command, "key", "")
	}
	sh.want(3, "seen: another window is at this key, 11,448 bits (1.4 KiB), k=6, blocked, and not 12,508"+
		" bits (1.5 KiB), k=6, blocked: use another key, or the same flags as then", "",
		"create", "--items", "1k", "--window", "1d", "--panes", "2", "seen")
	sh.want(3, "key: another cuckoo filter is at this key", "", "create", "--items", "9k", "--cuckoo", "key")
	items := fileOf(t, "items.txt", "a\n")
	for _, command := range []string{"load", "replace", "restore"} {
		sh.want(2, "is the key behind the file? It is upbloom "+command+" KEY FILE", "", command, items, "key")
	}
	// A folder of the key's name says nothing about the order.
	_, err := os.Open("no-such-file")
	sh.want(2, ": "+err.Error()+"\n", "", "load", "--items", "9", filepath.Dir(items), "no-such-file")
	if sh.stored("key") != before {
		t.Error("the filter was changed")
	}
}

// What a flag says, the rest of the answer says too.
func TestSaysWhatWasMeant(t *testing.T) {
	sh := newShell(t)
	sh.want(2, "several filters, as --shards does", "", "create", "--items", "400M", "key")
	sh.want(2, "--items is 1,000,000,000, and at --rate 0.01 one pane does not fit", "",
		"create", "--items", "1000M", "--window", "1d", "key")
	sh.want(2, "--items is 1,000,000,000, and at --rate 0.01 the first layer does not fit", "",
		"create", "--items", "1000M", "--scalable", "key")
	sh.want(0, "", "a\n", "load", "--items", "1k", "--rate", "1/1000", "key")
	far := newShell(t)
	far.env = []string{"UPSTASH_REDIS_REST_URL=http://10.0.0.5:8079", "UPSTASH_REDIS_REST_TOKEN=x"}
	far.want(2, "use https://, or a tunnel such as ssh -L", "", "ls")
	reader := newShell(t)
	reader.env = []string{
		"UPSTASH_REDIS_REST_URL=" + reader.s.URL, "UPSTASH_REDIS_REST_TOKEN=" + reader.s.ReadOnlyToken,
	}
	reader.want(4, "(HTTP status 400): use a full token\n", "", "ls")
	full := &shell{t: t, s: reader.s, env: []string{
		"UPSTASH_REDIS_REST_URL=" + reader.s.URL, "UPSTASH_REDIS_REST_TOKEN=" + reader.s.Token,
	}}
	full.want(0, "", "", "add", "--items", "9", "key", "a")
	reader.want(0, "yes   a", "", "check", "key", "a")
	full.want(0, "", "", "create", "--items", "9", "--window", "24h", "days")
	for _, key := range []string{"key", "days"} {
		reader.want(4, "the token may not run BITFIELD, and a no may be that of a replica that lags: use a full"+
			" token\n", "", "check", key, "x")
	}
	reader.want(4, "yes   a", "", "check", "key", "a", "x")
	reader.want(4, "yes   a", "a\nx\n", "check", "key", "-")
	reader.want(0, "yes   a", "a\na\n", "check", "key", "-")

	sh.unchanged("key", "k=4, blocked, for 5,000 items at 1 in 100: programs that use the old size get errors", "a\n",
		"replace", "--items", "5k", "key")
	sh.want(0, "in a billion  never", "", "ls", "key")
	sh.want(0, "", "", "ttl", "key", "7d")
	sh.want(0, "in a billion  7d", "", "ls", "key")
}

// A flag, a pattern or a size without effect is noticed.
func TestWhatHasNoEffect(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "--items", "1k", "--ttl", "90d", "n1")
	const kept = "n1 was there: it expires in 90d, as before; --ttl is for a new filter, and upbloom ttl n1" +
		" 30d changes it\n"
	sh.want(0, kept, "a\n", "load", "--items", "1k", "--ttl", "30d", "n1")
	sh.want(0, kept, "", "add", "--items", "1k", "--ttl", "30d", "n1", "b")
	sh.want(0, kept, "", "create", "--items", "1k", "--ttl", "30d", "n1")
	var m moved
	decode(t, sh.want(0, "", "a\n", "--json", "load", "--items", "1k", "--ttl", "30d", "n1"), &m)
	if m.Note+"\n" != kept {
		t.Errorf("the note is %q", m.Note)
	}
	for key, line := range map[string]string{
		"n2": "load --items 1k --ttl 1h n2", "n3": "add --items 1k --ttl 1h n3 b",
	} {
		sh.want(0, "", "", "create", "--items", "1k", key) // and would expire in an hour
		sh.want(0, key+" was there: it does not expire, as before; --ttl is for a new filter, and upbloom ttl "+
			key+" 1h changes it\n", "a\n", strings.Fields(line)...)
		sh.want(0, "no expiry\n", "", "ttl", key)
	}
	for _, args := range [][]string{
		{"load", "--items", "1k", "--ttl", "90d", "n1"}, // as it is
		{"load", "--items", "1k", "--ttl", "1d", "new"},
		{"add", "--items", "1k", "--ttl", "1d", "newer", "a"},
	} {
		out, errOut, status := sh.run("a\n", args...)
		if status != 0 || strings.Contains(out+errOut, "as before") {
			t.Errorf("%q: status %d, %s%s", args, status, out, errOut)
		}
	}
	sh.want(3, "no filter has a key like nope: upbloom ls lists all, and 'nope*' those that begin so", "",
		"ls", "nope")
	sh.want(3, "no filter has a key like nope:*: upbloom ls lists all\n", "", "ls", "nope:*")
	sh.want(3, "[]\n", "", "--json", "ls", "nope")
	sh.want(3, "another filter is at this key, 10,759 bits (1.3 KiB), k=4, blocked, and not 1,696 bits (212 B),"+
		" k=4, blocked, and nothing was changed: use another key", "a\n", "load", "--items", "5", "n1")
	sh.create("ck", "--cuckoo")
	sh.want(2, "a cuckoo filter has no TTL of its own", "", "ttl", "ck", "5d")
	sh.want(0, "removed", "", "rm", "-y", "ck")
	sh.want(0, "replaced", "a\n", "replace", "-y", "-f", "n1")
}

// If the terminal ends its input shortly before the interrupt, as on Windows
// after Ctrl-C, the input was not read to its end.
func TestInterruptAfterTheEnd(t *testing.T) {
	for after, want := range map[time.Duration]error{
		50 * time.Millisecond: context.Canceled, time.Second: nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			defer time.AfterFunc(after, cancel).Stop()
			got, err := io.ReadAll(interruptible(ctx, strings.NewReader("half a line"), "", 100*time.Millisecond))
			if string(got) != "half a line" || !errors.Is(err, want) {
				t.Errorf("an interrupt %v after the end: %q, %v, want %v", after, got, err, want)
			}
		})
	}
}

// add reads its input to the end before it adds the first line, and says so.
func TestAddReadsAllFirst(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "--items", "9k", "key")
	before := sh.stored("key")
	sh.want(2, "line 3001", strings.Repeat("item\n", 3000)+"\xff\n", "add", "key", "-")
	if sh.stored("key") != before {
		t.Error("items were added before the last line was read")
	}
}

// A few hundred lines can be too many for a small filter: add refuses them too.
func TestAddToASmallFilter(t *testing.T) {
	sh := newShell(t)
	sh.want(2, "and it is for 100\nNothing was changed.", numbered("a", 900), "add", "--items", "100", "new", "-")
	sh.want(0, "", "", "create", "--items", "100", "key")
	sh.unchanged("key", "and it is for 157\n", numbered("a", 900), "add", "key", "-")
	sh.want(0, "", "", "create", "--items", "100", "--scalable", "grows")
	sh.want(0, "new", numbered("a", 900), "add", "grows", "-")
	sh.want(2, "--max-rate is 5: it must be", "a\n", "add", "--items", "9", "--max-rate", "5", "key", "-")
}
