package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func (a *app) serveCommand() *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "run a REST server for tests on this machine", ArgsUsage: " ",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "addr", Value: "127.0.0.1:8079",
				Usage: "listen on `HOST:PORT`; port 0 picks a free port",
			},
			&cli.StringFlag{
				Name: "redis", Usage: "keep the data in the Redis at `HOST:PORT`, not in memory",
			},
			&cli.StringFlag{
				Name: "token", Usage: "let clients use `TOKEN`, not a random one; that for reads then stays the same",
			},
		},
		Action: a.taking(0, 0, a.serve),
	}
}

// served is the JSON of serve.
type served struct {
	URL           string `json:"url"`
	Token         string `json:"token"`
	ReadOnlyToken string `json:"readOnlyToken"`
}

// serve prints how to reach a new server, and runs it until an interrupt.
func (a *app) serve(ctx context.Context, c *cli.Command, _ []string) error {
	opts, err := a.serverOptions(c)
	if err != nil {
		return err
	}
	s, err := upstashtest.Start(opts...)
	if network, ok := errors.AsType[*net.OpError](err); ok && network.Op == "listen" {
		return usagef("nothing can listen on %s: %s: choose another with --addr; port 0 picks a free one",
			printable(c.String("addr")), oneLine(network.Err.Error()))
	}
	if err != nil {
		return err
	}
	a.server = s
	if a.demo {
		if err := a.fillDemo(ctx); err != nil {
			return err
		}
	}
	if !isLoopback(c.String("addr")) {
		fmt.Fprintln(a.errOut, "upbloom: other machines can reach this server, over plain http,"+
			" and whoever has the token may do everything: to keep it on this machine, listen on"+
			" 127.0.0.1")
	}
	format := "export %s='%s'"
	if runtime.GOOS == "windows" && os.Getenv("SHELL") == "" { // not in Git Bash
		format = "$env:%s = '%s'"
	}
	format = strings.Join([]string{format, format, format}, "\n")
	text := fmt.Sprintf(format, "UPSTASH_REDIS_REST_URL", s.URL, "UPSTASH_REDIS_REST_TOKEN", s.Token,
		"UPSTASH_REDIS_REST_READONLY_TOKEN", s.ReadOnlyToken)
	if err := a.print(served{s.URL, s.Token, s.ReadOnlyToken}, text); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// serverOptions returns the options in the flags.
func (a *app) serverOptions(c *cli.Command) ([]upstashtest.Option, error) {
	opts := []upstashtest.Option{upstashtest.WithAddr(c.String("addr"))}
	if c.IsSet("token") {
		token := c.String("token")
		if !isToken(token) {
			return nil, usagef("--token is empty, or holds more than letters, digits and ._~+/=-")
		}
		// The token for reads stays the same too, and does not tell the other.
		reads := sha256.Sum256([]byte("upbloom serve, a token for reads beside " + token))
		opts = append(opts, upstashtest.WithToken(token),
			upstashtest.WithReadOnlyToken(hex.EncodeToString(reads[:13])))
	}
	if c.IsSet("redis") {
		redis := c.String("redis")
		switch {
		case redis == "":
			return nil, usagef("--redis is empty: is a variable of the shell not set? Leave it out to keep the data in memory")
		case a.demo:
			return nil, usagef("--demo and --redis: the filters of the demo are for an empty memory")
		}
		opts = append(opts, upstashtest.WithRedis(redis))
	}
	return opts, nil
}

// isLoopback reports whether addr is reachable only from this machine.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// isToken reports whether s needs no quotes as a token in a shell or a header.
func isToken(s string) bool {
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune("._~+/=-", r) {
			return false
		}
	}
	return s != ""
}
