package main

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
)

//go:embed node/*.mjs
var nodePrograms embed.FS

// peerPackage has a folder js with the filter for Node and the names of its
// packages.
const peerPackage = "github.com/upbloom/upbloom/internal/testkit/peertest"

// installNode makes a folder with the programs and their packages, which goes with
// ctx.
func installNode(ctx context.Context) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "compare-node"); err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = os.RemoveAll(dir) })
	folder, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", peerPackage).Output()
	if err != nil {
		return "", fmt.Errorf("run this in internal/benchmarks: %w", err)
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(strings.TrimSpace(string(folder)), "js"))); err != nil {
		return "", err
	}
	for _, name := range []string{"bench.mjs", "cold.mjs"} {
		text, err := nodePrograms.ReadFile("node/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--omit=peer", "--ignore-scripts", "--no-audit", "--no-fund",
		"--prefer-offline")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return dir, nil
}

// nodeSet is a process of Node with the article's filter over @upstash/redis.
type nodeSet struct {
	in  io.Writer
	out *bufio.Reader
}

// order is a line the process reads, and answer a line it writes.
type order struct {
	Op      string   `json:"op"`
	Items   []string `json:"items,omitempty"`
	Callers int      `json:"callers,omitempty"`
	Millis  int64    `json:"millis,omitempty"`
}

type answer struct {
	Error             string
	Found             []bool
	Calls             uint64
	TookMillis, CPUMs float64
}

func (a *arena) startNode(url string) (*nodeSet, error) {
	m := bloom.OptimalBits(capacity, rate)
	settings, err := json.Marshal(map[string]any{
		"url": url, "token": a.token, "key": a.key("node"), "bits": m, "hashes": bloom.OptimalHashes(m, capacity),
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(a.ctx, "node", "bench.mjs", string(settings))
	cmd.Dir, cmd.Stderr = a.nodeFolder, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &nodeSet{in, bufio.NewReader(out)}, a.start(cmd)
}

func (s *nodeSet) ask(o order) (a answer, err error) {
	line, err := json.Marshal(o)
	if err != nil {
		return a, err
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return a, err
	}
	if line, err = s.out.ReadBytes('\n'); err != nil {
		return a, fmt.Errorf("node: %w", err)
	}
	if err = json.Unmarshal(line, &a); err == nil && a.Error != "" {
		err = errors.New("node: " + a.Error)
	}
	return a, err
}

func (s *nodeSet) add(items []string) error {
	_, err := s.ask(order{Op: "add", Items: items})
	return err
}

func (s *nodeSet) exists(items []string) ([]bool, error) {
	a, err := s.ask(order{Op: "exists", Items: items})
	return a.Found, err
}

// contestant adds or looks up items in the process.
func (s *nodeSet) contestant(write bool) *contestant {
	op := strings.ToLower(operation(write))
	return &contestant{name: nodeName, items: 1, run: func(callers int, d time.Duration) (effort, error) {
		a, err := s.ask(order{Op: op, Callers: callers, Millis: d.Milliseconds()})
		millis := func(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
		return effort{a.Calls, millis(a.TookMillis), millis(a.CPUMs)}, err
	}}
}
