package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

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
