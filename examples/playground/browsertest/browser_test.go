//go:build unix

// Package browsertest clicks through the page of the playground in a headless
// Chromium. It is its own module, because upbloom needs no browser's protocol.
package browsertest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// patience ends a hanging test, and names the condition it waited for. Nothing
// here depends on time.
const patience = 5 * time.Minute

// shots is the environment variable that names a folder for screenshots.
const shots = "UPBLOOM_SCREENSHOTS"

var site struct {
	once sync.Once
	url  string
	err  error
	stop func()
}

func TestMain(m *testing.M) {
	status := m.Run()
	if site.stop != nil {
		site.stop()
	}
	os.Exit(status)
}

// start runs the command of the README, and returns the URL it prints.
func start(t *testing.T) string {
	t.Helper()
	line := pages.Command(t, "../README.md", "go run ./examples/playground")
	if doc := pages.Command(t, "../main.go", "go run ./examples/playground"); !slices.Equal(doc.Args, line.Args) {
		t.Errorf("main.go says %q, want %q", doc.Args, line.Args)
	}
	site.once.Do(func() {
		cmd := exec.Command(line.Args[0], append(line.Args[1:], "-addr", "127.0.0.1:0")...)
		cmd.Dir = "../../.."
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals reach the children of go run, too
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			site.err = err
			return
		}
		site.stop = func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) // as Ctrl+C does
			_ = cmd.Wait()
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := regexp.MustCompile(`^open (http://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
				site.url = m[1]
				return
			}
		}
		site.err = fmt.Errorf("it printed no address")
	})
	if site.err != nil {
		t.Fatal(site.err)
	}
	return site.url
}

// A page is open in a browser of its own.
type page struct {
	t    *testing.T
	ctx  context.Context
	used map[string]bool // the ids of the controls used by the test
}

// open opens the page in a window of this size, in "light" or "dark", and waits
// until it can be used. Until the end of the test the page must log no error
// and load nothing from elsewhere.
func open(t *testing.T, width, height int64, scheme string) *page {
	t.Helper()
	chromium := testenv.Need(t, "chromium", "chromium", "google-chrome")
	url := start(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium),
		chromedp.NoSandbox, // a sandbox needs another user than root
		chromedp.WSURLReadTimeout(patience))
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, used: map[string]bool{}}
	p.listen(url)
	media := emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	p.run(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	p.wait(`document.getElementById("loading").textContent === "Ready."`)
	return p
}

func (p *page) listen(url string) {
	var mu sync.Mutex
	var faults []string
	err := chromedp.Listen(p.ctx, func(event any) {
		fault := ""
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, url) {
				fault = "it asked for " + e.Request.URL
			}
		case *network.EventResponseReceived:
			if e.Response.Status >= 400 {
				fault = fmt.Sprint(e.Response.URL, ": ", e.Response.Status)
			}
		case *runtime.EventExceptionThrown:
			fault = fmt.Sprintf("it threw %+v", *e.ExceptionDetails)
		case *runtime.EventConsoleAPICalled:
			fault = "it logged something: " + string(e.Type)
		}
		if fault != "" {
			mu.Lock()
			defer mu.Unlock()
			faults = append(faults, fault)
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, fault := range faults {
			p.t.Error(fault)
		}
	})
}

func (p *page) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until an expression of JavaScript is true.
func (p *page) wait(expression string) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Poll[chromedp.Void](expression,
		chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(patience)))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
}

// eval decodes the value of an expression of JavaScript.
func eval[V any](p *page, expression string) V {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[V](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// do runs JavaScript, and waits for its promise.
func (p *page) do(statement string) {
	p.t.Helper()
	p.run(chromedp.Evaluate[chromedp.Void](statement, chromedp.EvalAwaitPromise))
}

func (p *page) text(id string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf("document.getElementById(%q).textContent", id))
}

// says waits until the element's text has all the parts.
func (p *page) says(id string, parts ...string) {
	p.t.Helper()
	for _, part := range parts {
		p.wait(fmt.Sprintf("document.getElementById(%q).textContent.includes(%q)", id, part))
	}
}

// click clicks with the mouse, in the middle of the element.
func (p *page) click(id string) {
	p.t.Helper()
	p.used[id] = true
	p.run(chromedp.Click(chromedp.CSS("#" + id)))
}

// write replaces the text of a field, key by key.
func (p *page) write(id, text string) {
	p.t.Helper()
	p.used[id] = true
	p.run(chromedp.Focus(chromedp.CSS("#" + id)))
	p.do(fmt.Sprintf("document.getElementById(%q).select()", id))
	p.run(chromedp.KeyEvent(text))
}

// press presses a key with the element focused.
func (p *page) press(id, key string) {
	p.t.Helper()
	p.used[id] = true
	p.run(chromedp.Focus(chromedp.CSS("#"+id)), chromedp.KeyEvent(key))
}

// shoot writes a screenshot of the whole page, if the environment names a folder.
func (p *page) shoot(name string) {
	p.t.Helper()
	folder := os.Getenv(shots)
	if folder == "" {
		return
	}
	var png []byte
	p.jumpsAside(func() {
		p.do("document.activeElement.blur(); scrollTo(0, 0)")
		var err error
		if png, err = chromedp.Run(p.ctx, chromedp.FullScreenshot(100)); err != nil {
			p.t.Fatal(err)
		}
	})
	if err := os.MkdirAll(folder, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600); err != nil {
		p.t.Fatal(err)
	}
}
