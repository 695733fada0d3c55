// Playground serves a page that shows a filter filling, in the browser, by the
// same Go code in WebAssembly:
//
//	go run ./examples/playground
//
// It builds the WebAssembly first, into a temporary directory, with the go
// command on the PATH. It needs nothing from the network.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

//go:embed page
var embedded embed.FS

// program runs in the page.
const program = "github.com/upbloom/upbloom/examples/playground/wasm"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	addr := flag.String("addr", "localhost:8080", "`address` to listen at")
	flag.Parse()
	if err := run(ctx, os.Stdout, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%w: choose another address with -addr", err)
	}
	defer listener.Close()
	fmt.Fprintln(out, "building the page's WebAssembly, which takes a while the first time")
	dir, err := os.MkdirTemp("", "playground-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := build(ctx, dir); err != nil {
		return err
	}
	page, err := fs.Sub(embedded, "page")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(page, os.DirFS(dir)), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(out, "open http://%s/ (Ctrl+C ends it)\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// build puts the WebAssembly, and Go's file to start it, into dir.
func build(ctx context.Context, dir string) error {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	start, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "wasm_exec.js"), start, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w",
		"-o", filepath.Join(dir, "playground.wasm"), program)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, text)
	}
	return nil
}

// handler serves the page and what was built. The policy keeps the page from
// loading anything from elsewhere.
func handler(page, built fs.FS) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page))
	mux.Handle("GET /built/", http.StripPrefix("/built/", http.FileServerFS(built)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; script-src 'self' 'wasm-unsafe-eval';"+
			" base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		if strings.HasSuffix(r.URL.Path, ".js") {
			h.Set("Content-Type", "text/javascript; charset=utf-8") // the system may name another
		}
		h.Set("Cache-Control", "no-store") // the next build differs
		mux.ServeHTTP(w, r)
	})
}
