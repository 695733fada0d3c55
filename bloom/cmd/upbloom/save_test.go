package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A nightly save writes over the file of the night before, whatever was replaced
// since. One of a filter that was lost and made anew does not, nor another one's.
func TestSaveKeepsABackup(t *testing.T) {
	sh := newShell(t)
	file := filepath.Join(t.TempDir(), "saved")
	content := func() string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	refused := func(key, says string) {
		t.Helper()
		before := content()
		sh.want(2, file+says+" left as it is: name another file, or use --force\n", "", "save", key, file)
		if content() != before {
			t.Errorf("save %s has changed the file", key)
		}
		if all, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || len(all) > 0 {
			t.Errorf("left beside it: %v, %v", all, err)
		}
	}
	sh.want(0, "new", "", "add", "-n", "1k", "key", "a", "b")
	sh.want(0, "new", numbered("c", 4), "add", "-n", "1k", "alike", "-")
	sh.want(0, "new", "", "add", "-n", "2k", "larger", "a", "b")
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "new", "", "add", "key", "d")
	sh.want(0, "saved", "", "save", "key", file)
	refused("larger", " holds another filter, and was")
	sh.want(0, "replaced", "e\nf\n", "replace", "-y", "key")
	sh.want(0, "saved", "", "save", "key", file)
	refused("alike", " holds another filter, key at "+sh.host()+", saved "+time.Now().UTC().Format("2006-01-02 15:04 MST")+", and was")
	sh.want(0, "replaced", numbered("c", 4), "replace", "-y", "key")
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "removed", "", "rm", "-y", "key")
	sh.want(0, "new", "", "add", "-n", "1k", "key", "a")
	const lost = " has 16 set bits, and the filter has 4, fewer than half: was it lost and made anew? The file was"
	refused("key", lost)
	sh.want(3, "key: the key holds a filter, about 1 item, less than 1 in a billion false positives, no expiry, and"+
		" nothing was changed: --replace puts "+file+" in its place, --merge adds that to it\n", "", "restore", "key", file)
	sh.want(0, "restored 16 new bits, ", "", "restore", "--merge", "key", file)
	sh.want(0, "yes   a\nyes   c-3", "", "check", "key", "a", "c-3")
	sh.want(0, "saved", "", "save", "key", file)
	whole, _, _ := strings.Cut(content(), format.TrailerMagic) // as a program of yours saves it
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "the file does not say of which filter it is", "", "restore", "copy", file)
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "saved", "", "save", "--force", "larger", file)

	for _, damaged := range []string{"", content()[:20], content()[:200]} {
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		sh.want(0, "saved", "", "save", "larger", file)
	}
	if err := os.WriteFile(file, []byte("notes of mine, longer than how a stream begins"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("larger", " is no saved filter, and was")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "saved", "", "save", "alike", file)
}

// Yesterday's state comes back in one step, with the TTL of now. A file with far
// less, or of another size, needs --yes.
func TestRollBack(t *testing.T) {
	sh := newShell(t)
	file := filepath.Join(t.TempDir(), "saved")
	sh.want(0, "", numbered("a", 500), "load", "-n", "1k", "key")
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "", numbered("b", 400), "replace", "key")
	sh.want(0, "", "", "ttl", "key", "3h")
	refused := func(says string, args ...string) {
		t.Helper()
		before := sh.everything()
		sh.want(exitFilter, says, "", args...)
		if sh.everything() != before {
			t.Errorf("%q has changed the filter", args)
		}
	}
	refused("nothing was changed: --replace puts "+file+" in its place, --merge adds that to it", "restore", "key", file)
	gone := int64(0)
	sh.s.InjectFunc(func(_ int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		if sh.exec("EXISTS", "key") != int64(1) {
			gone++
		}
		return upstashtest.Fault{}
	})
	out := sh.want(0, "restored 1.3 KiB, ", "", "restore", "--replace", "key", file)
	if !strings.Contains(out, "\nbefore  about 399 items, ") || !strings.Contains(out, "\nafter   about 50") ||
		!strings.HasSuffix(out, "expires in 3h\n") || gone > 0 {
		t.Errorf("%q, and the filter was missing %d times", out, gone)
	}
	sh.want(1, "yes   a-1\nno    b-1\nno    b-2\n", "", "check", "key", "a-1", "b-1", "b-2")

	sh.want(0, "", numbered("b", 2_000), "replace", "--yes", "-n", "10k", "key")
	refused("another filter is at this key, 107,484 bits", "restore", "--merge", "key", file)
	sh.unchanged("key", "--yes replaces it all the same. Programs that use another size get errors", "", "restore",
		"--replace", "key", file)
	sh.want(0, "restored", "", "restore", "--replace", "--yes", "key", file)
	sh.want(0, "items            about 50", "", "info", "key")
	sh.want(0, "", numbered("c", 500), "add", "key", "-")
	sh.unchanged("key", "and it is for 998\nNothing was changed. That is if no item is in both: --force merges", "", "restore", "--merge", "key", file)
	var m moved
	decode(t, sh.want(0, "", "", "--json", "restore", "--merge", "--force", "key", file), &m)
	if m.Before == nil || m.After == nil || m.NewBits == nil || *m.NewBits != 0 || m.Before.SetBits != m.After.SetBits {
		t.Errorf("%+v", m)
	}
}

// save follows a link, keeps the mode of the file, and puts no file in the place of
// a link to a file that is not there, as on a disk that is not mounted.
func TestSaveFollowsALink(t *testing.T) {
	sh := newShell(t)
	sh.create("key")
	t.Chdir(t.TempDir())
	sh.want(0, "saved", "", "save", "key", "file")
	for link, to := range map[string]string{"link": "file", "lost": filepath.Join("nowhere", "file")} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip("no links here:", err)
		}
	}
	if err := os.Chmod("file", 0o640); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "saved", "", "save", "key", "link")
	if info, err := os.Stat("file"); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v, %v, want its mode as before", info.Mode(), err)
	}
	for _, force := range []string{"--force=false", "--force"} {
		sh.want(2, "lost is a link to a file that is not there: is a disk not mounted?", "", "save", force, "key", "lost")
	}
	for _, link := range []string{"link", "lost"} {
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v, %v", link, info, err)
		}
	}
}

// noSpace is a filter that cannot be written: the disk is full.
type noSpace struct{}

func (noSpace) WriteTo(io.Writer) (int64, error) {
	full := &fs.PathError{Op: "write", Path: ".upbloom-1", Err: syscall.ENOSPC}
	return 0, fmt.Errorf("write of a filter: %w", full)
}

// On a full disk the file of the night before stays, and the error says so.
func TestSaveToAFullDisk(t *testing.T) {
	name := fileOf(t, "file", "before")
	_, err := saveTo(t.Context(), name, true, func() (io.WriterTo, error) { return noSpace{}, nil })
	if want := name + " was not written, and is as it was: "; err == nil || !strings.HasPrefix(err.Error(), want) ||
		!errors.Is(err, syscall.ENOSPC) || exitStatus(err) != exitUsage {
		t.Errorf("%v, want %q", err, want)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "before" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(name), ".upbloom-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// A filter of each kind comes back with its items, to a free key alone, and its
// file is not overwritten by another one.
func TestSaveOfEveryKind(t *testing.T) {
	for _, k := range otherKinds {
		t.Run(k.kind, func(t *testing.T) {
			sh := newShell(t)
			file := filepath.Join(t.TempDir(), "saved")
			at, noun := "key", k.noun
			create := append(append([]string{"create", "--items", "3k"}, k.flags...), "key")
			if k.kind == "sharded" {
				at, noun = "key:0", "shard of a sharded filter"
				create = []string{"create", "--items", "1k", "--shards", "1", "key"}
			}
			sh.want(0, "created", "", create...)
			sh.want(0, "", numbered("a", 900), "add", "key", "-")
			if k.kind == "sharded" {
				sh.want(3, "key: the key holds a sharded filter: save each shard to a file of its own, from key:0 to key:0, as save --match"+
					" PATTERN DIRECTORY does\n", "",
					"save", "key", file)
			}
			before := sh.everything()
			sh.want(0, "saved a "+noun+", ", "", "save", at, file)
			sh.want(0, "saved a "+noun+", ", "", "save", at, file)
			if sh.everything() != before {
				t.Error("save has changed the database")
			}
			for _, args := range [][]string{
				{"restore", at, file}, {"restore", "--merge", at, file}, {"restore", "--replace", at, file},
			} {
				sh.want(3, at+": the key holds a "+noun+", and a "+noun+" is restored only to a key that holds nothing; "+
					"nothing was changed: use another key, or remove what is there with upbloom rm\n", "", args...)
			}
			if !k.expires {
				sh.want(2, "--ttl has no effect on a "+noun, "", "restore", "--ttl", "1h", at, file)
			}
			if sh.everything() != before {
				t.Error("a refused restore has changed the database")
			}
			sh.want(0, "removed", "", "rm", "--yes", "key")
			out := sh.want(0, "restored a new filter, ", "", "restore", at, file)
			if !strings.Contains(out, "\nafter   "+noun) || strings.Contains(out, "forgets by the time of day") != (k.kind == "window") {
				t.Errorf("restore prints %q", out)
			}
			sh.want(0, "", numbered("a", 900), "check", "key", "-")
			sh.want(0, "no expiry", "", "ttl", "key")
			sh.want(0, "saved", "", "save", at, file)
			if k.kind == "window" { // the same one has fewer bits when it has forgotten
				sh.s.FastForward(30 * 24 * time.Hour)
				sh.want(0, "new   later", "", "add", "key", "later")
				sh.want(0, "saved", "", "save", at, file)
			}
			sh.want(0, "removed", "", "rm", "--yes", "key")
			sh.want(0, "created", "", create...)
			sh.want(2, " set bits, and the filter has 0, fewer than half: was it lost and made anew?", "", "save", at, file)
			sh.want(0, "saved", "", "save", "--force", at, file)
			sh.want(0, "", "", "add", "--items", "1k", "plain", "x")
			sh.want(2, file+" holds another filter", "", "save", "plain", file)
			sh.want(3, "the key holds a plain filter, and a "+noun+" is restored only", "", "restore", "plain", file)
			sh.exec("RPUSH", "list:0", "a")
			sh.want(3, "list, a hash", "", "restore", "list:0", file)
			if k.expires {
				sh.want(0, "expires in 2d", "", "restore", "--ttl", "2d", "other", file)
			}
			if k.kind == "sharded" {
				sh.want(2, "the backup is of shard 0, and its key must end in :0", "", "restore", "other", file)
			}
			var m moved
			decode(t, sh.want(0, "", "", "--json", "restore", "json:0", file), &m)
			if !m.Created || m.After == nil || m.After.Kind == "" || m.Commands == 0 || m.Before != nil || (m.Note != "") != (k.kind == "window") {
				t.Errorf("%+v", m)
			}
		})
	}
}

// A filter with a seed is saved without it. Whoever asks the restored one needs
// it.
func TestSaveOfASeededWindow(t *testing.T) {
	sh := newShell(t)
	seeded := sh.with("UPBLOOM_SEED=7")
	file := filepath.Join(t.TempDir(), "saved")
	seeded.want(0, "", "", "create", "--items", "1k", "--window", "1h", "key")
	seeded.want(0, "", "", "add", "key", "a")
	sh.want(0, "saved a window", "", "save", "key", file)
	sh.want(0, "after   a window, not read: the filter has another seed", "", "restore", "copy", file)
	seeded.want(0, "yes", "", "check", "copy", "a")
}

// A window that is restored says how much of it still counts.
func TestRestoreOfAnOldWindow(t *testing.T) {
	sh := newShell(t)
	file := filepath.Join(t.TempDir(), "saved")
	sh.create("key", "--window", "1h", "--panes", "2")
	sh.want(0, "", "", "add", "key", "a", "b", "c")
	sh.want(0, "saved a window", "", "save", "key", file)
	sh.want(0, "its panes hold about 3 items, and go on to age", "", "restore", "new", file)
	sh.s.FastForward(45 * time.Minute)
	sh.want(0, "of its 4 panes is forgotten by now, and the others hold about 3 items", "", "restore", "old", file)
	sh.want(0, "yes", "", "check", "old", "a")
	sh.s.FastForward(2 * time.Hour)
	sh.want(0, "all that was saved is forgotten by now", "", "restore", "gone", file)
	sh.want(1, "no ", "", "check", "gone", "a")
	sh.want(0, "new", "", "add", "gone", "a")
}

// The error says what the token lacks: to copy, which a plain filter does not need, or
// to read by scripts.
func TestSaveWithoutScripts(t *testing.T) {
	sh := newShell(t)
	file := filepath.Join(t.TempDir(), "saved")
	sh.want(0, "", "", "add", "-n", "1k", "small", "a")
	sh.want(0, "", "", "create", "-n", "2M", "large")
	sh.want(0, "", "", "create", "-n", "1M", "--cuckoo", "cuckoo")
	const reads = ": the token may not run EVAL_RO, which a save needs of a filter that is larger than 1 MiB, and of any if the" +
		" token may not run EVAL: use a full token\n"
	for _, c := range []struct{ denied, small, large, cuckoo string }{
		{"EVAL", "", "", "cuckoo: the filter is larger than 1 MiB, and the database has to copy it, which the token may not do"},
		{"EVAL_RO", "", "large" + reads, "cuckoo" + reads},
		{"EVAL EVAL_RO", "small" + reads, "large" + reads, "cuckoo" + reads},
		{"", "", "", ""},
	} {
		sh.s.DenyFunc(func(command []string) bool { return slices.Contains(strings.Fields(c.denied), command[0]) })
		for key, says := range map[string]string{"small": c.small, "large": c.large, "cuckoo": c.cuckoo} {
			status := exitDatabase
			if says == "" {
				status, says = 0, "saved"
			}
			sh.want(status, says, "", "save", "--force", key, file)
			sh.want(status, says, "", "save", "--yes", "--match", key, file+"-all")
		}
	}
	sh.wantKeys("cuckoo large small") // and no copy
}

// Whenever a save or a restore of a large filter is interrupted, what stays behind
// expires, and the restored filter is complete or not there.
func TestInterruptOfSaveAndRestore(t *testing.T) {
	sh := newShell(t)
	file := filepath.Join(t.TempDir(), "saved")
	sh.want(0, "", "", "create", "--items", "1M", "--cuckoo", "key")
	sh.want(0, "", "", "add", "key", "a")
	sh.want(0, "saved", "", "save", "key", file)
	for _, args := range [][]string{{"save", "key", file + "2"}, {"restore", "copy", file}} {
		for n := int64(1); ; n++ {
			for _, when := range []upstashtest.When{upstashtest.BeforeExec, upstashtest.AfterExec} {
				sh.s.ResetStats()
				before := sh.s.Stats().Requests
				errOut, at, status := sh.interrupted(before+n, when, "", args...)
				if at == "" { // it ended before
					_ = os.Remove(file + "2")
					n = -1
					break
				}
				there := sh.exec("EXISTS", "copy")
				written, err := filepath.Glob(file + "2")
				if err != nil {
					t.Fatal(err)
				}
				// What is done is done: a later request only removes, or reads the result.
				done := there == int64(1) || len(written) > 0
				ended := status == exitInterrupted && !done || status == exitUnknown && args[0] == "restore"
				if done && status != 0 && status != exitUnknown || !done && !ended ||
					status != 0 && !strings.Contains(errOut, "interrupted: ") {
					t.Errorf("%s interrupted at %s, %v: status %d, done %v, %s", args[0], at, when, status, done, errOut)
				}
				_ = os.Remove(file + "2")
				if _, lasting := sh.keys(); lasting != "key" && lasting != "copy key" {
					t.Errorf("%s interrupted at %s, %v: %s stay for good", args[0], at, when, lasting)
				}
				if there == int64(1) {
					sh.want(0, "yes", "", "check", "copy", "a")
				}
				sh.exec("DEL", "copy")
			}
			if n < 0 {
				break
			}
		}
	}
}
