package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// With the variable asProgram the test binary is the program: nothing has to be
// built for tests that need a process.
const asProgram = "UPBLOOM_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		program(upstash.WithTimeout(testenv.Patience))
	}
	testenv.CollectLess()
	os.Exit(m.Run())
}

// shell runs the program against one database.
type shell struct {
	t   *testing.T
	env []string
	s   *upstashtest.Server

	between bool // a proxy is between the program and the server
}

func newShell(t *testing.T, opts ...upstashtest.Option) *shell {
	s := upstashtest.NewServer(t, opts...)
	return &shell{t: t, s: s, env: []string{
		"UPSTASH_REDIS_REST_URL=" + s.URL, "UPSTASH_REDIS_REST_TOKEN=" + s.Token, "PATH=" + os.Getenv("PATH"),
	}}
}

// host is how the program names the server.
func (sh *shell) host() string { return strings.TrimPrefix(sh.s.URL, "http://") }

func (sh *shell) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(slices.Clip(sh.env), asProgram+"=yes")
	return cmd
}

// process is command, with its standard error.
func (sh *shell) process(args ...string) (cmd *exec.Cmd, errOut *strings.Builder) {
	cmd, errOut = sh.command(args...), new(strings.Builder)
	cmd.Stderr = errOut
	return cmd, errOut
}

func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func interrupt(t *testing.T, cmd *exec.Cmd, with os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(with); err != nil {
		t.Fatal(err)
	}
}

// run returns the program's output and its exit status. The output must not
// contain the token. In the long form of the tests the program is a process;
// otherwise it runs in this one, in a tenth of the time.
func (sh *shell) run(stdin string, args ...string) (out, errOut string, status int) {
	sh.t.Helper()
	if !testenv.Long() {
		return sh.here(stdin, args...)
	}
	var o, e bytes.Buffer
	cmd := sh.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		sh.t.Fatal(err)
	}
	return sh.printed(args, &o, &e, cmd.ProcessState.ExitCode())
}

// here is run in this process, in the long form too: for tests that run the
// program a hundred times, or lose answers. Between two attempts a process waits.
func (sh *shell) here(stdin string, args ...string) (out, errOut string, status int) {
	sh.t.Helper()
	var o, e bytes.Buffer
	status = sh.inProcess(context.Background(), stdin, &o, &e, args)
	return sh.printed(args, &o, &e, status)
}

func (sh *shell) printed(args []string, o, e *bytes.Buffer, was int) (out, errOut string, status int) {
	sh.t.Helper()
	if strings.Contains(o.String()+e.String(), sh.s.Token) {
		sh.t.Errorf("%q prints the token", args)
	}
	return o.String(), e.String(), was
}

// interrupted runs the program in this process and interrupts it at request n,
// which then stalls. An UNLINK is dropped, as often as it comes: the program would
// wait for its answer a second. at is the request's commands, or "" if it did not
// come.
func (sh *shell) interrupted(n int64, when upstashtest.When, stdin string, args ...string,
) (errOut, at string, status int) {
	sh.t.Helper()
	ctx, cancel := context.WithCancel(sh.t.Context())
	defer cancel()
	sh.s.InjectFunc(func(i int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if i == n {
			at = strings.Join(r.Commands, " ")
			cancel()
		}
		switch {
		case at == "UNLINK":
			return upstashtest.Drop(when)
		case i == n:
			return upstashtest.Stall(when)
		}
		return upstashtest.Fault{}
	})
	defer sh.s.InjectFunc(nil)
	var e strings.Builder
	status = sh.inProcess(ctx, stdin, io.Discard, &e, args)
	return e.String(), at, status
}

// inProcess runs the program in this process, with the variables of the shell. It
// tries again without a pause, and an attempt may take as long as a slow machine
// needs.
func (sh *shell) inProcess(ctx context.Context, stdin string, out, errOut io.Writer, args []string) (status int) {
	for _, name := range []string{
		"UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN", "UPSTASH_REDIS_REST_READONLY_TOKEN",
		"KV_REST_API_URL", "KV_REST_API_TOKEN", "KV_REST_API_READ_ONLY_TOKEN", "UPBLOOM_SEED",
	} {
		sh.t.Setenv(name, "")
	}
	for _, v := range sh.env {
		name, value, _ := strings.Cut(v, "=")
		sh.t.Setenv(name, value)
	}
	a := &app{
		in: strings.NewReader(stdin), out: out, errOut: errOut,
		options: []upstash.Option{upstash.WithBackoff(0, 0), upstash.WithTimeout(testenv.Patience)},
	}
	return exitStatus(a.run(ctx, append([]string{"upbloom"}, args...)))
}

// want runs the program, and checks its status and a text in its output.
func (sh *shell) want(status int, says, stdin string, args ...string) string {
	sh.t.Helper()
	out, errOut, got := sh.run(stdin, args...)
	if got != status || !strings.Contains(out+errOut, says) {
		sh.t.Errorf("upbloom %s: status %d, want %d and %q\n%s%s",
			strings.Join(args, " "), got, status, says, out, errOut)
	}
	return out
}

// unchanged runs the program, which must refuse and leave the key as it was.
func (sh *shell) unchanged(key, says, stdin string, args ...string) {
	sh.t.Helper()
	before := sh.stored(key)
	sh.want(exitUsage, says, stdin, args...)
	if sh.stored(key) != before {
		sh.t.Errorf("%q has changed the filter", args)
	}
}

// with returns the same shell with another variable.
func (sh *shell) with(variable string) *shell {
	other := *sh
	other.env = append(slices.Clip(sh.env), variable)
	return &other
}

// exec runs a command on the database itself.
func (sh *shell) exec(args ...string) any {
	sh.t.Helper()
	v, err := sh.s.Exec(args...)
	if err != nil {
		sh.t.Fatal(err)
	}
	return v
}

// strikes has each request with this command, or a kin of EVAL, meet the fault.
func (sh *shell) strikes(command string, fault upstashtest.Fault) {
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		for _, c := range r.Commands {
			if c == command || command == "EVAL" && strings.HasPrefix(c, command) {
				return fault
			}
		}
		return upstashtest.Fault{}
	})
}

// create makes a filter for 1,000 items, of the kind of the flags.
func (sh *shell) create(key string, flags ...string) {
	sh.t.Helper()
	sh.want(0, "created", "", slices.Concat([]string{"create", "--items", "1k"}, flags, []string{key})...)
}

// info returns the state of a filter.
func (sh *shell) info(key string) (s state) {
	sh.t.Helper()
	decode(sh.t, sh.want(0, "", "", "--json", "info", key), &s)
	return s
}

// wantKeys checks which keys there are.
func (sh *shell) wantKeys(want string) {
	sh.t.Helper()
	if all, _ := sh.keys(); all != want {
		sh.t.Errorf("these keys are here: %q, want %q", all, want)
	}
}

// fileOf makes a file in a folder of its own, and returns its path.
func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// stored returns the bytes at a key.
func (sh *shell) stored(key string) string {
	sh.t.Helper()
	text, _ := sh.exec("GET", key).(string)
	return text
}

// everything returns all keys with their strings and hours to live. Parts of an
// upload are left out; they must expire.
func (sh *shell) everything() string {
	sh.t.Helper()
	text, _ := sh.exec("EVAL", `local all = {}
		local keys = redis.call('KEYS', '*')
		table.sort(keys)
		for _, key in ipairs(keys) do
			local ttl = redis.call('PTTL', key)
			if not string.find(key, ':load:', 1, true) then
				all[#all + 1] = key .. ' ' .. redis.call('GET', key) .. ' ' .. math.ceil(ttl / 3600000)
			elseif ttl < 0 then
				return key .. ' stays for good'
			end
		end
		return table.concat(all, ', ')`, "0").(string)
	if strings.HasSuffix(text, "stays for good") {
		sh.t.Error(text)
	}
	return text
}

// keys returns the names of all keys, and of those without a TTL.
func (sh *shell) keys() (all, lasting string) {
	sh.t.Helper()
	names, _ := sh.exec("EVAL", `local all, lasting = {}, {}
		for _, key in ipairs(redis.call('KEYS', '*')) do
			all[#all + 1] = key
			if redis.call('PTTL', key) < 0 then lasting[#lasting + 1] = key end
		end
		return {table.concat(all, ' '), table.concat(lasting, ' ')}`, "0").([]any)
	return names[0].(string), names[1].(string)
}

// through puts a server in between, which changes requests and answers. Either
// may be nil.
func (sh *shell) through(request func(*http.Request), answer func(*http.Response)) {
	to, err := url.Parse(sh.s.URL)
	if err != nil {
		sh.t.Fatal(err)
	}
	between := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if r.SetURL(to); request != nil {
				request(r.Out)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if answer != nil {
				answer(r)
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0), // clients leave
	})
	sh.t.Cleanup(between.Close)
	sh.between = true
	sh.env = []string{"UPSTASH_REDIS_REST_URL=" + between.URL, "UPSTASH_REDIS_REST_TOKEN=" + sh.s.Token}
}

// answerWith replaces the body of an answer.
func answerWith(r *http.Response, body string) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	r.Header.Del("Content-Length")
}

// toTheNextPane sets the server's clock to the beginning of a window's next pane:
// it does not turn again before that is over.
func (sh *shell) toTheNextPane(key string) {
	sh.t.Helper()
	now, err := sh.s.Client().ServerTime(sh.t.Context())
	if err != nil {
		sh.t.Fatal(err)
	}
	pane := int64(sh.info(key).PaneSpan) // in seconds, as those since 1970
	next := time.Unix((now.Unix()/pane+1)*pane, 0)
	sh.s.FastForward(next.Sub(now) + time.Second)
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

// numbered returns the lines PREFIX-0, PREFIX-1 and so on, n of them.
func numbered(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s-%d\n", prefix, i)
	}
	return b.String()
}
