package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// playCold compares the time from the start of a process to its end after the
// first answer, and the sizes of the programs.
func playCold(a *arena, o options, r *report) error {
	dir, err := os.MkdirTemp("", "compare-cold")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	env := append(os.Environ(), "UPSTASH_REDIS_REST_URL="+a.url, "UPSTASH_REDIS_REST_TOKEN="+a.token)
	c := &contest{name: coldContest, callers: 1}
	var sizes strings.Builder
	for _, p := range []struct{ name, folder string }{{"upbloom", "upbloom"}, {plainName, "plain"}} {
		exe := filepath.Join(dir, p.folder)
		build := exec.CommandContext(a.ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe,
			coldPackages+p.folder)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", p.folder, err, out)
		}
		info, err := os.Stat(exe)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sizes, "%s is a program of %.1f MB. ", p.name, float64(info.Size())/1e6)
		c.contestants = append(c.contestants, starting(a.ctx, p.name, env, "", exe))
	}
	if a.nodeFolder != "" {
		c.contestants = append(c.contestants,
			starting(a.ctx, nodeName, env, a.nodeFolder, "node", "cold.mjs"))
	}
	if err := r.play(a, o, []*contest{c}); err != nil {
		return err
	}
	for _, one := range c.contestants {
		r.printf("%s: %.3g ms from start to end. ", one.name, 1000/one.perSecond().median)
	}
	r.printf("%sBuilt with -ldflags='-s -w'.\n\n", sizes.String())
	return nil
}

const coldContest = "cold start: processes a second, one after the other"

const coldPackages = "github.com/upbloom/upbloom/internal/benchmarks/cold/"

// starting runs the program once a call. Its answer is "true" the first time
// and "false" from then on. Node's answer is a list.
func starting(ctx context.Context, name string, env []string, dir, exe string, args ...string) *contestant {
	one := &contestant{name: name, items: 1, foreign: true}
	one.do = func(n uint64) error {
		cmd := exec.CommandContext(ctx, exe, args...)
		cmd.Env, cmd.Dir, cmd.WaitDelay = env, dir, time.Second
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		want := "false"
		if n == 1 {
			want = "true"
		}
		if got := strings.Trim(string(out), "[] \n"); got != want {
			return fmt.Errorf("call %d answered %q, want %q", n, got, want)
		}
		return nil
	}
	return one
}

const wasmPackage = "github.com/upbloom/upbloom/internal/benchmarks/cmd/compare/wasm"

// playWasm compares the client's own time a call in WebAssembly with that of
// the same program on the machine itself. There is no network.
func playWasm(a *arena, o options, r *report) error {
	dir, err := os.MkdirTemp("", "compare-wasm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs := []struct {
		name, goos string
		run        func(exe string) (func(env []string, answer []byte) (string, error), error)
	}{
		{"upbloom, native", "", a.natively},
		{"upbloom, wasip1 in wazero", "wasip1", a.inWazero},
		{"upbloom, js in Node", "js", a.inNode},
	}
	if a.nodeFolder == "" {
		programs = programs[:2]
	}
	var contests []*contest
	calls := []struct {
		name  string
		size  int
		write bool
	}{{"Add", 1, true}, {"ExistsAll(1000)", 1000, false}}
	for _, call := range calls {
		contests = append(contests, &contest{name: call.name + ", no network", callers: 1})
	}
	for _, p := range programs {
		exe := filepath.Join(dir, "program"+p.goos)
		build := exec.CommandContext(a.ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe, wasmPackage)
		if build.Env = os.Environ(); p.goos != "" {
			build.Env = append(build.Env, "GOOS="+p.goos, "GOARCH=wasm")
		}
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", p.name, err, out)
		}
		run, err := p.run(exe)
		if err != nil {
			return err
		}
		for i, c := range contests {
			one, err := a.measuringItself(run, calls[i].size, calls[i].write)
			if err != nil {
				return err
			}
			one.name = p.name
			c.contestants = append(c.contestants, one)
		}
	}
	return r.play(a, o, contests)
}

// measuringItself returns a contestant that reports how many calls it made. Its
// answers are the server's second ones.
func (a *arena) measuringItself(run func(env []string, answer []byte) (string, error), size int, write bool) (*contestant, error) {
	t, err := a.tapped(a.url, a.key("wasm"), usual, size, write)
	if err != nil {
		return nil, err
	}
	env := []string{"OP=" + operation(write), fmt.Sprintf("ITEMS=%d", size)}
	return &contestant{items: size, foreign: true, run: func(_ int, d time.Duration) (e effort, err error) {
		text, err := run(append(env, fmt.Sprintf("MILLIS=%d", max(1, d.Milliseconds()))), t.reply)
		if err == nil {
			_, err = fmt.Sscan(text, &e.calls, (*int64)(&e.took))
		}
		return e, err
	}}, nil
}

func (a *arena) natively(exe string) (func([]string, []byte) (string, error), error) {
	return func(env []string, answer []byte) (string, error) { return output(a.ctx, env, answer, exe) }, nil
}

func (a *arena) inNode(exe string) (func([]string, []byte) (string, error), error) {
	root, err := exec.CommandContext(a.ctx, "go", "env", "GOROOT").Output()
	glue := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js")
	return func(env []string, answer []byte) (string, error) {
		return output(a.ctx, env, answer, "node", glue, exe)
	}, err
}

func output(ctx context.Context, env []string, answer []byte, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stderr = append(env, "PATH="+os.Getenv("PATH")), os.Stderr
	cmd.Stdin = bytes.NewReader(answer)
	out, err := cmd.Output()
	return string(out), err
}

// inWazero compiles the program once, and runs it in this process.
func (a *arena) inWazero(exe string) (func([]string, []byte) (string, error), error) {
	wasm, err := os.ReadFile(exe)
	if err != nil {
		return nil, err
	}
	runtime := wazero.NewRuntime(a.ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(a.ctx, runtime); err != nil {
		return nil, err
	}
	program, err := runtime.CompileModule(a.ctx, wasm)
	return func(env []string, answer []byte) (string, error) {
		var out bytes.Buffer
		config := wazero.NewModuleConfig().WithName("").WithStdout(&out).WithStderr(os.Stderr).
			WithStdin(bytes.NewReader(answer)).
			WithSysWalltime().WithSysNanotime().WithArgs("program")
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			config = config.WithEnv(name, value)
		}
		m, err := runtime.InstantiateModule(a.ctx, program, config)
		if err != nil {
			return "", err
		}
		return out.String(), m.Close(a.ctx)
	}, err
}
