package upbloom_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestREADME does what README says: it saves the program as hello/main.go,
// starts the server with the first command, and runs the second with the
// lines that the server prints. In the short form the server is in this process.
func TestREADME(t *testing.T) {
	program := pages.Program(t, "README.md")
	if n := strings.Count(program, "\n"); n > 30 {
		t.Errorf("the program has %d lines, above 30", n)
	}
	serve := pages.Command(t, "README.md", "go run ./bloom/cmd/upbloom serve")
	hello := pages.Command(t, "README.md", "go run ./hello")
	var env []string
	if testenv.Long() {
		env = served(t, serve)
	} else {
		server := upstashtest.NewServer(t)
		env = []string{"UPSTASH_REDIS_REST_URL=" + server.URL, "UPSTASH_REDIS_REST_TOKEN=" + server.Token}
	}

	// An overlay: the file is in the repository for the compiler alone, in place
	// of one that a reader saved there.
	dir := t.TempDir()
	saved, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	here, err := filepath.Abs(filepath.Join("hello", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	where, err := json.Marshal(map[string]map[string]string{"Replace": {here: saved}})
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{saved: program, overlay: string(where)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(testenv.Need(t, "go", "go"), append([]string{"run", "-overlay", overlay}, hello.Args[2:]...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", hello.Args, err, out)
	}
	said := strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), ", ")
	block := pages.Code(t, "README.md", "sh")[0]
	if want := "203.0.113.7 true, 198.51.100.1 false"; said != want ||
		!strings.Contains(block, "# "+said+"\n") {
		t.Errorf("the program prints %q, want %q, as in\n%s", said, want, block)
	}
}

// served runs the server until the end of the test, and returns the variables
// that it prints.
func served(t *testing.T, line pages.Line) (env []string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "upbloom")
	build := exec.Command(testenv.Need(t, "go", "go"), "build", "-o", binary, line.Args[2]) // go run would outlive its child
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(binary, append(line.Args[3:], "--addr", "127.0.0.1:0")...)
	out := testenv.Start(t, cmd)
	for lines := bufio.NewScanner(out); len(env) < 3 && lines.Scan(); {
		name, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		if !ok {
			t.Fatalf("the server printed %q, want a variable", lines.Text())
		}
		env = append(env, name+"="+strings.Trim(value, `'"`))
	}
	return env
}

// Example_lookFirst is README's recipe for webhooks whose work must not be lost.
// The first attempt fails, and the sender tries again.
func Example_lookFirst() {
	client, stop := bloomtest.Database()
	defer stop()
	ctx := context.Background()
	done, err := bloom.NewWindow(client, "done", bloom.WindowConfig{
		Capacity: 100_000, Span: 24 * time.Hour,
		FPRate: 1e-8, ExpireIdle: true, Seed: 8213, // a secret one
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := done.Create(ctx); err != nil { // with its TTL, which an Add waits for a second at most
		log.Fatal(err)
	}
	type webhook struct{ ID string }
	down := errors.New("the mail server is down")
	handle := func(event webhook) error {
		fmt.Println("work on", event.ID)
		return down
	}
	receive := func(event webhook) error {
		seen, err := done.Exists(ctx, event.ID)
		if err != nil || seen {
			return err
		}
		err = handle(event)
		if err != nil {
			return err
		}
		_, err = done.Add(ctx, event.ID)
		return err
	}
	fmt.Println(receive(webhook{"evt_1"}))
	down = nil
	fmt.Println(receive(webhook{"evt_1"}))
	fmt.Println(receive(webhook{"evt_1"}))
	// Output:
	// work on evt_1
	// the mail server is down
	// work on evt_1
	// <nil>
	// <nil>
}

// Example_outage is README's blocklist.
func Example_outage() {
	client, stop := bloomtest.Database()
	defer stop()
	ctx := context.Background()
	filter, err := bloom.New(client, "blocklist", bloom.Config{Capacity: 100, FPRate: 1e-6})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := filter.Add(ctx, "203.0.113.7"); err != nil {
		log.Fatal(err)
	}
	blocklist, err := bloom.NewMirror(filter, bloom.MirrorConfig{
		MaxStale: time.Minute, StaleIfError: time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(blocklist.Exists(ctx, "203.0.113.7"))
	fmt.Println(blocklist.Exists(ctx, "198.51.100.1"))
	// Output:
	// true <nil>
	// false <nil>
}

// TestTestServer: the answer of an Add is lost, and later the window forgets.
func TestTestServer(t *testing.T) {
	newHandler := func(client *upstash.Client) *bloom.Window {
		seen, err := bloom.NewWindow(client, "seen:webhooks", bloom.WindowConfig{
			Capacity: 100_000, FPRate: 0.001, Span: 24 * time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	server := upstashtest.NewServer(t)
	handler := newHandler(server.Client())
	server.InjectWrites(upstashtest.Drop(upstashtest.AfterExec))
	if _, err := handler.Add(t.Context(), "evt_1"); !errors.Is(err, bloom.ErrUncertain) {
		t.Errorf("the answer of the Add was lost: %v, want ErrUncertain", err)
	}
	if isNew, err := handler.Add(t.Context(), "evt_1"); isNew || err != nil {
		t.Errorf("Add again: %t, %v, want it seen", isNew, err)
	}
	server.FastForward(73 * time.Hour)
	if isNew, err := handler.Add(t.Context(), "evt_1"); !isNew || err != nil {
		t.Errorf("Add three days later: %t, %v, want it new", isNew, err)
	}
}
