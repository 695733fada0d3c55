// Command cloudrun is an HTTP service for Google Cloud Run that handles each
// webhook once. See README.md for what happens to a webhook when something
// fails, and for the build and deploy lines.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// windowConfig is sized for the webhooks of a day. A false positive is a webhook
// nobody handles, so FPRate is small: a full window loses 1 new webhook in 100
// million. That takes 16 MB.
var windowConfig = bloom.WindowConfig{
	Capacity: 1_000_000,
	FPRate:   1e-8,
	// Each id is found for a day after its own Add. Choose a Span that is longer
	// than a sender goes on trying.
	Span: 24 * time.Hour,
	// Before the first Add, and after days without one, there is no window, and
	// every webhook is new.
	ExpireIdle: true,
}

const (
	// grace is the time after SIGTERM for requests under way. It is longer than
	// headerTime, patience, recordTime and answerTime together. Cloud Run kills
	// the process 10 s after SIGTERM.
	grace = 9 * time.Second
	// headerTime and readTime limit how long a request may take to arrive, from
	// its first byte: headerTime without the body and readTime with it.
	// Otherwise a sender could hold the rest back and keep the process from
	// ending.
	headerTime = time.Second
	readTime   = 3 * time.Second
	// answerTime limits how long a sender may take to read an answer.
	// writeTime, the server's own limit, counts from the end of the header. No
	// webhook takes longer.
	answerTime = 500 * time.Millisecond
	writeTime  = 8 * time.Second
)

func main() {
	slog.SetDefault(newLogger())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("stopped", "err", err)
		os.Exit(1)
	}
}

// run serves on $PORT until ctx ends, and then lets the requests under way
// finish.
func run(ctx context.Context) error {
	client, err := upstash.FromEnv()
	if err != nil {
		return err
	}
	defer client.Close()
	cfg := windowConfig
	// Only a test server is asked over plain HTTP.
	if cfg.Seed, err = secretSeed(strings.HasPrefix(os.Getenv("UPSTASH_REDIS_REST_URL"), "http://")); err != nil {
		return err
	}
	s, err := newService(client, "webhooks:handled", cfg, pay)
	if err != nil {
		return err
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	server := newServer(s.routes())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	slog.Info("serving", "addr", l.Addr().String())

	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	slog.Info("shutting down")
	// ctx has ended, and the requests under way still need time.
	graceCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return server.Shutdown(graceCtx)
}

func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       -1, // Cloud Run closes connections; zero would mean ReadTimeout
	}
}

// pay stands for the work on one webhook. Occasionally it gets one again: after
// a crash between the work and the Add, or after an Add that failed.
func pay(ctx context.Context, body []byte) error {
	var event struct {
		Invoice string `json:"invoice"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return fmt.Errorf("the body is not an event: %w", err)
	}
	if event.Invoice == "" {
		return errors.New("the event has no invoice")
	}
	slog.InfoContext(ctx, "paid", "invoice", event.Invoice)
	return nil
}
