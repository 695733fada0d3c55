package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// tool is the program, built for the tests.
var tool string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "upbloom-test")
	if err != nil {
		panic(err)
	}
	tool = filepath.Join(dir, "upbloom")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// shell runs the program against one database.
type shell struct {
	t   *testing.T
	env []string
	s   *upstashtest.Server
}

func newShell(t *testing.T) *shell {
	s := upstashtest.NewServer(t)
	return &shell{t, []string{
		"UPSTASH_REDIS_REST_URL=" + s.URL, "UPSTASH_REDIS_REST_TOKEN=" + s.Token, "PATH=" + os.Getenv("PATH"),
	}, s}
}

func (sh *shell) command(args ...string) *exec.Cmd {
	cmd := exec.Command(tool, args...)
	cmd.Env = sh.env
	return cmd
}

// run returns what the program prints and its exit status. The token is in none
// of it.
func (sh *shell) run(stdin string, args ...string) (out, errOut string, status int) {
	sh.t.Helper()
	cmd := sh.command(args...)
	var o, e bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		sh.t.Fatal(err)
	}
	if strings.Contains(o.String()+e.String(), sh.s.Token) {
		sh.t.Errorf("%q prints the token", args)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// want runs the program, and wants a status and a text in what it prints.
func (sh *shell) want(status int, says, stdin string, args ...string) string {
	sh.t.Helper()
	out, errOut, got := sh.run(stdin, args...)
	if got != status || !strings.Contains(out+errOut, says) {
		sh.t.Errorf("upbloom %s: status %d, want %d and %q\n%s%s",
			strings.Join(args, " "), got, status, says, out, errOut)
	}
	return out
}

func TestEveryCommandInTurn(t *testing.T) {
	sh := newShell(t)
	dir := t.TempDir()
	items := filepath.Join(dir, "items.txt")
	text := strings.Repeat("x", 100) + "\r\nalpha\nbeta\n\ngamma\n" // CRLF, and an empty line
	if err := os.WriteFile(items, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(dir, "seen.upbloom")

	sh.want(0, "no filters", "", "ls")
	sh.want(3, "--items", "", "add", "seen", "a")
	if out := sh.want(0, "", "", "add", "--items", "1000", "seen", "a", "b", "a"); out != "new   a\nnew   b\nseen  a\n" {
		t.Errorf("add prints %q", out)
	}
	sh.want(0, "loaded 4 items", "", "load", "seen", items)
	sh.want(0, "loaded 2 items", "delta\nepsilon\n", "load", "seen")
	sh.want(0, "yes   beta", "", "check", "seen", "alpha", "beta", strings.Repeat("x", 100))
	sh.want(1, "no    zeta", "", "check", "seen", "alpha", "zeta")
	sh.want(1, "no    zeta", "delta\nzeta\n", "check", "seen", "-")
	sh.want(0, "about 8 of 1,001", "", "info", "seen")
	sh.want(0, "seen  ", "", "ls")
	sh.want(0, "no filters", "", "ls", "other:*")
	sh.want(0, "saved", "", "save", "seen", saved)
	sh.want(0, "restored", "", "restore", "copy", saved)
	sh.want(0, "", "", "check", "copy", "alpha", "epsilon")
	sh.want(0, "replaced by 1 items", "only\n", "replace", "seen")
	sh.want(1, "no    alpha", "", "check", "seen", "only", "alpha")
	sh.want(0, "1 in 100 at 1,000,000 items", "", "calc", "--items", "1000000")
	sh.want(0, "larger plans", "", "calc", "-n", "100000000")
}

func TestExitStatuses(t *testing.T) {
	sh := newShell(t)
	if _, err := sh.s.Exec("SET", "text", "just some text that is long enough"); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(damaged, []byte("not a filter"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{2, "no command", []string{"nope"}},
		{2, "flag provided but not defined", []string{"--nope"}},
		{2, "usage: upbloom info KEY", []string{"info"}},
		{2, "usage: upbloom check", []string{"check", "key"}},
		{2, "--items", []string{"calc"}},
		{2, "FPRate", []string{"calc", "-n", "5", "-p", "2"}},
		{2, "no such file", []string{"load", "--items", "9", "key", "/does/not/exist"}},
		{2, "", []string{"restore", "key", damaged}},
		{3, "no filter at this key", []string{"info", "missing"}},
		{3, "not a filter", []string{"info", "text"}},
		{3, "not a filter", []string{"save", "text", "-"}},
	} {
		sh.want(c.status, c.says, "", c.args...)
	}
	sh.want(2, "longer than", strings.Repeat("x", maxLine+1)+"\n", "load", "--items", "9", "key")
	if v, err := sh.s.Exec("EXISTS", "key"); err != nil || v != int64(0) {
		t.Error("a load that failed has made a filter")
	}
	sh.s.Inject(upstashtest.ErrorObject("ERR no"))
	sh.want(4, "ERR no", "", "info", "missing")

	nowhere := *sh
	nowhere.env = []string{"UPSTASH_REDIS_REST_URL=http://127.0.0.1:1", "UPSTASH_REDIS_REST_TOKEN=t"}
	nowhere.want(4, "the command did not run", "", "add", "-n", "9", "key", "a")
	nowhere.env = nil
	nowhere.want(2, "UPSTASH_REDIS_REST_URL", "", "ls")
	nowhere.want(0, "demo:webhooks", "", "--demo", "ls")
	sh.s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.InternalError(upstashtest.AfterExec)
	})
	sh.want(5, "may have run", "", "add", "-n", "9", "key", "a")
}

// A seed is asked for in the environment only, and a filter is looked at
// without it.
func TestSeed(t *testing.T) {
	sh := newShell(t)
	seeded := *sh
	seeded.env = append(seeded.env, "UPBLOOM_SEED=0x123456789abcdef0")
	seeded.want(0, "new", "", "add", "--items", "100", "secret", "a")
	seeded.want(0, "yes", "", "check", "secret", "a")
	sh.want(3, "seed", "", "check", "secret", "a")
	if out := sh.want(0, "seed             set", "", "info", "secret"); strings.Contains(out, "123456789") {
		t.Errorf("the seed is shown:\n%s", out)
	}
	seeded.env[len(seeded.env)-1] = "UPBLOOM_SEED=secret-word"
	out, errOut, status := seeded.run("", "check", "secret", "a")
	if status != 2 || strings.Contains(out+errOut, "secret-word") {
		t.Errorf("a bad seed: %d, %s%s", status, out, errOut)
	}
}

func TestJSON(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "1000", "--ttl", "1h", "seen", "a")
	var list []state
	decode(t, sh.want(0, "", "", "--json", "ls"), &list)
	if len(list) != 1 || list[0].Key != "seen" || list[0].Items != 1 || list[0].TTL < 3500 || list[0].Scheme != "blocked" {
		t.Errorf("ls: %+v", list)
	}
	var one state
	decode(t, sh.want(0, "", "", "--json", "info", "seen"), &one)
	if one.Bits != 10759 || one.Hashes != 4 || one.OverCapacity {
		t.Errorf("info: %+v", one)
	}
	dec := json.NewDecoder(strings.NewReader(sh.want(1, "", "", "--json", "check", "seen", "a", "b")))
	for _, want := range []bool{true, false} {
		var a answer
		if err := dec.Decode(&a); err != nil || a.Found == nil || *a.Found != want {
			t.Errorf("check: %+v, %v", a, err)
		}
	}
	var m moved
	decode(t, sh.want(0, "", "b\nc\n", "--json", "load", "seen"), &m)
	if m.Items != 2 || m.Requests != 3 || m.Created {
		t.Errorf("load: %+v", m)
	}
	var p plan
	decode(t, sh.want(0, "", "", "--json", "calc", "-n", "1000"), &p)
	if p.Bits != 10759 || p.RateFull > 0.01 || p.RateTwice < 0.07 {
		t.Errorf("calc: %+v", p)
	}
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

// ls finds a filter among thousands of other keys, and shows odd keys in one
// piece.
func TestListAmongOthers(t *testing.T) {
	sh := newShell(t)
	c := sh.s.Client()
	for i := range 3000 {
		if _, err := sh.s.Exec("SET", "other:"+strconv.Itoa(i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sh.s.Exec("LPUSH", "a-list", "v"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"one", "two\nlines\x1b[31m"} {
		f, err := bloom.New(c, key, bloom.Config{Capacity: 100, FPRate: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Add(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	out := sh.want(0, "", "", "ls")
	if strings.Count(out, "\n") != 3 || strings.Contains(out, "\x1b") {
		t.Errorf("ls prints %q", out)
	}
}

// What cannot be printed is an error.
func TestOutputThatFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	defer full.Close()
	cmd := newShell(t).command("--demo", "ls")
	cmd.Stdout = full
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("the status is %d, want 2", cmd.ProcessState.ExitCode())
	}
	// A device is written to, and stays one.
	sh := newShell(t)
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

// An interrupt in the midst of a load leaves nothing half done.
func TestInterruptedLoad(t *testing.T) {
	sh := newShell(t)
	cmd := sh.command("load", "--items", "1000000", "key")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: when it is written, the program is reading.
	if _, err := io.WriteString(in, strings.Repeat("item\n", 200_000)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(in, strings.Repeat("more\n", 10_000)) // it may have ended
	_ = in.Close()
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted {
		t.Errorf("the status is %d, want %d", got, exitInterrupted)
	}
	if v, err := sh.s.Exec("DBSIZE"); err != nil || v != int64(0) {
		t.Errorf("%v keys are left", v)
	}
}

// serve prints what a program needs, and ends with an interrupt.
func TestServe(t *testing.T) {
	cmd := newShell(t).command("serve", "--addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 0, 400)
	for strings.Count(string(text), "\n") < 2 {
		chunk := make([]byte, 200)
		n, err := out.Read(chunk)
		if text = append(text, chunk[:n]...); err != nil {
			t.Fatalf("%q, %v", text, err)
		}
	}
	client := exec.Command(tool, "ls")
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		client.Env = append(client.Env, strings.ReplaceAll(strings.TrimPrefix(line, "export "), "'", ""))
	}
	if got, err := client.CombinedOutput(); err != nil || string(got) != "no filters\n" {
		t.Errorf("a client of it prints %q, %v", got, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}
