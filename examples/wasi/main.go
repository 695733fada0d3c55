// Command wasi runs the reactor in this process, in wazero, and asks it about
// events:
//
//	go run . reactor.wasm order-1 order-2 order-1
//
// UPSTASH_REDIS_REST_URL and _TOKEN name the database. Without them it is a server
// in this process.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: wasi reactor.wasm EVENT...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, ids []string) error {
	wasm, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	cfg := Config{
		Wasm:  wasm,
		URL:   os.Getenv("UPSTASH_REDIS_REST_URL"),
		Token: os.Getenv("UPSTASH_REDIS_REST_TOKEN"),
	}
	if dir, err := os.UserCacheDir(); err == nil {
		cfg.CacheDir = filepath.Join(dir, "upbloom-wasi")
	}
	if cfg.URL == "" {
		srv, err := upstashtest.Start()
		if err != nil {
			return err
		}
		defer srv.Close()
		cfg.URL, cfg.Token = srv.URL, srv.Token
	}
	ctx := context.Background()
	guest, err := Load(ctx, cfg)
	if err != nil {
		return err
	}
	defer guest.Close(ctx)

	for _, id := range ids {
		verdict, err := ask(ctx, guest, id)
		if err != nil {
			return err
		}
		fmt.Println(id, verdict)
	}
	return nil
}

func ask(ctx context.Context, guest *Guest, id string) (Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return guest.Seen(ctx, id)
}
