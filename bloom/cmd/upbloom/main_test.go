package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestExitStatuses(t *testing.T) {
	sh := newShell(t)
	sh.exec("SET", "text", "just some text that is long enough")
	damaged := fileOf(t, "damaged", format.FrameMagic+"and no more")
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{2, "no command", []string{"nope"}},
		{2, "usage: upbloom info [options] KEY; upbloom info --help explains them\n", []string{"info"}},
		{2, "usage: upbloom check [options] KEY ITEM...", []string{"check", "key"}},
		{2, "usage: upbloom calc [options]; upbloom", []string{"calc", "5"}},
		{2, "--items", []string{"calc"}},
		{2, "upbloom: --rate is 2: it must be", []string{"calc", "-n", "5", "-p", "2"}},
		{2, "upbloom: --rate is 2: it must be", []string{"add", "-n", "5", "-p", "2", "key", "a"}},
		{2, "upbloom: --items is 100,000,000,000: far more", []string{"load", "-n", "100000000000", "key"}},
		{2, "choose another with --addr", []string{"serve", "--addr", strings.TrimPrefix(sh.s.URL, "http://")}},
		{2, syscall.ENOENT.Error(), []string{"load", "--items", "9", "key", damaged + "-not"}},
		{2, "save it again, or use another copy", []string{"restore", "key", damaged}},
		{3, "upbloom: missing: no filter at this key: check the key", []string{"info", "missing"}},
		{3, "or make one with --items N", []string{"load", "missing"}},
		{3, "or make one with --items N", []string{"add", "missing", "a"}},
		{3, "text: the key holds data that is not a filter", []string{"info", "text"}},
		{3, "not a filter", []string{"save", "text", "-"}},
	} {
		sh.want(c.status, c.says, "", c.args...)
	}
	sh.want(0, "new", "", "add", "--items", "50", "small", "a")
	sh.want(3, "use another key, or leave --items out", "", "add", "--items", "5000", "small", "b")
	sh.want(2, "longer than", strings.Repeat("x", maxLine+1)+"\n", "load", "--items", "9", "key")
	if sh.exec("EXISTS", "key") != int64(0) {
		t.Error("a load that failed has made a filter")
	}
	sh.s.Inject(upstashtest.ErrorObject("ERR no"))
	sh.want(4, "ERR no", "", "info", "missing")

	nowhere := *sh
	nowhere.env = []string{"UPSTASH_REDIS_REST_URL=http://127.0.0.1:1", "UPSTASH_REDIS_REST_TOKEN=t"}
	nowhere.want(4, "the command did not run", "", "add", "-n", "9", "key", "a")
	nowhere.env = nil
	nowhere.want(2, "upbloom: set UPSTASH_REDIS_REST_URL", "", "ls")
	nowhere.want(0, "demo:webhooks", "", "--demo", "ls")
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if !slices.Equal(r.Commands, []string{"BITFIELD"}) { // the look before
			return upstashtest.Fault{}
		}
		return upstashtest.InternalError(upstashtest.AfterExec)
	})
	sh.want(5, "may have run", "", "add", "-n", "9", "key", "a")
}

// A seed comes only from the environment. The program can look at a filter
// without it.
func TestSeed(t *testing.T) {
	sh := newShell(t)
	seeded := sh.with("UPBLOOM_SEED=0x123456789abcdef0")
	seeded.want(0, "new", "", "add", "--items", "100", "secret", "a")
	seeded.want(0, "yes", "", "check", "secret", "a")
	sh.want(3, "set UPBLOOM_SEED to the seed", "", "check", "secret", "a")
	sh.want(0, "created", "", "create", "--items", "100", "open")
	seeded.want(3, "the filter has no seed: unset UPBLOOM_SEED", "", "check", "open", "a")
	seeded.want(3, "the filter has no seed: unset UPBLOOM_SEED", "a", "load", "open")
	sh.want(3, "set UPBLOOM_SEED to the seed", "", "rm", "--yes", "secret") // the seed proves which filter is meant
	if out := sh.want(0, "seed             secret", "", "info", "secret"); strings.Contains(out, "123456789") {
		t.Errorf("the seed is shown:\n%s", out)
	}
	for _, same := range [][2]string{{"010", "10"}, {"0x0a", "10"}, {"0X0A", "0xa"}} {
		seeded.env[len(seeded.env)-1] = "UPBLOOM_SEED=" + same[0]
		seeded.want(0, "", "", "create", "--items", "100", same[0])
		seeded.env[len(seeded.env)-1] = "UPBLOOM_SEED=" + same[1]
		seeded.want(0, "new", "", "add", same[0], "a")
	}
	seeded.env[len(seeded.env)-1] = "UPBLOOM_SEED=secret-word"
	out, errOut, status := seeded.run("", "check", "secret", "a")
	if status != 2 || strings.Contains(out+errOut, "secret-word") {
		t.Errorf("a bad seed: %d, %s%s", status, out, errOut)
	}
	seeded.want(2, "UPBLOOM_SEED must be a number", "", "ls") // and no filter without numbers
}

// If the output cannot be written, the program fails.
func TestOutputThatFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	defer full.Close()
	sh := newShell(t)
	sh.want(0, "", "", "create", "--cuckoo", "--items", "10", "cuckoo")
	lines := fileOf(t, "lines", "a\nb\n")
	const done = "the command was carried out, but its result could not be printed: "
	for _, c := range []struct {
		status int
		line   string
		text   string
	}{
		{2, "ls", "upbloom: write "},
		{2, "check cuckoo a", "cuckoo: write "},
		{5, "add cuckoo a", "cuckoo: " + done + "write "},
		{5, "--json add cuckoo a", done},
		{5, "remove cuckoo a", "cuckoo: " + done},
		{5, "create --items 10 key", "key: " + done + "write /dev/stdout: no space left on device\n"},
		{5, "load key " + lines, "key: " + done},
		{5, "replace key " + lines, "key: " + done},
		{5, "ttl key 1h", "key: " + done},
		{2, "ttl key", "key: write "},
		{2, "save key -", "key: write "},
		{5, "rm --yes key", "key: " + done},
		{5, "doctor", done},
	} {
		cmd, errOut := sh.process(strings.Fields(c.line)...)
		cmd.Stdout = full
		err := cmd.Run()
		if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(errOut.String(), c.text) {
			t.Errorf("%s: %v with %q, want status %d with %q", c.line, err, errOut.String(), c.status, c.text)
		}
	}
	// The program writes to a device without replacing it.
	sh.want(0, "", "", "add", "--items", "10", "key", "a")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/dev/full", link); err != nil {
		t.Fatal(err)
	}
	sh.want(2, "no space left", "", "save", "key", link)
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode().IsRegular() {
		t.Error("the device is a file now")
	}
}

// After a mistake in a flag, the program lists the flags, on standard error
// only.
func TestMistypedFlags(t *testing.T) {
	sh := newShell(t)
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--nope"}, []string{"not defined: -nope\n", "The flags of upbloom are --demo, --json,"}},
		{[]string{"load", "--itms", "5", "key"}, []string{
			"not defined: -itms\n", "flags of upbloom load are --items, --rate, --ttl,", "--demo",
			"upbloom load --help", "behind --", "--quiet; upbloom",
		}},
		{[]string{"calc", "-n", "many"}, []string{
			`invalid value "many" for flag -n: write a whole number`, "--lookups",
		}},
		{[]string{"ad", "key", "a"}, []string{`no command "ad"`, "ls, info, check, add,"}},
	} {
		out, errOut, status := sh.run("", c.args...)
		if status != exitUsage || out != "" {
			t.Errorf("%q: status %d, want %d, and prints %q", c.args, status, exitUsage, out)
		}
		for _, text := range c.says {
			if !strings.Contains(errOut, text) {
				t.Errorf("%q does not say %q:\n%s", c.args, text, errOut)
			}
		}
	}
}

// load reports how much was new, or that this is unknown.
func TestLoadTellsNewBits(t *testing.T) {
	sh := newShell(t)
	var m moved
	decode(t, sh.want(0, "", "a\n", "--json", "load", "-n", "1000", "key"), &m)
	if m.NewBits == nil || *m.NewBits != 4 || !m.Created {
		t.Errorf("%+v, want 4 new bits of a new filter", m)
	}
	m = moved{}
	decode(t, sh.want(0, "", "a\n", "--json", "load", "key"), &m)
	if m.NewBits == nil || *m.NewBits != 0 || m.Created || m.Requests != 2 || m.Commands != 12 {
		t.Errorf("%+v, want no new bits, in 2 requests", m)
	}
	sh.strikes("EVAL", upstashtest.Drop(upstashtest.AfterExec))
	sh.want(5, "", "b\n", "load", "key")
}
