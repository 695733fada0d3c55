package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/valyala/fasthttp"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// arena is the common ground of all contestants: one Redis, and one REST server
// in front of it, each a process of its own.
type arena struct {
	ctx        context.Context
	calls      *contexts // of filters
	redis      string
	url, token string
	resp       rueidis.Client
	nodeFolder string // "" without Node
	keys       int
	processes  sync.WaitGroup
}

func newArena(ctx context.Context, withNode bool) (*arena, error) {
	a := &arena{ctx: ctx, calls: newContexts(ctx)}
	if err := a.startRedis(); err != nil {
		return a, fmt.Errorf("starting Redis: %w", err)
	}
	line, err := a.startRole("server", a.redis)
	if err != nil {
		return a, err
	}
	a.url, a.token, _ = strings.Cut(line, " ")
	a.resp, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{a.redis}, DisableCache: true})
	if err == nil && withNode {
		a.nodeFolder, err = installNode(ctx)
	}
	return a, err
}

// start starts a process that ends with the arena's context.
func (a *arena) start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	a.processes.Go(func() { _ = cmd.Wait() })
	return nil
}

// key returns a new key. No contest must find what another left.
func (a *arena) key(name string) string {
	a.keys++
	return fmt.Sprintf("%s:%d", name, a.keys)
}

func (a *arena) client(url string, opts ...upstash.Option) (*upstash.Client, error) {
	return upstash.New(url, a.token, append(opts, upstash.WithMaxConns(4096))...)
}

// called returns how many commands Redis has run, including those of scripts.
func (a *arena) called() (total int64, err error) {
	text, err := a.resp.Do(a.ctx, a.resp.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		command, rest, ok := strings.Cut(line, ":calls=")
		if !ok || command == "cmdstat_info" || command == "cmdstat_ping" { // by clients that keep a connection alive
			continue
		}
		var n int64
		if _, err := fmt.Sscanf(rest, "%d,", &n); err != nil {
			return 0, fmt.Errorf("commandstats: %q: %w", line, err)
		}
		total += n
	}
	return total, nil
}

// startRedis runs a Redis without persistence.
func (a *arena) startRedis() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	a.redis = l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(a.redis)
	err = a.start(exec.CommandContext(a.ctx, "redis-server", "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", os.TempDir()))
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if c, err := net.Dial("tcp", a.redis); err == nil {
			return c.Close()
		}
		time.Sleep(10 * ms)
	}
	return errors.New("no answer")
}

// A role is a server of this program in another process. It prints a line once it
// serves, and ends when its standard input does.
var roles = map[string]func(of string) (line string, err error){"server": serveREST, "stub": serveStub}

// startRole returns the line printed by the process.
func (a *arena) startRole(role, of string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(a.ctx, exe, role, of)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // closed when this process ends
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := a.start(cmd); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: %w", role, err)
	}
	return strings.TrimSpace(line), nil
}

// playRole runs a role, if the arguments name one.
func playRole(args []string) (played bool, err error) {
	if len(args) != 2 || roles[args[0]] == nil {
		return false, nil
	}
	line, err := roles[args[0]](args[1])
	if err != nil {
		return true, err
	}
	fmt.Println(line)
	_, err = io.Copy(io.Discard, os.Stdin)
	return true, err
}

// serveREST runs the REST server in front of a Redis, and prints its URL and token.
// Garbage collection is rare, so it is not what is measured.
func serveREST(redis string) (string, error) {
	debug.SetGCPercent(1000)
	s, err := upstashtest.Start(upstashtest.WithRedis(redis))
	if err != nil {
		return "", err
	}
	return s.URL + " " + s.Token, nil
}

// serveStub runs a server that asks origin once about each kind of request, and
// then answers from memory: the client weighs most there.
func serveStub(origin string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	m := &memory{origin: origin, known: map[string][]byte{}}
	server := &fasthttp.Server{Handler: m.serve, NoDefaultServerHeader: true}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), nil
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

// appendKind appends the path, the number of strings in the body, and its first
// three strings. Requests that differ only in their items are of one kind.
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
