// Command localserver runs an Upstash-compatible REST server on this machine:
// in memory, or in front of a Redis. It prints the two lines to paste into the
// shell where your program runs, and serves until it is interrupted.
//
//	go run ./examples/localserver
//	go run ./examples/localserver -addr 127.0.0.1:8079 -token secret -redis 127.0.0.1:6379
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "localserver:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("localserver", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8079", "`host:port` to listen on; port 0 picks a free one")
	token := flags.String("token", "", "token that clients must send (default random)")
	redis := flags.String("redis", "", "`host:port` of a Redis to serve instead of an empty memory")
	if err := flags.Parse(args); err != nil {
		return err
	}
	opts := []upstashtest.Option{upstashtest.WithAddr(*addr)}
	if *token != "" {
		opts = append(opts, upstashtest.WithToken(*token))
	}
	if *redis != "" {
		opts = append(opts, upstashtest.WithRedis(*redis))
	}
	s, err := upstashtest.Start(opts...)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintf(out, "export UPSTASH_REDIS_REST_URL=%s\n", quote(s.URL))
	fmt.Fprintf(out, "export UPSTASH_REDIS_REST_TOKEN=%s\n", quote(s.Token))
	<-ctx.Done()
	return nil
}

// quote makes one word of s for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
