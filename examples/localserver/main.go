// Command localserver runs an Upstash-compatible REST server on this machine:
// in memory, or in front of a Redis. It prints the two lines to paste into the
// shell where your program runs, and serves until it is interrupted.
//
//	go run ./examples/localserver
//	go run ./examples/localserver -addr 127.0.0.1:8079 -token secret -redis 127.0.0.1:6379
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8079", "host:port to listen on; port 0 picks a free one")
	token := flag.String("token", "", "token that clients must send (default random)")
	redis := flag.String("redis", "", "host:port of a Redis to serve instead of an empty memory")
	flag.Parse()
	if err := run(*addr, *token, *redis); err != nil {
		fmt.Fprintln(os.Stderr, "localserver:", err)
		os.Exit(1)
	}
}

func run(addr, token, redis string) error {
	opts := []upstashtest.Option{upstashtest.WithAddr(addr)}
	if token != "" {
		opts = append(opts, upstashtest.WithToken(token))
	}
	if redis != "" {
		opts = append(opts, upstashtest.WithRedis(redis))
	}
	s, err := upstashtest.Start(opts...)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Printf("export UPSTASH_REDIS_REST_URL=%q\n", s.URL)
	fmt.Printf("export UPSTASH_REDIS_REST_TOKEN=%q\n", s.Token)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	return nil
}
