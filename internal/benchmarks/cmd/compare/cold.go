package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
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
