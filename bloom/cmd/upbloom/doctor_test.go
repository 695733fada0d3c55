package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// diagnosis runs doctor and returns its findings by the names of the checks.
func (sh *shell) diagnosis(status int, args ...string) map[string]finding {
	sh.t.Helper()
	found := make(map[string]finding)
	out := sh.want(status, "", "", append([]string{"--json", "doctor"}, args...)...)
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var f finding
		decode(sh.t, line, &f)
		found[f.Check] = f
	}
	if sh.between {
		sh.s.FastForward(emptyTTL + time.Second) // an answer may be lost there
	}
	if v, err := sh.s.Exec("DBSIZE"); err != nil || v != int64(0) {
		sh.t.Errorf("doctor leaves %v keys, %v", v, err)
	}
	return found
}

// failed returns the names of the checks whose finding is FAIL.
func failed(found map[string]finding) (names []string) {
	for name, f := range found {
		if f.Verdict == broken {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Both databases of the test server keep all promises.
func TestDoctorOfAHealthyDatabase(t *testing.T) {
	for _, mode := range []string{"memory", "redis"} {
		t.Run(mode, func(t *testing.T) {
			var opts []upstashtest.Option
			if mode == "redis" {
				opts = append(opts, upstashtest.WithRedis(testenv.Redis(t)))
			}
			sh := newShell(t, opts...)
			found := sh.diagnosis(0)
			if len(found) != len(checks()) || len(failed(found)) != 0 {
				t.Errorf("%d findings, and %q failed", len(found), failed(found))
			}
			if f := found["read-only token"]; f.Verdict != notAsked {
				t.Errorf("%+v", f)
			}
			clock := strings.Fields(found["clock"].Says) // this machine's is 1ms ahead of ..., give or take 2ms
			away, err := time.ParseDuration(clock[3])
			most, mostErr := time.ParseDuration(clock[len(clock)-1])
			if err != nil || mostErr != nil || away > most {
				t.Errorf("one clock is away from itself: %q", clock)
			}
			sh.env = append(sh.env, "UPSTASH_REDIS_REST_READONLY_TOKEN="+sh.s.ReadOnlyToken)
			if f := sh.diagnosis(0)["read-only token"]; f.Verdict != "ok" {
				t.Errorf("%+v", f)
			}
		})
	}
}

// doctor finds what a database does differently, and its exit status shows it.
func TestDoctorOfASickDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		opts   []upstashtest.Option
		denied string
		fault  upstashtest.Fault
		on     string // the command to meet the fault
		status int
		failed []string
	}{
		"no scripts": {
			denied: "EVAL", status: exitDatabase,
			failed: []string{
				"COPY in a script", "base64 of a nested OK", "cuckoo", "filter", "scalable", "script", "sharded", "window",
			},
		},
		"no EVALSHA": {denied: "EVALSHA"},
		"no TIME": {
			denied: "TIME", status: exitDatabase, failed: []string{"window"},
		},
		"small answer": {
			on: "BITCOUNT", fault: upstashtest.WrongType(),
			status: exitDatabase, failed: []string{"BITCOUNT by bits"},
		},
		"small requests": {opts: []upstashtest.Option{upstashtest.WithMaxRequest(2 << 20)}},
		"tiny requests": {
			opts: []upstashtest.Option{upstashtest.WithMaxRequest(64 << 10)}, status: exitDatabase,
			failed: []string{
				"BITCOUNT by bits", "BITFIELD of 10,000 operations", "BITFIELD_RO at offset 2^32-1", "RESP2, any bytes",
				"base64, any bytes", "raw body, any bytes",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, c.opts...)
			if c.denied != "" {
				sh.s.DenyFunc(func(command []string) bool { return command[0] == c.denied })
			}
			if c.on != "" {
				sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
					if len(r.Commands) == 1 && r.Commands[0] == c.on {
						return c.fault
					}
					return upstashtest.Fault{}
				})
			}
			found := sh.diagnosis(c.status)
			if got := failed(found); !slices.Equal(got, c.failed) {
				t.Errorf("%q failed, want %q", got, c.failed)
			}
		})
	}
}

// If a database does not answer, or answers with an error, doctor prints one
// error, not a list.
func TestDoctorWithoutADatabase(t *testing.T) {
	sh := newShell(t)
	for _, tt := range []struct{ url, token, want string }{
		{"http://" + testenv.ClosedAddr(t), sh.s.Token, "the database does not answer: "},
		{sh.s.URL, "another", "the database answers with an error: "},
		{sh.s.URL + "/get/foo", sh.s.Token, "the database answers with an error: "},
		{sh.s.URL + "/get/foo", sh.s.Token, "the URL has a path, /get/foo: is it right?"},
	} {
		sh.env = []string{"UPSTASH_REDIS_REST_URL=" + tt.url, "UPSTASH_REDIS_REST_TOKEN=" + tt.token}
		out, errOut, status := sh.run("", "doctor")
		if status != exitDatabase || strings.Count(out, "\n") != 1 || !strings.Contains(errOut, tt.want) ||
			strings.Contains(errOut, "may be left") {
			t.Errorf("status %d, %q, %q, want %q", status, out, errOut, tt.want)
		}
	}
}

// The recording has the questions and answers, and no secret.
func TestDoctorRecords(t *testing.T) {
	sh := newShell(t)
	file := filepath.Join(t.TempDir(), "doctor.json")
	if found := sh.diagnosis(0, "--record", file); len(failed(found)) != 0 {
		t.Errorf("%q failed", failed(found))
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rec struct {
		Exchanges []json.RawMessage `json:"exchanges"`
	}
	if err := json.Unmarshal(data, &rec); err != nil || len(rec.Exchanges) < 50 {
		t.Errorf("%d exchanges, %v", len(rec.Exchanges), err)
	}
	host := strings.TrimPrefix(sh.s.URL, "http://")
	if bytes.Contains(data, []byte(sh.s.Token)) || bytes.Contains(data, []byte(host)) {
		t.Error("the recording holds the token or the host")
	}
	sh.want(0, "recorded in "+file+", without token and host", "", "doctor", "--record", file)
	sh.want(exitUsage, "--record names no file", "", "doctor", "--record", "")
	before := sh.s.Stats().Requests
	sh.want(exitUsage, "is a directory: name a file", "", "doctor", "--record", t.TempDir())
	mine := filepath.Join(t.TempDir(), "notes.json")
	if err := os.WriteFile(mine, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.want(exitUsage, "notes.json is no recording, and was left as it is: name another file", "", "doctor", "--record", mine)
	folder := filepath.Join(t.TempDir(), "misspelt")
	for _, args := range [][]string{
		{"doctor", "--record", filepath.Join(folder, "doctor.json")},
		{"doctor", "--record", filepath.Join(mine, "doctor.json")},
	} {
		says := "no file can be made in " + filepath.Dir(args[2]) + ": "
		if out := sh.want(exitUsage, says, "", args...); out != "" {
			t.Errorf("%s prints %q", args, out)
		}
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("doctor made a folder")
	}
	if after := sh.s.Stats().Requests; after != before {
		t.Errorf("%d requests before the mistake was found", after-before)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("%v are left beside the recording, %v", left, err)
	}
}

// through puts a server in between, which changes requests and answers.
func (sh *shell) through(request func(*http.Request), answer func(*http.Response) error) {
	to, err := url.Parse(sh.s.URL)
	if err != nil {
		sh.t.Fatal(err)
	}
	between := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			request(r.Out)
		},
		ModifyResponse: answer,
		ErrorLog:       log.New(io.Discard, "", 0), // clients leave
	})
	sh.t.Cleanup(between.Close)
	sh.between = true
	sh.env = []string{"UPSTASH_REDIS_REST_URL=" + between.URL, "UPSTASH_REDIS_REST_TOKEN=" + sh.s.Token}
}

// doctor also finds what only headers and encodings show.
func TestDoctorReadsHeaders(t *testing.T) {
	nothing := func(*http.Request) {}
	unchanged := func(*http.Response) error { return nil }
	for name, c := range map[string]struct {
		request        func(sh *shell) func(*http.Request)
		answer         func(*http.Response) error
		check, verdict string
		says           string
		status         int
	}{
		"as it is": {check: "sync token", verdict: found, says: "taken with a read"},
		"no sync token": {
			answer: func(r *http.Response) error { r.Header.Del("Upstash-Sync-Token"); return nil },
			check:  "sync token", verdict: notice, says: "may miss",
		},
		"region": {
			answer: func(r *http.Response) error { r.Header.Set("X-Region", "eu-west-1"); return nil },
			check:  "region", verdict: found, says: "eu-west-1",
		},
		"any token": {
			request: func(sh *shell) func(*http.Request) {
				return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+sh.s.Token) }
			},
			check: "wrong token", verdict: broken, says: "status 200", status: exitDatabase,
		},
		"no base64": {
			request: func(*shell) func(*http.Request) {
				return func(r *http.Request) { r.Header.Del("Upstash-Encoding") }
			},
			check: "base64 of a nested OK", verdict: broken, says: "not", status: exitDatabase,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t)
			request, answer := nothing, unchanged
			if c.request != nil {
				request = c.request(sh)
			}
			if c.answer != nil {
				answer = c.answer
			}
			sh.through(request, answer)
			if f := sh.diagnosis(c.status)[c.check]; f.Verdict != c.verdict || !strings.Contains(f.Says, c.says) {
				t.Errorf("%+v, want %s and %q", f, c.verdict, c.says)
			}
		})
	}
}

// configure sets a parameter of a Redis, which the REST API does not.
func configure(t *testing.T, addr, parameter string) {
	t.Helper()
	redis, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	if _, err := io.WriteString(redis, "CONFIG SET "+parameter+"\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(redis).ReadString('\n'); line != "+OK\r\n" {
		t.Fatal(line, err)
	}
}

// A policy of eviction breaks the promise about "no".
func TestDoctorFindsEviction(t *testing.T) {
	addr := testenv.Redis(t)
	sh := newShell(t, upstashtest.WithRedis(addr))
	if f := sh.diagnosis(0)["eviction"]; f.Verdict != found || f.Says != "off" {
		t.Errorf("%+v", f)
	}
	configure(t, addr, "maxmemory-policy allkeys-lru")
	f := sh.diagnosis(exitDatabase)["eviction"]
	if f.Verdict != broken || !strings.Contains(f.Says, "allkeys-lru") {
		t.Errorf("%+v", f)
	}
}

// doctor says what of upbloom hangs on a check that failed.
func TestDoctorSaysWhatFails(t *testing.T) {
	sh := newShell(t)
	sh.s.DenyFunc(func(command []string) bool { return command[0] == "TIME" })
	sh.want(exitDatabase, "without it fails: all commands with a window; Window\n", "", "doctor")
	found := sh.diagnosis(exitDatabase)
	if found["window"].Needs == "" || found["scalable"].Needs != "" {
		t.Errorf("%+v", found)
	}
}

// "ok window" means that create can make one: it also reads the state.
func TestDoctorJudgesWindowsAsCreateDoes(t *testing.T) {
	sh := newShell(t)
	windows := func(command []string) bool { return command[0] == "BITCOUNT" }
	sh.s.DenyFunc(windows)
	_, _, create := sh.run("", "create", "--items", "1k", "--window", "1h", "key")
	sh.s.DenyFunc(nil)
	sh.want(0, "", "", "rm", "--yes", "key")
	sh.s.DenyFunc(windows)
	if f := sh.diagnosis(exitDatabase)["window"]; create == 0 || f.Verdict != broken {
		t.Errorf("create ends with %d, and doctor says %+v", create, f)
	}
}

// A check that fails after a write leaves no key.
func TestDoctorClearsAfterTheFirstCheck(t *testing.T) {
	sh := newShell(t)
	sh.s.DenyFunc(func(command []string) bool { return command[0] == "GET" })
	sh.diagnosis(exitDatabase)
}

// Only save hangs on COPY.
func TestDoctorWithoutCopy(t *testing.T) {
	sh := newShell(t)
	sh.s.DenyFunc(func(command []string) bool { return command[0] == "EVAL" && strings.Contains(command[1], "'COPY'") })
	if got := failed(sh.diagnosis(exitDatabase)); !slices.Equal(got, []string{"COPY in a script"}) {
		t.Errorf("%q failed", got)
	}
	sh.want(exitDatabase, "without it fails: save of a window, a scalable or a cuckoo filter above 1 MiB; TakeBackup\n", "",
		"doctor")
}

// A server that takes MULTI holds back the commands that follow, until DISCARD.
func TestDoctorDiscardsMulti(t *testing.T) {
	sh := newShell(t)
	before := ""
	var one sync.Mutex // an upload sends several at once
	sh.through(func(r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		one.Lock()
		defer one.Unlock()
		now := string(body)
		if before == `["MULTI"]` && now != `["DISCARD"]` {
			t.Errorf("after MULTI comes %s", now)
		}
		if before = now; now == `["MULTI"]` {
			now = `["PING"]`
		}
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(now)), int64(len(now))
	}, func(*http.Response) error { return nil })
	if f := sh.diagnosis(exitDatabase)["refused commands"]; f.Verdict != broken {
		t.Errorf("%+v", f)
	}
}

// Whatever the database answers, doctor does not panic.
func TestDoctorOfShortAnswers(t *testing.T) {
	for path, answers := range map[string][]string{
		"/":           {`{"result":[]}`},
		"/pipeline":   {`[]`, `[{"result":[]}]`},
		"/multi-exec": {`[]`, `[{"result":"OK"},{"result":"OK"},{"result":[]}]`},
	} {
		for _, answer := range answers {
			sh := newShell(t)
			var n atomic.Int64
			sh.through(func(*http.Request) {}, func(r *http.Response) error {
				if n.Add(1) < 12 || r.Request.URL.Path != path || r.StatusCode != http.StatusOK {
					return nil // doctor must not end with its first check
				}
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(answer)), int64(len(answer))
				r.Header.Del("Content-Length")
				return nil
			})
			if _, errOut, status := sh.run("", "doctor"); status != exitDatabase {
				t.Errorf("%s answers %s: status %d, %s", path, answer, status, errOut)
			}
		}
	}
}

// Over plain http no proxy gets the token, however the host is written.
func TestDoctorSendsNoTokenToAProxy(t *testing.T) {
	got := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
	}))
	defer proxy.Close()
	sh := newShell(t)
	cmd := sh.command("doctor")
	cmd.Env = append(cmd.Env, "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL,
		"UPSTASH_REDIS_REST_URL="+strings.Replace(sh.s.URL, "127.0.0.1", "LOCALHOST", 1))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if len(got) > 0 {
		t.Errorf("the proxy got %q", <-got)
	}
}

// No key of doctor is longer than 1 MiB, unless --large asks for that.
func TestDoctorKeysAreSmall(t *testing.T) {
	sh := newShell(t)
	longest := 0
	sh.s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		v, err := sh.s.Exec("EVAL", "local most = 0 for _, k in ipairs(redis.call('KEYS', '*')) do"+
			" if redis.call('TYPE', k).ok == 'string' then most = math.max(most, redis.call('STRLEN', k)) end"+
			" end return most", "0")
		if err != nil {
			t.Error(err)
		}
		if n, ok := v.(int64); ok {
			longest = max(longest, int(n))
		}
		return upstashtest.Fault{}
	})
	if sh.diagnosis(0); longest < 1000 || longest > 1<<20 {
		t.Errorf("the longest key has %d bytes", longest)
	}
}

// If doctor has written to the database, its exit status is not 2.
func TestDoctorThatCannotPrint(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	defer full.Close()
	cmd := newShell(t).command("doctor")
	cmd.Stdout = full
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != exitUnknown {
		t.Errorf("status %d, want %d", cmd.ProcessState.ExitCode(), exitUnknown)
	}
}

// keys returns the names of all keys, and of those without a TTL.
func (sh *shell) keys() (all, lasting string) {
	sh.t.Helper()
	for into, which := range map[*string]string{&all: "", &lasting: "if redis.call('PTTL', k) < 0 then"} {
		end := strings.Repeat(" end", btoi(which != ""))
		v, err := sh.s.Exec("EVAL", "local found = {} for _, k in ipairs(redis.call('KEYS', '*')) do "+which+
			" found[#found + 1] = k"+end+" end return table.concat(found, ' ')", "0")
		if err != nil {
			sh.t.Fatal(err)
		}
		*into, _ = v.(string)
	}
	return all, lasting
}

// Whatever ends doctor, even a kill, all keys it has made by then expire. A
// cuckoo and a sharded filter cannot be made with a TTL: they get one by the next
// request.
func TestDoctorKeysExpire(t *testing.T) {
	sh := newShell(t)
	made := 0
	sh.s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
		all, lasting := sh.keys()
		made = max(made, strings.Count(all, "upbloom:doctor:"))
		without := strings.HasSuffix(lasting, ":cuckoo") || strings.HasSuffix(lasting, ":sharded:0")
		if lasting != "" && !(without && slices.Equal(r.Commands, []string{"EXPIRE"})) {
			t.Errorf("before request %d, %s: no TTL: %s", n, r.Commands, lasting)
		}
		return upstashtest.Fault{}
	})
	if sh.diagnosis(0, "--large"); made < 5 {
		t.Errorf("only %d keys were seen", made)
	}
}

// stride is from one of doctor's requests to the next that a test strikes: in the
// long form of the tests it is each.
func stride() int64 {
	if testenv.Long() {
		return 1
	}
	return 19
}

// An interrupt leaves no key behind for long, whenever it comes, even if the
// request on its way runs later. If it finds doctor removing its keys, and they
// cannot be removed, doctor says so.
func TestDoctorInterruptedAnywhere(t *testing.T) {
	for _, when := range []upstashtest.When{upstashtest.BeforeExec, upstashtest.AfterExec} {
		for n := int64(1); ; n += stride() {
			sh := newShell(t)
			errOut, request, status := sh.interrupted(n, when, "", "doctor")
			_, lasting := sh.keys()
			stay := emptyTTL
			if strings.Contains(errOut, "may be left: they expire in 10m") || when == upstashtest.AfterExec {
				stay = scratchTTL // the late request may set it
			}
			sh.s.FastForward(stay + time.Second)
			all, _ := sh.keys()
			if request == "" {
				if n < 90 {
					t.Errorf("doctor sends only %d requests", n)
				}
				break
			}
			if status != exitInterrupted || lasting+all != "" {
				t.Errorf("request %d, %s, %v: status %d, and leaves %s; for good %s", n, request, when, status, all, lasting)
			}
		}
	}
}

// A lost answer breaks no promise: it is no FAIL, whichever it is.
func TestDoctorLosesAnAnswer(t *testing.T) {
	for at := int64(1); ; at += stride() {
		sh := newShell(t)
		lost := ""
		sh.s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
			if n != at {
				return upstashtest.Fault{}
			}
			lost = strings.Join(r.Commands, " ")
			return upstashtest.Drop(upstashtest.AfterExec)
		})
		if out, errOut, status := sh.run("", "doctor"); status != 0 {
			t.Errorf("the answer to request %d, %s, is lost: status %d\n%s%s", at, lost, status, out, errOut)
		}
		if lost == "" {
			if at < 90 {
				t.Errorf("doctor sends only %d requests", at)
			}
			return
		}
	}
}

// A request whose answer is lost may run when doctor has ended. It leaves no key
// for longer than the help says.
func TestDoctorLosesARequest(t *testing.T) {
	for at := int64(1); ; at += stride() {
		sh := newShell(t)
		var requests atomic.Int64
		held := make(chan *http.Request, 1)
		sh.through(func(r *http.Request) {
			if requests.Add(1) != at {
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			late := r.Clone(context.Background()) // the other one's context ends with its connection
			late.Body, late.RequestURI = io.NopCloser(bytes.NewReader(body)), ""
			held <- late
			panic(http.ErrAbortHandler)
		}, func(*http.Response) error { return nil })
		out, errOut, status := sh.run("", "doctor")
		select {
		case late := <-held:
			answer, err := http.DefaultClient.Do(late)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
		default:
			if at < 90 {
				t.Errorf("doctor sends only %d requests", at)
			}
			return
		}
		all, lasting := sh.keys()
		sh.s.FastForward(time.Hour + time.Second)
		if left, _ := sh.keys(); status != 0 || lasting+left != "" {
			t.Errorf("request %d is late: status %d, leaves %s; for good %s\n%s%s", at, status, all, lasting, out, errOut)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// doctor reports the limits as numbers: those that a refusal names, or what it
// tried.
func TestDoctorFindsLimits(t *testing.T) {
	const request, record = "limit of a request", "limit of a record"
	unnamed := func(sh *shell) {
		sh.through(func(*http.Request) {}, func(r *http.Response) error {
			if r.StatusCode == http.StatusRequestEntityTooLarge {
				r.Body = io.NopCloser(strings.NewReader("too large"))
				r.ContentLength = -1
				r.Header.Del("Content-Length")
			}
			return nil
		})
	}
	for name, c := range map[string]struct {
		maxRequest, maxRecord int64
		large, unnamed        bool
		check, verdict, says  string
	}{
		"enough":          {10 << 20, 1e8, false, false, request, found, "at least 8 MiB; --large asks for 16 MiB"},
		"named":           {10 << 20, 1e8, true, false, request, found, "10,485,760 bytes"},
		"unnamed":         {10<<20 + 1000, 1e8, true, true, request, found, "between 10 and 11 MiB"},
		"all":             {20 << 20, 1e8, true, false, request, found, "at least 16 MiB"},
		"small":           {3e6, 1e8, false, false, request, notice, "3,000,000 bytes: leave MovePartBytes at 1 MiB"},
		"small, unnamed":  {3e6, 1e8, false, true, request, notice, "between 2 and 3 MiB: leave MovePartBytes"},
		"not asked":       {10 << 20, 5e7, false, false, record, notAsked, "--large checks it"},
		"record":          {10 << 20, 5e7, true, false, record, found, "between 50 and 51 MB"},
		"record in plans": {10 << 20, 1e8, true, false, record, found, "at least 100 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, upstashtest.WithMaxRequest(c.maxRequest), upstashtest.WithMaxRecord(c.maxRecord))
			var args []string
			if c.large {
				args = append(args, "--large")
			}
			if c.unnamed {
				unnamed(sh)
			}
			f := sh.diagnosis(0, args...)[c.check]
			if f.Verdict != c.verdict || !strings.HasPrefix(f.Says, c.says) {
				t.Errorf("%+v, want %s and %q", f, c.verdict, c.says)
			}
		})
	}
}

// A limit below one step is only called that, and another error is no limit.
func TestLargest(t *testing.T) {
	other := errors.New("no answer")
	for _, tt := range []struct {
		limit  uint64
		beyond error
		says   string
		err    error
	}{
		{700_000, upstash.ErrRequestTooLarge, "less than 1 MiB", nil},
		{5 << 20, upstash.ErrRequestTooLarge, "between 5 and 6 MiB", nil},
		{8 << 20, upstash.ErrRequestTooLarge, "at least 8 MiB", nil},
		{5 << 20, other, "", other},
	} {
		s, err := largest(8<<20, 1<<20, upstash.ErrRequestTooLarge, func(n uint64) error {
			if n > tt.limit {
				return tt.beyond
			}
			return nil
		})
		if !errors.Is(err, tt.err) || err == nil && s.text(1<<20, "MiB") != tt.says {
			t.Errorf("a limit of %d: %+v, %v, want %q, %v", tt.limit, s, err, tt.says, tt.err)
		}
	}
}
