package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// startLimit is how long a process may take until it serves.
const startLimit = 30 * time.Second

// startRedis runs a Redis without persistence until ctx ends.
func startRedis(ctx context.Context) (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr = l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(addr)
	dir, err := os.MkdirTemp("", "compare-redis")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = os.RemoveAll(dir) })
	cmd := exec.CommandContext(ctx, "redis-server", "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("starting Redis: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return addr, c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "", errors.New("starting Redis: no answer")
}

// A role is a server of this program in another process. It prints a line once
// it serves, and ends when its standard input does.
var roles = map[string]func(args []string) (line string, err error){
	"server": serveREST, "stub": serveStub,
}

// startRole returns the line printed by the process.
func startRole(ctx context.Context, args ...string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // closed when this process ends
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: %w", args[0], err)
	}
	go func() { _ = cmd.Wait() }()
	return strings.TrimSpace(line), nil
}

// playRole runs a role, if the arguments name one.
func playRole(args []string) (played bool, err error) {
	if len(args) == 0 || roles[args[0]] == nil {
		return false, nil
	}
	line, err := roles[args[0]](args[1:])
	if err != nil {
		return true, err
	}
	fmt.Println(line)
	_, err = io.Copy(io.Discard, os.Stdin)
	return true, err
}

// serveREST runs the REST server in front of the Redis at args[0]. It prints
// the URL and the token. A record may have as many bits as Redis allows.
// Garbage collection is rare, so it is not what is measured.
func serveREST(args []string) (string, error) {
	debug.SetGCPercent(1000)
	s, err := upstashtest.Start(upstashtest.WithRedis(args[0]), upstashtest.WithMaxRecord(1<<29))
	if err != nil {
		return "", err
	}
	return s.URL + " " + s.Token, nil
}

// serveStub runs a server that asks the server at args[0] once about each kind
// of request, and then answers from memory. Requests are of one kind if they
// have the same path and number of strings, and begin alike. Their items may
// differ. With a second argument it uses TLS, and with a third it closes each
// connection after an answer.
func serveStub(args []string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	url := "http://" + l.Addr().String()
	if len(args) > 1 {
		url = "https://" + l.Addr().String()
		if l, err = withTLS(l, args[1]); err != nil {
			return "", err
		}
	}
	m := &memory{origin: args[0], known: map[string][]byte{}}
	server := &fasthttp.Server{
		Handler: m.serve, NoDefaultServerHeader: true, MaxRequestBodySize: 1 << 28,
		DisableKeepalive: len(args) > 2,
	}
	go func() { _ = server.Serve(l) }()
	return url, nil
}

// memory answers requests from memory once origin has answered one like them.
type memory struct {
	origin string
	mu     sync.RWMutex
	known  map[string][]byte
}

func (m *memory) serve(c *fasthttp.RequestCtx) {
	var buf [256]byte
	kind := appendKind(buf[:0], c.Path(), c.PostBody())
	m.mu.RLock()
	reply, ok := m.known[string(kind)]
	m.mu.RUnlock()
	if !ok {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(resp)
		c.Request.Header.CopyTo(&req.Header)
		req.SetBody(c.PostBody())
		req.SetRequestURI(m.origin + string(c.Path()))
		if err := fasthttp.Do(req, resp); err != nil {
			c.Error(err.Error(), fasthttp.StatusBadGateway)
			return
		}
		reply = bytes.Clone(resp.Body())
		if resp.StatusCode() != fasthttp.StatusOK {
			c.Error(string(reply), resp.StatusCode())
			return
		}
		m.mu.Lock()
		m.known[string(kind)] = reply
		m.mu.Unlock()
	}
	c.SetContentType("application/json")
	c.SetBody(reply)
}

// appendKind appends the path, the number of strings in the body, and its
// first three strings.
func appendKind(dst, path, body []byte) []byte {
	dst = append(dst, path...)
	dst = strconv.AppendInt(dst, int64(bytes.Count(body, []byte{'"'})), 10)
	quotes := 0
	for i, c := range body {
		if c == '"' {
			quotes++
		}
		if quotes == 6 {
			return append(dst, body[:i]...)
		}
	}
	return append(dst, body...)
}

//go:embed node/*.mjs
var nodePrograms embed.FS

// peerPackage has a folder js with the filter for Node and the names of its
// packages.
const peerPackage = "github.com/upbloom/upbloom/internal/testkit/peertest"

// installNode makes a folder with the programs and their packages. The caller
// removes it.
func installNode(ctx context.Context) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "compare-node"); err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = os.RemoveAll(dir) })
	folder, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", peerPackage).Output()
	if err != nil {
		return "", fmt.Errorf("run this in internal/benchmarks: %w", err)
	}
	source := os.DirFS(filepath.Join(strings.TrimSpace(string(folder)), "js"))
	if err := os.CopyFS(dir, source); err != nil {
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
	cmd := exec.CommandContext(ctx, "npm", "ci", "--omit=peer", "--ignore-scripts", "--no-audit",
		"--no-fund", "--prefer-offline")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return dir, nil
}

// nodeSet is a process of Node with the filter over @upstash/redis.
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

func startNode(ctx context.Context, dir, url, token, key string) (*nodeSet, error) {
	m := bloom.OptimalBits(capacity, rate)
	settings, err := json.Marshal(map[string]any{
		"url": url, "token": token, "key": key, "bits": m, "hashes": bloom.OptimalHashes(m, capacity),
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", "bench.mjs", string(settings))
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { <-ctx.Done(); _ = cmd.Wait() }()
	return &nodeSet{in, bufio.NewReader(out)}, nil
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
func (s *nodeSet) contestant(name string, write bool) *contestant {
	op := "exists"
	if write {
		op = "add"
	}
	return &contestant{name: name, items: 1, run: func(callers int, d time.Duration) (effort, error) {
		a, err := s.ask(order{Op: op, Callers: callers, Millis: d.Milliseconds()})
		millis := func(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
		return effort{a.Calls, millis(a.TookMillis), millis(a.CPUMs)}, err
	}}
}
