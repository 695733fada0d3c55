package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// tenants makes a filter each for some tenants, of each kind, and one that is no
// tenant's.
func (sh *shell) tenants() {
	sh.t.Helper()
	for _, key := range []string{"tenant:1", "tenant:2", "tenant:a", "tenant:A"} {
		sh.want(0, "new", "", "add", "-n", "1k", key, "item of "+key)
	}
	sh.create("tenant:days", "--window", "1d")
	sh.create("tenant:large", "--shards", "3")
	sh.want(0, "", "", "add", "-n", "1k", "other", "a")
	sh.want(0, "", "", "ttl", "tenant:1", "2h")
}

// Many filters are saved, removed and restored at once, as they were. The key of a
// file is in it, whatever its name.
func TestManyFilters(t *testing.T) {
	sh := newShell(t)
	sh.tenants()
	dir := filepath.Join(t.TempDir(), "saved")
	before := sh.everything()
	for _, args := range [][]string{{"save", "--match", "tenant:*", dir}, {"rm", "--match", "tenant:*"}} {
		_, errOut, status := sh.run("", args...)
		if status != exitUsage || strings.Count(errOut, "\ntenant:") != 5 || !strings.Contains(errOut, "\ntenant:large  sharded of 3") ||
			!strings.Contains(errOut, "6 filters to ") || !strings.HasSuffix(errOut, "\nNothing was done: --yes does it.\n") {
			t.Errorf("%q: status %d, %q", args, status, errOut)
		}
	}
	if entries, _ := filepath.Glob(dir + "/*"); sh.everything() != before || len(entries) > 0 {
		t.Fatalf("without --yes something was done: %v", entries)
	}
	sh.want(0, "saved 6 of 6 filters, ", "", "save", "--match", "tenant:*", "--yes", dir)
	entries, _ := filepath.Glob(dir + "/*")
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = filepath.Base(e)
	}
	if !slices.Contains(names, "tenant%3A%41.upbloom") || !slices.Contains(names, "tenant%3Aa.upbloom") || len(names) != 8 {
		t.Errorf("the files are %q", names)
	}
	if err := os.Rename(entries[0], filepath.Join(dir, "renamed")); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "saved 2 of 2 filters, ", "", "save", "--match", "tenant:[a-dA-D]", "--yes", dir)
	if err := os.Remove(filepath.Join(dir, "renamed")); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "removed 6 of 6 filters, ", "", "rm", "--match", "tenant:*", "--yes")
	sh.wantKeys("other")
	sh.want(0, "restored 1 of 1 filter, ", "", "restore", "--match", "tenant:large", "--yes", dir)
	sh.wantKeys("other tenant:large:0 tenant:large:1 tenant:large:2")
	out := sh.want(exitFilter, `{"key":"tenant:large","error":"the key holds a shard`, "", "--json", "restore", "--match", "*", "--yes", dir)
	if strings.Count(out, `"from":`) != 5 || strings.Count(out, `"exit":3`) != 1 {
		t.Errorf("JSON:\n%s", out)
	}
	for _, key := range []string{"tenant:1", "tenant:2", "tenant:a", "tenant:A"} {
		sh.want(0, "yes", "", "check", key, "item of "+key)
	}
	if ttl := sh.info("tenant:1").TTL; ttl < 3600 || ttl > 7200 {
		t.Errorf("the TTL is %v s", ttl)
	}
	out = sh.want(0, "", "", "ls", "--total")
	for _, line := range []string{
		"KIND     FILTERS  STRINGS", "filter   5        5 ", "sharded  1        3 ", "window   1        1 ", "all      7        9 ",
	} {
		if !strings.Contains("\n"+out, "\n"+line) {
			t.Errorf("ls --total lacks %q:\n%s", line, out)
		}
	}
	sh.want(exitFilter, "no filter has a key like x*", "", "ls", "--total", "x*")
	sh.want(exitFilter, "no filter has a key like x*", "", "rm", "--match", "x*", "--yes")
	sh.want(exitUsage, "usage: upbloom rm --match PATTERN", "", "rm", "--match", "x*", "key")
	sh.want(exitUsage, "no file in ", "", "restore", "--match", "x*", "--yes", dir)
	file := fileOf(t, "file", "text")
	for _, command := range []string{"save", "restore"} {
		sh.want(exitUsage, "file is no directory, which --match wants: nothing was done\n", "", command, "--match", "*", "--yes", file)
		sh.want(exitUsage, " is a directory: name a file, or "+command, "", command, "other", dir)
	}
}

// What fails is listed and does not stop the rest. The exit status is the worst.
func TestManyFiltersOfWhichSomeFail(t *testing.T) {
	sh := newShell(t)
	sh.tenants()
	dir := t.TempDir()
	sh.exec("DEL", "tenant:large:1")
	sh.s.DenyFunc(func(command []string) bool {
		return slices.Contains(command, "tenant:2") && strings.HasPrefix(command[0], "EVAL")
	})
	_, errOut, status := sh.run("", "save", "--match", "tenant:*", "--yes", dir)
	if status != exitDatabase || !strings.Contains(errOut, "2 of 6 filters were not saved: the lines above say why") ||
		!strings.Contains(errOut, "tenant:2: ") || !strings.Contains(errOut, "tenant:large: 1 of its 3 shards are missing") {
		t.Errorf("status %d, %q", status, errOut)
	}
	if entries, _ := filepath.Glob(dir + "/*"); len(entries) != 6 {
		t.Errorf("%d files, want 6: %v", len(entries), entries)
	}
	if err := os.WriteFile(filepath.Join(dir, "a text"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.s.DenyFunc(nil)
	sh.want(exitFilter, "1 of 6 filters was not removed", "", "rm", "--match", "tenant:*", "--yes")
	sh.wantKeys("other tenant:large:0 tenant:large:2")
	sh.want(exitFilter, "a text: the file is no saved filter", "", "restore", "--match", "*", "--yes", dir)
	_, errOut, _ = sh.run("", "restore", "--match", "*", "--yes", dir)
	if !strings.Contains("\n"+errOut, "\ntenant:1, tenant:A, tenant:a: the key holds a filter, and nothing was changed: --replace puts"+
		" the file in its place") {
		t.Errorf("equal reasons: %s", errOut)
	}
	for _, name := range []string{"a", "%41", "1"} {
		if err := os.WriteFile(filepath.Join(dir, "tenant%3A"+name+".upbloom"), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sh.want(exitUsage, "\ntenant:1, tenant:A, tenant:a: the file is no saved filter, and was left as it is", "",
		"save", "--match", "tenant:?", "--yes", dir)
	five := &tally{failed: map[string][]string{"why": strings.Fields("e b a d c")}}
	if got := five.reasons(); !slices.Equal(got, []string{"a, b, c and 2 more: why"}) {
		t.Errorf("of five: %q", got)
	}
	sh.want(0, "", "", "check", "tenant:a", "item of tenant:a")

	sh.strikes("EVAL", upstashtest.Drop(upstashtest.AfterExec))
	sh.want(exitUnknown, "not removed: the lines above say why", "", "rm", "--match", "tenant:[12a]", "--yes")
}

// Whenever a restore or an rm of many filters is interrupted, the exit status says
// whether there may be a change.
func TestManyFiltersInterrupted(t *testing.T) {
	sh := newShell(t)
	sh.create("a")
	whole, dir := sh.stored("a"), t.TempDir()
	for i := range 60 {
		sh.exec("SET", fmt.Sprint("of:", i), whole)
	}
	sh.want(0, "", "", "save", "--match", "of:?", "--yes", dir)
	for _, args := range [][]string{{"rm", "--match", "of:*", "--yes"}, {"restore", "--match", "*", "--yes", dir}} {
		changed := 0
		for n := int64(1); ; n++ {
			sh.exec("FLUSHALL")
			for i := 0; args[0] == "rm" && i < 60; i++ {
				sh.exec("SET", fmt.Sprint("of:", i), whole)
			}
			before, _ := sh.keys()
			sh.s.ResetStats()
			errOut, at, status := sh.interrupted(sh.s.Stats().Requests+n, upstashtest.BeforeExec, "", args...)
			if at == "" {
				break
			}
			_, after := sh.keys()
			if after != before && status == exitInterrupted || strings.Contains(errOut, "interrupted: interrupted") {
				t.Errorf("%s interrupted at %s: status %d, %s, and there is %s", args[0], at, status, errOut, after)
			}
			if after != before && status == exitUnknown {
				changed++
			}
		}
		if changed == 0 {
			t.Errorf("%s: nothing changed, so this shows nothing", args[0])
		}
	}
}

// A sum or a line that cannot be printed stops nothing, and is no refusal.
func TestManyFiltersUnprinted(t *testing.T) {
	sh := newShell(t)
	sh.tenants()
	dir := t.TempDir()
	closed, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for _, flag := range []string{"--json", "--quiet"} {
		for _, c := range []struct {
			status int
			args   []string
			keys   string
		}{
			{exitUsage, []string{flag, "save", "--match", "tenant:?", "--yes", dir}, ""},
			{exitUnknown, []string{flag, "rm", "--match", "tenant:*", "--yes"}, "other"},
			{exitUnknown, []string{flag, "restore", "--match", "*", "--yes", dir}, "other tenant:1 tenant:2 tenant:A tenant:a"},
		} {
			var errOut strings.Builder
			status := sh.inProcess(t.Context(), "", closed, &errOut, c.args)
			if status != c.status || !strings.Contains(errOut.String(), "file already closed") {
				t.Errorf("%q: status %d, want %d: %s", c.args, status, c.status, &errOut)
			}
			if all, _ := sh.keys(); c.keys != "" && all != c.keys {
				t.Errorf("%q: these keys are here: %s", c.args, all)
			}
		}
	}
}

// rm leaves alone what only looks like a filter, and what changes after it was
// listed.
func TestManyRemovedAreTheListedOnes(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "-n", "1k", "a", "x")
	whole := sh.stored("a")
	for key, change := range map[string]func(b []byte){
		"without-birth": func(b []byte) { clear(b[8:15]) },
		"bit-117":       func(b []byte) { b[14] |= 4 },
		"bit-126":       func(b []byte) { b[15] |= 2 },
	} {
		b := []byte(whole)
		change(b)
		sh.exec("SET", key, string(b))
	}
	sh.want(exitFilter, "1 of 2 filters was not removed", "", "rm", "--match", "*", "--yes")
	if got := sh.exec("EXISTS", "without-birth", "bit-117", "bit-126", "a"); got != int64(3) {
		t.Errorf("%v are left, want 3", got)
	}
	sh.exec("FLUSHALL")
	sh.exec("SET", "a", whole)
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if slices.Contains(r.Commands, "EVAL") {
			b := []byte(whole)
			b[10] ^= 1
			sh.exec("SET", "a", string(b))
		}
		return upstashtest.Fault{}
	})
	sh.want(exitDatabase, "a: it was left alone: it has changed since it was listed, or is gone", "", "rm", "--match", "a", "--yes")
	sh.wantKeys("a")
}

// A pattern matches the keys in a folder that it matches in the database.
func TestPatternsAreThoseOfTheDatabase(t *testing.T) {
	s := upstashtest.NewServer(t)
	keys := []string{"a", "A", "ab", "abc", "a*c", "a[c", "b-c", "^", "ä", "aé", "a\nb", "a]", "x:1", "x:12", `a\b`, "-", "."}
	for _, key := range keys {
		if _, err := s.Exec("SET", key, "v"); err != nil {
			t.Fatal(err)
		}
	}
	for _, pattern := range []string{
		"*", "a", "a*", "a?", "?", "??", "[ab]*", "[^a]*", "[a-c]*", "a\\*c", "x:[0-9]", "x:*", "*b*", "", ".", "a.c", "(", "a\\", "[a",
	} {
		want := make(map[string]bool)
		for key, err := range s.Client().Scan(t.Context(), pattern) {
			if err != nil {
				t.Fatal(err)
			}
			want[key] = true
		}
		matches, got := like(pattern), make(map[string]bool)
		for _, key := range keys {
			if matches(key) {
				got[key] = true
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", pattern, got, want)
		}
	}
}

// A pattern without a * at its end finds sharded filters by their own key, and each
// string once, though the key of a filter or a shard may match it in two ways.
func TestPatternsWithAnEnd(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "-n", "1k", "a-b:c-b", "x")
	for _, key := range []string{"of-b", "is*", "in:1"} {
		sh.create(key, "--shards", "2")
	}
	for pattern, want := range map[string]string{
		"*-b": "2 filters", "of-b": "1 filter", `is\*`: "1 filter", "*[0-9]": "1 filter", `*\\*`: "no filter",
	} {
		_, errOut, _ := sh.run("", "rm", "--match", pattern)
		if !strings.Contains(errOut, "upbloom: "+want) || strings.Contains(errOut, "two filters") ||
			strings.Contains(errOut, "sharded of 4") {
			t.Errorf("%s: %s", pattern, errOut)
		}
	}
	sh.want(0, "removed 2 of 2 filters, ", "", "rm", "--match", "*-b", "--yes")
	sh.wantKeys("in:1:0 in:1:1 is*:0 is*:1")
}

// A folder with two files of one shard restores nothing of that filter.
func TestRestoreOfAShardTwice(t *testing.T) {
	sh := newShell(t)
	sh.create("a", "--shards", "2")
	dir := t.TempDir()
	sh.want(0, "", "", "save", "--match", "a", "--yes", dir)
	sh.want(0, "", "", "save", "a:0", filepath.Join(dir, "again"))
	sh.want(0, "", "", "rm", "--yes", "a")
	sh.want(exitUsage, "a: two filters say that they are of this key", "", "restore", "--match", "*", "--yes", dir)
	sh.wantKeys("")
}

// The names of files differ in more than capitals, and are no longer than a file
// system takes.
func TestFileNames(t *testing.T) {
	for key, want := range map[string]string{
		"a:B/c%": "a%3A%42%2Fc%25.upbloom", "..": "%2E..upbloom", "é-_9": "%C3%A9-_9.upbloom",
	} {
		if got := fileNameOf(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
	long := strings.Repeat("é", 200)
	if a, b := fileNameOf(long), fileNameOf(long+"a"); len(a) > 255 || a == b {
		t.Errorf("%q and %q", a, b)
	}
}

// restore --replace wants --yes for the file of another key, unless the birth number
// shows an earlier state. It says which it is.
func TestRestoreSaysOfWhichFilter(t *testing.T) {
	sh := newShell(t)
	dir := t.TempDir()
	for _, key := range []string{"a", "b"} {
		sh.want(0, "", "", "add", "-n", "1k", key, "x")
		sh.want(0, "", "", "save", key, filepath.Join(dir, key))
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	from := "\nfrom    a at " + sh.host() + ", saved 20"
	if out := sh.want(0, "\nthe file has an earlier state of this very filter\n", "", "restore", "--replace", "a", a); !strings.Contains(out, from) {
		t.Errorf("no %q in\n%s", from, out)
	}
	sh.want(0, "\nthe key's filter was replaced or made anew since it was saved\n", "", "restore", "--replace", "a", a)
	sh.unchanged("a", b+" holds another filter: b at "+sh.host()+", saved 20", "", "restore", "--replace", "a", b)
	sh.want(0, "\nfrom    b at ", "", "restore", "--replace", "--yes", "a", b)
	sh.exec("RENAME", "b", "renamed")
	sh.want(0, "an earlier state of this very filter", "", "restore", "--replace", "renamed", b)

	var m moved
	decode(t, sh.want(0, "", "", "--json", "restore", "c", a), &m)
	if m.From == nil || m.From.Key != "a" || m.From.Host != sh.host() || m.From.Birth&format.Marker == 0 || time.Since(m.From.Saved) > time.Hour {
		t.Errorf("from %+v", m.From)
	}
}

// A filter that expired after it was saved comes back only with a TTL of its own.
func TestRestoreOfAnExpiredFilter(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "-n", "1k", "a", "x")
	b, err := bloom.TakeBackup(t.Context(), sh.s.Client(), "a")
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	var stream strings.Builder
	if _, err := (noted{Backup: b, note: note{Key: "a", Expires: &past}}).WriteTo(&stream); err != nil {
		t.Fatal(err)
	}
	file := fileOf(t, "saved", stream.String())
	sh.want(exitUsage, "the filter in it expired on "+past.UTC().Format("2006-01-02"), "", "restore", "new", file)
	sh.want(0, "expires in 24h", "", "restore", "--ttl", "24h", "new", file)
}

// A filter that is replaced while it is saved has no one birth number.
func TestSaveOfAFilterThatIsReplaced(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "-n", "1k", "a", "x")
	other := []byte(sh.stored("a"))
	other[10] ^= 1
	sh.s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		if n == 3 { // after the look and the request of the backup
			sh.exec("SET", "a", string(other))
		}
		return upstashtest.Fault{}
	})
	file := filepath.Join(t.TempDir(), "saved")
	sh.want(exitDatabase, "the filter was replaced while it was saved: save it again", "", "save", "a", file)
	if _, err := os.Stat(file); err == nil {
		t.Error("there is a file")
	}
}

// A key that is too long for a note is left out of it.
func TestNoteOfALongKey(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "-n", "1k", "a", "x")
	b, err := bloom.TakeBackup(t.Context(), sh.s.Client(), "a")
	if err != nil {
		t.Fatal(err)
	}
	n, err := noted{Backup: b, note: note{Key: strings.Repeat("k", format.MaxNoteBytes)}}.WriteTo(io.Discard)
	if err != nil || errors.Is(err, format.ErrNoteTooLong) || n > int64(b.Stats().Bytes)+200 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if got := fmt.Sprint(note{}.origin()); got != "the file does not say of which filter it is" {
		t.Errorf("%q", got)
	}
}

// What the commands for many filters take of each is what the runbook and COSTS.md
// say, with the commands that scripts call.
func TestCommandsOfManyFilters(t *testing.T) {
	sh := newShell(t)
	const filters = 50
	for i := range filters {
		sh.want(0, "", "", "add", "-n", "1k", fmt.Sprint("tenant:", i), "x")
	}
	dir := t.TempDir()
	var each, asked [4]int64
	var rows []string
	for i, args := range [][]string{
		{"ls"},
		{"save", "--match", "*", "--yes", dir},
		{"rm", "--match", "*", "--yes"},
		{"restore", "--match", "*", "--yes", dir},
	} {
		sh.s.ResetStats()
		sh.want(0, "", "", args...)
		n := sh.s.Stats()
		each[i] = n.Billed / filters
		asked[i] = n.Requests / filters
		requests := fmt.Sprint(asked[i])
		if 10*n.Requests < 2*filters {
			requests = "less than 0.2"
		}
		name := strings.Join(args[:min(2, len(args))], " ")
		rows = append(rows, fmt.Sprintf("| `upbloom %s` | %s | %d |", name, requests, each[i]))
	}
	nightly := billing.Month{Commands: 20_000 * billing.DaysAMonth * float64(each[1])}
	minutes := func(i int) float64 { return 20_000 * float64(asked[i]) * 0.020 / fleetWorkers / 60 }
	for page, says := range map[string][]string{
		"../../COSTS.md": rows,
		"../../RUNBOOK.md": {
			fmt.Sprintf("%d commands of `ls`, %d of `save`, %d of `rm` and %d of `restore`",
				each[0], each[1], each[2], each[3]),
			fmt.Sprintf("is %.1f million commands a month, $%.2f.", nightly.Commands/1e6,
				nightly.Money(billing.PayAsYouGo()).Commands),
			fmt.Sprintf("it takes %.1f minutes at 20 ms a request, and a `restore` %.1f.", minutes(1), minutes(3)),
		},
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range says {
			if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
				t.Errorf("%s does not say %q", page, want)
			}
		}
	}
}
