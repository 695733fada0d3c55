package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// diagnosis runs doctor and returns its findings by the names of the checks.
func (sh *shell) diagnosis(status int, args ...string) map[string]finding {
	sh.t.Helper()
	found := sh.findings(status, args...)
	if sh.between {
		sh.s.FastForward(emptyTTL + time.Second) // an answer may be lost there
	}
	sh.wantKeys("")
	return found
}

func (sh *shell) findings(status int, args ...string) map[string]finding {
	sh.t.Helper()
	found := make(map[string]finding)
	out := sh.want(status, "", "", append([]string{"--json", "doctor"}, args...)...)
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var f finding
		decode(sh.t, line, &f)
		found[f.Check] = f
	}
	return found
}

// wantFailed runs doctor, which must find FAIL in these checks, and in no others.
func (sh *shell) wantFailed(want ...string) (found map[string]finding) {
	sh.t.Helper()
	status := 0
	if len(want) > 0 {
		status = exitDatabase
	}
	var failed []string
	found = sh.diagnosis(status)
	for name, f := range found {
		if f.Verdict == broken {
			failed = append(failed, name)
		}
		if (f.Needs != "") != (f.Verdict == broken) {
			sh.t.Errorf("%+v: what hangs on it is said of a FAIL alone", f)
		}
	}
	if slices.Sort(failed); !slices.Equal(failed, want) {
		sh.t.Errorf("%q failed, want %q", failed, want)
	}
	return found
}

// wantFinding runs doctor, and checks one of its findings.
func (sh *shell) wantFinding(check, verdict, says string, args ...string) {
	sh.t.Helper()
	status := 0
	if verdict == broken {
		status = exitDatabase
	}
	if f := sh.diagnosis(status, args...)[check]; f.Verdict != verdict || !strings.HasPrefix(f.Says, says) {
		sh.t.Errorf("%+v, want %s and %q", f, verdict, says)
	}
}

// denies has the database refuse a command, as the rules of a token do.
func (sh *shell) denies(name string) {
	sh.s.DenyFunc(func(command []string) bool { return command[0] == name })
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
			found := sh.wantFailed()
			if len(found) != len(checks()) {
				t.Errorf("%d findings, want %d", len(found), len(checks()))
			}
			if f := found["read-only token"]; f.Verdict != notAsked {
				t.Errorf("%+v, want it skipped", f)
			}
			clock := strings.Fields(found["clock"].Says) // this machine's is 1ms ahead of ..., give or take 2ms
			away, err := time.ParseDuration(clock[3])
			most, mostErr := time.ParseDuration(clock[len(clock)-1])
			if err != nil || mostErr != nil || away > most {
				t.Errorf("one clock is away from itself: %q", clock)
			}
			sh.env = append(sh.env, "UPSTASH_REDIS_REST_READONLY_TOKEN="+sh.s.ReadOnlyToken)
			sh.wantFinding("read-only token", "ok", "looks up, and cannot write")
			sh.wantFinding("refusals of a script", "ok", `no such text: "NOSCRIPT No matching script. Please use EVAL."; `+
				`no such command: "ERR Command is not available: 'UPBLOOMNOSUCHCOMMAND'.`)
		})
	}
}

// doctor finds what a database does differently, says what hangs on it, and its exit
// status shows it.
func TestDoctorOfASickDatabase(t *testing.T) {
	for denied, want := range map[string][]string{
		"EVAL":    {"COPY in a script", "cuckoo", "filter", "scalable", "script", "sharded", "window"},
		"EVAL_RO": {"cuckoo", "script that only reads"},
		"EVALSHA": nil,
		"TIME":    {"window"},
		"GET":     {checkConnection}, // after a write
		// "ok window" means that create can make one: it also reads the state.
		"BITCOUNT": {"BITCOUNT by bits", "filter", "scalable", "sharded", "window"},
	} {
		sh := newShell(t)
		sh.denies(denied)
		sh.wantFailed(want...)
	}
	sh := newShell(t) // only save hangs on COPY
	sh.s.DenyFunc(func(command []string) bool { return command[0] == "EVAL" && strings.Contains(command[1], "'COPY'") })
	sh.wantFailed("COPY in a script")
	sh.want(exitDatabase, "without it fails: save of a window, a scalable or a cuckoo filter above 1 MiB; TakeBackup\n", "", "doctor")
	newShell(t, upstashtest.WithMaxRequest(2<<20)).wantFailed()
	newShell(t, upstashtest.WithMaxRequest(64<<10)).wantFailed(
		"BITCOUNT by bits", "BITFIELD of 10,000 operations", "BITFIELD_RO at offset 2^32-1", "RESP2, any bytes",
		"base64, any bytes", "raw body, any bytes")
	sh = newShell(t)
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) (f upstashtest.Fault) {
		if slices.Equal(r.Commands, []string{"BITCOUNT"}) {
			f = upstashtest.WrongType()
		}
		return f
	})
	sh.wantFailed("BITCOUNT by bits")
}

// What doctor says to fail without a command of Redis are the commands that fail.
func TestDoctorSaysWhatFails(t *testing.T) {
	for _, denied := range []string{"EVAL", "EVAL_RO", "BITCOUNT", "TIME"} {
		sh := newShell(t)
		for kind, flags := range map[string]string{
			"filter": "-n 1k", "window": "-n 1k --window 1h", "scalable": "-n 1k --scalable", "cuckoo": "-n 1k --cuckoo",
			"sharded": "-n 1k --shards 1", "large": "-n 2M", "large-cuckoo": "-n 2M --cuckoo",
		} {
			sh.want(0, "created", "", append([]string{"create", kind}, strings.Fields(flags)...)...)
			sh.want(0, "", "", "add", kind, "a")
		}
		sh.exec("SETBIT", "large", "10000000", "0")
		file := filepath.Join(t.TempDir(), "saved")
		list := fileOf(t, "list", "a\nb\n")
		sh.want(0, "saved", "", "save", "filter", file)
		sh.s.FastForward(24 * time.Hour)
		sh.denies(denied)
		var listed []string
		for _, f := range sh.findings(exitDatabase) {
			commands, _, _ := strings.Cut(f.Needs, ";")
			listed = append(listed, strings.Split(commands, ", ")...)
			if strings.HasPrefix(f.Says, "not told, and a Window cannot be written without it") {
				listed = append(listed, "add of a window") // of a note
			}
		}
		for _, c := range []struct{ command, says string }{
			{"create -n 1k new", "create|create of all but a cuckoo filter"},
			{"create -n 1k --cuckoo new-cuckoo", "create|create and info of a cuckoo filter"},
			{"create -n 1k --window 1h new-window", "create|create of all but a cuckoo filter|create of a window"},
			{"add filter c", "add|add of a plain filter"},
			{"add scalable c", "add to a scalable filter"},
			{"add cuckoo c", "add to a cuckoo filter"},
			{"add sharded c", "add to a sharded filter"},
			{"add window c", "add to a window in its next epoch|add of a window"},
			{"check filter a", "check"},
			{"check window a", "check"},
			{"info filter", "info"},
			{"info window", "info|create and info of a window"},
			{"info cuckoo", "info|create and info of a cuckoo filter"},
			{"ls", "ls"},
			{"save filter " + file, "save"},
			{"save large " + file + "2", "save above 1 MiB"},
			{"save large-cuckoo " + file + "3", "save above 1 MiB|save of a window"},
			{"load filter " + list, "load"},
			{"replace --yes filter " + list, "replace"},
			{"restore --replace --yes filter " + file, "restore"},
			{"restore copy " + file, "restore"},
			{"ttl filter", "ttl"},
			{"ttl filter 1h", "ttl with a TIME"},
			{"remove cuckoo a", "remove"},
			{"rm --yes filter", "rm"},
			{"rm --yes --match scalable", "rm|rm --match"},
		} {
			_, errOut, status := sh.here("", strings.Fields(c.command)...)
			isListed := slices.ContainsFunc(strings.Split(c.says, "|"), func(s string) bool { return slices.Contains(listed, s) })
			if fails := status > exitNo; fails != isListed {
				t.Errorf("without %s, %s: status %d, and doctor says that it fails: %v\n%s", denied, c.command, status, isListed, errOut)
			}
		}
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
	sh.diagnosis(0, "--record", file)
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
	sh.want(0, "recorded in "+file+", without token and host", "", "--quiet", "doctor", "--record", file)
	sh.want(exitUsage, "--record names no file", "", "doctor", "--record", "")
	before := sh.s.Stats().Requests
	sh.want(exitUsage, "is a directory: name a file", "", "doctor", "--record", t.TempDir())
	mine := fileOf(t, "notes.json", "{}")
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

// doctor also finds what only headers and encodings show.
func TestDoctorReadsHeaders(t *testing.T) {
	sh := newShell(t)
	sh.wantFinding("sync token", found, "sent with a write, taken with a read")
	sh.through(nil, func(r *http.Response) { r.Header.Del("Upstash-Sync-Token") })
	sh.wantFinding("sync token", notice, "none: if the database has read regions, one of them may miss")
	sh.through(nil, func(r *http.Response) { r.Header.Set("X-Region", "eu-west-1") })
	sh.wantFinding("region", found, "X-Region: eu-west-1")
	sh.through(func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+sh.s.Token) }, nil)
	sh.wantFinding("wrong token", broken, "another answer than Redis gives: status 200")
	sh.through(nil, func(r *http.Response) { // as a proxy that has the tokens may answer
		if r.StatusCode == http.StatusUnauthorized {
			r.StatusCode = http.StatusForbidden
			answerWith(r, `{"error":"no such token"}`)
		}
	})
	sh.wantFinding("wrong token", found, "status 403")
	sh.through(func(r *http.Request) { r.Header.Del("Upstash-Encoding") }, nil)
	sh.wantFinding("base64 of a nested OK", broken, "another answer than Redis gives: base64 was asked for")
	for path, what := range map[string]string{"/": "a command", "/pipeline": "a pipeline", "/multi-exec": "a transaction"} {
		sh.through(func(r *http.Request) {
			if r.URL.Path == path && r.Header.Get("Upstash-Response-Format") == "" {
				r.Header.Del("Upstash-Encoding")
			}
		}, func(r *http.Response) {
			// What is in RESP2 is asked for by another header.
			if path == "/" && r.Request.Header.Get("Upstash-Response-Format") != "" && r.ContentLength < 100 {
				answerWith(r, "$3\r\nABC\r\n")
			}
		})
		sh.wantFinding("base64 wherever it is asked for", broken, "another answer than Redis gives: "+what+" is answered as if")
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
	sh.wantFinding("eviction", found, "off")
	configure(t, addr, "maxmemory-policy allkeys-lru")
	sh.wantFinding("eviction", broken, `"allkeys-lru": after an eviction`)
}

// No question of doctor changes a connection, which a proxy may share among many.
func TestDoctorLeavesConnectionsAlone(t *testing.T) {
	sh := newShell(t)
	var one sync.Mutex
	asked := make(map[string]bool)
	sh.through(func(r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		one.Lock()
		defer one.Unlock()
		for _, word := range strings.FieldsFunc(string(body[:min(len(body), 1000)]), func(r rune) bool {
			return r == '"' || r == '[' || r == ','
		}) {
			asked[strings.ToUpper(word)] = true
		}
	}, nil)
	sh.diagnosis(0)
	for _, name := range []string{
		"MULTI", "WATCH", "SELECT", "AUTH", "HELLO", "CLIENT", "SUBSCRIBE", "PSUBSCRIBE", "MONITOR", "RESET", "QUIT",
	} {
		if asked[name] {
			t.Errorf("doctor sends %s", name)
		}
	}
	if !asked["GET"] || !asked["UPBLOOMNOSUCHCOMMAND"] {
		t.Errorf("the commands were not seen: %v", asked)
	}
}

// A connection that another program holds is no fault of the types, whenever it is
// met, and doctor says what it is.
func TestDoctorMeetsATransactionLeftOpen(t *testing.T) {
	for _, after := range []int64{0, 12, 40, 100} {
		sh := newShell(t)
		var n atomic.Int64
		sh.through(nil, func(r *http.Response) {
			// Of three connections one is held.
			if i := n.Add(1); i > after && i%3 == 0 && r.StatusCode == http.StatusOK && r.Request.URL.Path == "/" {
				answerWith(r, `{"result":"QUEUED"}`)
				r.Header.Set("Content-Type", "application/json")
			}
		})
		out, errOut, status := sh.here("", "doctor")
		if status != exitDatabase || strings.Contains(out, "without it fails") || !strings.Contains(errOut, "answers QUEUED") ||
			strings.Count(out, broken) > 1 || strings.Contains(out, broken) && !strings.Contains(out, checkHeld) {
			t.Errorf("after %d: status %d, %s%s", after, status, out, errOut)
		}
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
			sh.through(nil, func(r *http.Response) {
				if n.Add(1) >= 12 && r.Request.URL.Path == path && r.StatusCode == http.StatusOK {
					answerWith(r, answer) // doctor must not end with its first check
				}
			})
			if _, errOut, status := sh.here("", "doctor"); status != exitDatabase {
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

// The demo has its own token for reads: doctor sends nothing to the database of
// the environment.
func TestDoctorOfTheDemo(t *testing.T) {
	sh := newShell(t)
	sh.env = append(sh.env, "UPSTASH_REDIS_REST_READONLY_TOKEN="+sh.s.ReadOnlyToken)
	out := sh.want(0, "", "", "--demo", "--json", "doctor")
	if n := sh.s.Stats().Requests; n != 0 {
		t.Errorf("%d requests to the database of the environment", n)
	}
	want := `{"check":"read-only token","verdict":"ok","says":"looks up, and cannot write"}`
	if !strings.Contains(out, want) {
		t.Errorf("%s, want %s", out, want)
	}
}

// Whatever ends doctor, even a kill, all keys it has made by then expire. A
// cuckoo and a sharded filter cannot be made with a TTL: they get one by the next
// request. No key is longer than 1 MiB, unless --large asks for that.
func TestDoctorKeysExpire(t *testing.T) {
	sh := newShell(t)
	for _, flags := range [][]string{nil, {"--large"}} {
		made, longest := 0, int64(0)
		sh.s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
			all, lasting := sh.keys()
			made = max(made, strings.Count(all, "upbloom:doctor:"))
			without := strings.HasSuffix(lasting, ":cuckoo") || strings.HasSuffix(lasting, ":sharded:0")
			if lasting != "" && !(without && slices.Equal(r.Commands, []string{"EXPIRE"})) {
				t.Errorf("before request %d, %s: no TTL: %s", n, r.Commands, lasting)
			}
			most, _ := sh.exec("EVAL", "local most = 0 for _, k in ipairs(redis.call('KEYS', '*')) do"+
				" if redis.call('TYPE', k).ok == 'string' then most = math.max(most, redis.call('STRLEN', k)) end"+
				" end return most", "0").(int64)
			longest = max(longest, most)
			return upstashtest.Fault{}
		})
		if sh.diagnosis(0, flags...); made < 5 || longest < 1000 || (longest > 1<<20) != (flags != nil) {
			t.Errorf("%q: %d keys, the longest with %d bytes", flags, made, longest)
		}
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

// sickbed is a database for tests that strike each of doctor's requests in turn.
// To find a limit of 2 MiB takes a few requests, and not 20 MB.
func sickbed(t *testing.T) *shell { return newShell(t, upstashtest.WithMaxRequest(2<<20)) }

// An interrupt leaves no key behind for long, whenever it comes, even if the
// request on its way runs later. If it finds doctor removing its keys, and they
// cannot be removed, doctor says so.
func TestDoctorInterruptedAnywhere(t *testing.T) {
	for _, when := range []upstashtest.When{upstashtest.BeforeExec, upstashtest.AfterExec} {
		for n := int64(1); ; n += stride() {
			sh := sickbed(t)
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

// A network that loses, breaks or replaces answers breaks no promise of the
// database. Each check is made, and printed once, in order; what got no answer is
// said to have got none.
func TestDoctorOnABrokenNetwork(t *testing.T) {
	html := func(status int) func(*http.Response) {
		return func(r *http.Response) {
			r.StatusCode = status
			answerWith(r, "<html><body>Something is wrong</body></html>")
			r.Header.Set("Content-Type", "text/html")
		}
	}
	share := func(of float64) func(int64) bool {
		random := rand.New(rand.NewPCG(7, 11))
		var one sync.Mutex
		return func(int64) bool {
			one.Lock()
			defer one.Unlock()
			return random.Float64() < of
		}
	}
	every := func(of int64) func(int64) bool { return func(n int64) bool { return n%of == 0 } }
	lose := func(*http.Response) { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		name string
		when func(n int64) bool
		does func(*http.Response)
	}{
		{"3% are lost", share(0.03), lose},
		{"20% are lost", share(0.2), lose},
		{"every fifth is lost", every(5), lose},
		{"every other is lost", every(2), lose},
		{"20% are cut short", share(0.2), func(r *http.Response) {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(io.LimitReader(r.Body, 5), iotest.ErrReader(http.ErrAbortHandler)), r.Body}
		}},
		{"20% are cut short, and end well", share(0.2), func(r *http.Response) { answerWith(r, `{"resu`) }},
		{"20% are empty", share(0.2), func(r *http.Response) { answerWith(r, "") }},
		{"20% are 429", share(0.2), func(r *http.Response) {
			r.StatusCode = http.StatusTooManyRequests
			answerWith(r, `{"error":"ERR max requests per second limit exceeded"}`)
		}},
		{"20% are 502", share(0.2), html(http.StatusBadGateway)},
		{"20% are 403", share(0.2), html(http.StatusForbidden)},
		{"20% are a page with 200", share(0.2), html(http.StatusOK)},
	} {
		t.Run(c.name, func(t *testing.T) {
			sh := sickbed(t)
			var n atomic.Int64
			sh.through(nil, func(r *http.Response) {
				if c.when(n.Add(1)) {
					c.does(r)
				}
			})
			out, errOut, status := sh.here("", "doctor")
			var names []string
			unanswered := false
			for line := range strings.Lines(out) {
				verdict, _, _ := strings.Cut(line, " ")
				if verdict == broken {
					t.Errorf("blames the database: %s", line)
				}
				unanswered = unanswered || verdict == notAsked && strings.Contains(line, errLost.Error())
				if slices.Contains([]string{found, notice, notAsked, broken}, verdict) {
					names = append(names, strings.TrimSpace(line[9:42]))
				}
			}
			var want []string
			for _, c := range checks() {
				want = append(want, c.name)
			}
			if !slices.Equal(names, want) {
				t.Errorf("the checks were %q", names)
			}
			if wantStatus := map[bool]int{true: exitDatabase}[unanswered]; status != wantStatus {
				t.Errorf("status %d, want %d\n%s%s", status, wantStatus, out, errOut)
			}
			// The client tries again for 10% of its calls, and else for none.
			if strings.Contains(errOut, "may be left") && c.name != "every other is lost" {
				t.Error(errOut)
			}
			_, lasting := sh.keys()
			if sh.s.FastForward(time.Hour); lasting != "" {
				t.Errorf("stays for good: %s", lasting)
			}
		})
	}
}

// If the database answers no more, doctor ends.
func TestDoctorWhenTheNetworkEnds(t *testing.T) {
	sh := sickbed(t)
	var n atomic.Int64
	sh.through(nil, func(*http.Response) {
		if n.Add(1) > 40 {
			panic(http.ErrAbortHandler)
		}
	})
	out, errOut, status := sh.here("", "doctor")
	if status != exitDatabase || strings.Contains(out, broken) || strings.Count(out, errLost.Error()) != 1 ||
		!strings.Contains(errOut, "the database does not answer: ") || !strings.Contains(errOut, "may be left") {
		t.Errorf("status %d, %s%s", status, out, errOut)
	}
}

// The same answer each time is the server's own, also without Redis's words.
func TestDoctorOfAServerWithoutTransactions(t *testing.T) {
	sh := newShell(t)
	sh.through(nil, func(r *http.Response) {
		if r.Request.URL.Path == "/multi-exec" {
			r.StatusCode = http.StatusNotFound
			answerWith(r, "not found")
		}
	})
	sh.wantFinding("transaction", broken, "MULTI-EXEC: no message from the REST API (9 bytes")
}

// A request whose answer is lost may run when doctor has ended. It leaves no key
// for longer than the help says.
func TestDoctorLosesARequest(t *testing.T) {
	for at := int64(1); ; at += stride() {
		sh := sickbed(t)
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
		}, nil)
		out, errOut, status := sh.here("", "doctor")
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

// doctor reports the limits as numbers: those that a refusal names, or what it
// tried.
func TestDoctorFindsLimits(t *testing.T) {
	const request, record = "limit of a request", "limit of a record"
	for _, c := range []struct {
		most    int64 // bytes of a request
		unnamed bool  // in the refusal
		verdict string
		says    string
		flags   []string
	}{
		{10 << 20, false, found, "at least 8 MiB; --large asks for 16 MiB", nil},
		{10 << 20, false, found, "10,485,760 bytes", []string{"--large"}},
		{20 << 20, false, found, "at least 16 MiB", []string{"--large"}},
		{3e6, false, notice, "3,000,000 bytes: set upstash.WithMaxRequest(3000000)", nil},
		{3e6, true, notice, "between 2 and 3 MiB: set upstash.WithMaxRequest(2097152)", nil},
	} {
		sh := newShell(t, upstashtest.WithMaxRequest(c.most))
		if c.unnamed {
			sh.through(nil, func(r *http.Response) {
				if r.StatusCode == http.StatusRequestEntityTooLarge {
					answerWith(r, "too large")
				}
			})
		}
		sh.wantFinding(request, c.verdict, c.says, c.flags...)
	}
	newShell(t).wantFinding(record, notAsked, "--large checks it")
	newShell(t).wantFinding(record, found, "at least 100 MB", "--large")
	newShell(t, upstashtest.WithMaxRecord(5e7)).wantFinding(record, found, "between 50 and 51 MB", "--large")
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
