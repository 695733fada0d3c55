package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// If a program's reader has gone, as with head, the program ends quietly, with
// the status that a shell reports after SIGPIPE. doctor removes its keys first.
func TestBrokenPipe(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "new", "", "add", "--items", "100", "key", "a")
	for _, args := range [][]string{
		{"ls"},
		{"check", "key", "a"},
		{"check", "key", "b"},
		{"--json", "info", "key"},
		{"save", "key", "-"},
		{"doctor"},
		{"load", "key", "-"},
	} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = reader.Close()
		cmd, errOut := sh.process(args...)
		cmd.Stdin, cmd.Stdout = strings.NewReader("c\n"), writer
		_ = cmd.Run()
		_ = writer.Close()
		if cmd.ProcessState.ExitCode() != exitNoReader || errOut.Len() != 0 {
			t.Errorf("%s: %v, and says %q", args, cmd.ProcessState, errOut)
		}
	}
	sh.wantKeys("key")
	sh.want(0, "", "", "check", "key", "c") // load had ended
}

// If the named file cannot be replaced, as on Windows while another program has
// it open, save says so of that file, and leaves nothing beside it.
func TestSaveThatCannotReplace(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "9", "key", "a")
	name := filepath.Join(t.TempDir(), "saved")
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if slices.Contains(r.Commands, "EVAL") { // save has looked at the name by then
			_ = os.Mkdir(name, 0o700)
		}
		return upstashtest.Fault{}
	})
	sh.want(2, "saved cannot be replaced, and was left as it is: ", "", "save", "--force", "key", name)
	if left, err := os.ReadDir(filepath.Dir(name)); err != nil || len(left) != 1 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// A silent server is one that answers no request before the given one.
type silent struct{ requests, until int }

func (s *silent) RoundTrip(ctx context.Context, _ *upstash.Request, resp *upstash.Response) error {
	if s.requests++; s.requests < s.until {
		<-ctx.Done()
		return ctx.Err()
	}
	resp.StatusCode, resp.Body = 200, []byte(`{"result":["0",[]]}`)
	return nil
}

// Nobody waits for a minute without a word.
func TestSaysThatNoAnswerComes(t *testing.T) {
	t.Setenv("UPSTASH_REDIS_REST_URL", "https://db.example")
	t.Setenv("UPSTASH_REDIS_REST_TOKEN", "t")
	for _, tt := range []struct {
		until, status, lines int
		flags                string
	}{
		{until: 1},
		{until: 3, lines: 2},
		{until: 9, lines: 5, status: exitDatabase},
		{until: 3, flags: "--quiet"},
		{until: 3, flags: "--json"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, errOut strings.Builder
			silence := upstash.WithTransport(&silent{until: tt.until})
			a := &app{in: strings.NewReader(""), out: &out, errOut: &errOut, options: []upstash.Option{silence}}
			var first time.Duration
			begun := time.Now()
			a.errOut = writerFunc(func(p []byte) (int, error) {
				if first == 0 {
					first = time.Since(begun)
				}
				return errOut.Write(p)
			})
			args := append(append([]string{"upbloom"}, strings.Fields(tt.flags)...), "ls")
			status := exitStatus(a.run(t.Context(), args))
			n := strings.Count(errOut.String(), "upbloom: no answer from db.example within 10s (attempt ")
			if status != tt.status || n != tt.lines || n > 0 && first > 10*time.Second {
				t.Errorf("%+v: status %d, the first line after %v:\n%s%s", tt, status, first, &out, &errOut)
			}
		})
	}
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// If a command has changed the database, its status is 0 or 5, whichever request
// an interrupt, before or after it ran, or a refusal strikes. Any other says that
// nothing was changed.
func TestStatusAfterAWrite(t *testing.T) {
	const before, after, refused = "interrupted before", "interrupted after", "refused"
	statuses := map[int]int{}
	for _, line := range []string{
		"ttl key 3h", "rm --yes key", "load --items 1k key", "replace --items 1k --renew-ttl 1h --yes key", "load sh",
		"create --items 1k new", "create --items 1k --window 1h new", "create --items 1k --shards 2 new",
		"create --items 1k --cuckoo new", "create --items 1k --scalable new",
	} {
		for _, how := range []string{before, after, refused} {
			for n := int64(1); ; n++ {
				sh := newShell(t)
				sh.create("key")
				sh.create("sh", "--shards", "3")
				was, at, status := sh.everything(), "", 0
				const items = "a\nb\n"
				if how == refused {
					at, status = sh.refused(n, items, strings.Fields(line))
				} else {
					when := map[string]upstashtest.When{before: upstashtest.BeforeExec, after: upstashtest.AfterExec}[how]
					_, at, status = sh.interrupted(n, when, items, strings.Fields(line)...)
				}
				if at == "" {
					if n == 1 {
						t.Errorf("%s sends no request", line)
					}
					break
				}
				statuses[status]++
				if sh.everything() != was && status != 0 && status != exitUnknown {
					t.Errorf("%s, %s at request %d, %s: changed, and status %d", line, how, n, at, status)
				}
			}
		}
	}
	if statuses[exitInterrupted] < 20 || statuses[exitUnknown] < 10 || statuses[exitDatabase] < 20 {
		t.Errorf("the statuses were %v: this shows little", statuses)
	}
}

// refused runs a command whose request n is refused. at is the request's commands, or
// "" if it did not come.
func (sh *shell) refused(n int64, stdin string, args []string) (at string, status int) {
	sh.s.InjectFunc(func(i int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if i != n {
			return upstashtest.Fault{}
		}
		at = strings.Join(r.Commands, " ")
		return upstashtest.ErrorObject("OOM command not allowed when used memory > 'maxmemory'.")
	})
	defer sh.s.InjectFunc(nil)
	_, _, status = sh.run(stdin, args...)
	return at, status
}

// TestBehindAProxy: the program goes through the environment's proxy by itself.
func TestBehindAProxy(t *testing.T) {
	proxy := testenv.Serve(t, func(c net.Conn) {
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil && req.Method == http.MethodConnect && req.Host == "db.test:443" {
			_, _ = io.WriteString(c, "HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n")
		}
	})
	cmd, errOut := newShell(t).process("check", "k", "a")
	cmd.Env = append(cmd.Env, "UPSTASH_REDIS_REST_URL=https://db.test", "HTTPS_PROXY=http://"+proxy, "https_proxy=", "NO_PROXY=",
		"no_proxy=")
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != exitDatabase || !strings.Contains(errOut.String(), "the proxy answered CONNECT with status 403") {
		t.Errorf("%v, %s", cmd.ProcessState, errOut)
	}
}
