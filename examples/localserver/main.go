// Command localserver runs an Upstash-compatible REST server on this machine,
// in memory or in front of a Redis. It prints two lines to paste into the shell
// in which your program runs, and serves until it is interrupted.
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
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Stderr, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "localserver:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It writes the lines for the shell to out and
// warnings to notes.
func run(ctx context.Context, out, notes io.Writer, args []string) error {
	flags := flag.NewFlagSet("localserver", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8079", "`host:port` to listen on; port 0 picks a free one")
	token := flags.String("token", "", "token that clients must send (default random)")
	redis := flags.String("redis", "", "`host:port` of a Redis to serve instead of an empty memory")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: all settings are flags, see -help", flags.Arg(0))
	}
	opts := []upstashtest.Option{upstashtest.WithAddr(*addr)}
	if *token != "" {
		if err := usable(*token); err != nil {
			return err
		}
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
	if open(*addr) {
		fmt.Fprintf(notes, "localserver: %s is open to other machines, and nothing is encrypted: "+
			"anyone who reads the token on the way can do anything. "+
			"Listen on 127.0.0.1 unless other machines must connect.\n", *addr)
	}
	_, err = fmt.Fprintf(out, "export UPSTASH_REDIS_REST_URL=%s\nexport UPSTASH_REDIS_REST_TOKEN=%s\n",
		quote(s.URL), quote(s.Token))
	if err != nil {
		return fmt.Errorf("printing the settings: %w", err)
	}
	<-ctx.Done()
	return nil
}

// quote returns s as one word of a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// usable returns an error if no client could send the token.
func usable(token string) error {
	c, err := upstash.New("http://127.0.0.1", token)
	if err != nil {
		return fmt.Errorf("the token of -token does not work: %w", err)
	}
	return c.Close()
}

// open reports whether the server listens on more than the loopback interface.
func open(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsLoopback()
}
