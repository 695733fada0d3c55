package main

import (
	"sync"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func (c *child) want(id string, status int, answer string) {
	c.tb.Helper()
	gotStatus, got, err := c.post(id)
	if err != nil || gotStatus != status || got != answer {
		c.tb.Errorf("%s: %d %q, %v, want %d %q", id, gotStatus, got, err, status, answer)
	}
}

// TestProcess runs the built service against a database that fails in between.
func TestProcess(t *testing.T) {
	db := upstashtest.NewServer(t)
	c := start(t, build(t, t.TempDir()), db, nil)
	for _, path := range []string{"/alive", "/ready"} {
		if status, _, err := c.get(path); status != 200 {
			t.Errorf("GET %s: %d, %v, want 200", path, status, err)
		}
	}
	c.want("a", 200, "new")
	c.want("a", 200, "duplicate")
	db.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.BadGateway(upstashtest.BeforeExec)
	})
	c.want("a", 503, "try again later")
	c.want("b", 503, "try again later")
	db.InjectFunc(nil)
	c.want("b", 200, "new")
	c.want("b", 200, "duplicate")
	db.InjectWrites(upstashtest.Drop(upstashtest.AfterExec)) // an uncertain Add
	c.want("c", 200, "new")
	c.want("c", 200, "duplicate")
	c.terminate()
	if code := c.exitCode(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestREADME sends the webhook of README twice. Another port than README's is
// certain to be free.
func TestREADME(t *testing.T) {
	run := pages.Command(t, "README.md", "PORT=8080 go run .")
	if len(run.Env) != 1 || len(run.Args) != 3 {
		t.Errorf("%q, want the port and go run alone", run)
	}
	c := start(t, build(t, t.TempDir()), upstashtest.NewServer(t), nil)
	for _, want := range []string{"new", "duplicate"} {
		status, got, err := do(pages.Request(t, "README.md", "curl -H 'Webhook-Id: evt_1'", c.url))
		if err != nil || status != 200 || got != want {
			t.Errorf("%d %q, %v, want 200 %q", status, got, err, want)
		}
	}
}

// TestShutdown sends SIGTERM while the database holds up a webhook. The webhook
// is answered and recorded, and then the process ends.
func TestShutdown(t *testing.T) {
	db := upstashtest.NewServer(t)
	c := start(t, build(t, t.TempDir()), db, nil)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	db.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		once.Do(func() { close(arrived) })
		<-release
		return upstashtest.Fault{}
	})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		c.want("a", 200, "new")
	}()
	<-arrived
	c.terminate()
	c.awaitLog("shutting down")
	close(release)
	<-answered
	if code := c.exitCode(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	c = start(t, c.cmd.Path, db, nil)
	c.want("a", 200, "duplicate")
}
