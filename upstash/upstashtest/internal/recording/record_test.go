package recording_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

var noPause = upstash.WithBackoff(0, 0)

// recordThenReplay runs f against the server while recording, and then against
// the recording. What f returns must be the same both times, and so must the statuses
// of all attempts. recordThenReplay returns the file.
func recordThenReplay(t *testing.T, url, token string, f func(c *upstash.Client) string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recording.json")
	run := func(open func(testing.TB, upstash.Option) *upstash.Client) (saw string) {
		var mu sync.Mutex
		var statuses []int
		faketest.Run(func(tb testing.TB) {
			saw = f(open(tb, upstash.WithObserver(func(_ context.Context, e upstash.Event) {
				mu.Lock()
				defer mu.Unlock()
				statuses = append(statuses, e.StatusCode)
			})))
		}).WantFailures(t)
		slices.Sort(statuses) // some requests overlap
		return fmt.Sprint(saw, "\nstatuses ", statuses)
	}
	live := run(func(tb testing.TB, o upstash.Option) *upstash.Client {
		return recording.Record(tb, file, url, token, noPause, o)
	})
	replayed := run(func(tb testing.TB, o upstash.Option) *upstash.Client { return recording.Replay(tb, file, o) })
	if live != replayed {
		t.Errorf("replayed, got\n%s\nwant, as it was live,\n%s", replayed, live)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// everyForm sends a command in each form and returns all answers.
func everyForm(t *testing.T, c *upstash.Client) string {
	t.Helper()
	var seen []string
	note := func(r upstash.Reply, err error) {
		b, bytesErr := r.Bytes()
		n, intErr := r.Int64()
		seen = append(seen, fmt.Sprintf("%q %v %d %v nil=%v %v",
			b, bytesErr != nil, n, intErr != nil, r.IsNil(), err))
	}
	call := func(cmd upstash.Command) { note(c.Do(t.Context(), cmd)) }
	call(upstash.Cmd("SET", "html", "<b>&amp; \"é\" \u2028 \x00 \n</b>"))
	call(upstash.Cmd("GET", "html"))
	call(upstash.Cmd("SET", "n", "9223372036854775806"))
	call(upstash.Cmd("INCR", "n"))
	call(upstash.Cmd("INCR", "html")) // fails
	call(upstash.Cmd("GET", "none"))
	call(upstash.Cmd("SETBIT", "bytes", "0", "1")) // 0x80 is not UTF-8
	call(upstash.Cmd("GET", "bytes"))
	call(upstash.Cmd("GET", "bytes").Binary())
	call(upstash.RawCmd("SETRANGE", []byte("\xff"), "a key/1", "2"))
	for _, send := range []func() ([]upstash.Reply, error){
		func() ([]upstash.Reply, error) {
			return c.Pipeline(t.Context(), upstash.Cmd("GET", "bytes").Binary(), upstash.Cmd("INCR", "html"))
		},
		func() ([]upstash.Reply, error) {
			return c.MultiExec(t.Context(), upstash.Cmd("STRLEN", "html"), upstash.Cmd("GET", "html"))
		},
	} {
		replies, err := send()
		for _, r := range replies {
			note(r, err)
		}
	}
	return strings.Join(seen, "\n")
}

func TestRecordEveryForm(t *testing.T) {
	server := upstashtest.NewServer(t)
	f := func(c *upstash.Client) string { return everyForm(t, c) }
	first := recordThenReplay(t, server.URL, server.Token, f)
	for _, want := range []string{
		`"body": ["SET","html","<b>&amp; \"é\" ` + "\u2028" + ` \u0000 \n</b>"]`,
		`"body": {"result":9223372036854775807}`,
		`"encoding": "resp2"`,
		`"path": "/setrange/a%20key%2f1/2"`,
		`"contentType": "application/octet-stream",`,
		`"base64": "` + base64.StdEncoding.EncodeToString([]byte("$1\r\n\x80\r\n")) + `"`,
		"\"body\": [\n          [\"GET\",\"bytes\"],\n          [\"INCR\",\"html\"]\n        ]",
		"\"body\": [\n          {\"result\":\"gA==\"},\n          {\"error\":",
	} {
		if !bytes.Contains(first, []byte(want)) {
			t.Errorf("the file has not\n%s\nin it:\n%s", want, first)
		}
	}
	host := strings.TrimPrefix(server.URL, "http://")
	wantNone(t, first, server.Token, server.ReadOnlyToken, host, "Bearer", "uthorization", "Date", "ync")

	server.FlushAll()
	if second := recordThenReplay(t, server.URL, server.Token, f); !bytes.Equal(first, second) {
		t.Errorf("recorded again, got\n%s\nwant\n%s", second, first)
	}
}

// wantNone checks that a file has no secret.
func wantNone(t *testing.T, file []byte, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		if bytes.Contains(file, []byte(secret)) {
			t.Errorf("the file has %q, want no secret:\n%s", secret, file)
		}
	}
}

// TestRecordPartsOfABatch has a batch in several requests. They overlap, and a
// replay may send them in another order.
func TestRecordPartsOfABatch(t *testing.T) {
	server := upstashtest.NewServer(t)
	items := make([]string, 400)
	for i := range items {
		items[i] = fmt.Sprint("item ", i)
	}
	data := recordThenReplay(t, server.URL, server.Token, func(c *upstash.Client) string {
		f, err := bloom.New(c, "seen", bloom.Config{Capacity: 1000, FPRate: 1e-9})
		if err != nil {
			return err.Error()
		}
		door.SetBatch(f, 4000, 0)
		_, addErr := f.AddAll(t.Context(), items)
		found, findErr := f.ExistsAll(t.Context(), append(items, "never added"))
		return fmt.Sprint(addErr, found, findErr)
	})
	if n := bytes.Count(data, []byte(`"request":`)); n < 20 {
		t.Errorf("the recording has %d requests, want at least 20", n)
	}
}

// TestRecordRetries: each attempt of a call is recorded. The server answers only the
// fifth. The recording drops the white space around its JSON, which changes nothing.
func TestRecordRetries(t *testing.T) {
	var attempts atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch attempts.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("<html>busy</html>"))
		case 4: // cut short
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"result":`))
		default:
			w.Header().Set("Set-Cookie", "session=cookie-secret")
			w.Header().Set("Upstash-Sync-Token", "sync-secret")
			_, _ = w.Write([]byte(" \r\n{\"result\" : [\"a\", 1]}\n"))
		}
	}))
	defer server.Close()
	data := recordThenReplay(t, server.URL+"/base/", "token-secret", func(c *upstash.Client) string {
		r, err := c.Do(t.Context(), upstash.Cmd("HGETALL", "k").Binary())
		m, mapErr := r.Map()
		if err != nil || mapErr != nil || len(m) != 1 {
			t.Errorf("got %v, %v, %v, want an answer", m, err, mapErr)
		}
		return fmt.Sprint(m)
	})
	for want, times := range map[string]int{
		`"retryAfter": "0"`: 1, `"status": 429`: 1, `"text": "<html>busy</html>"`: 1,
		`"failure": "no answer"`: 2, `"body": {"result":["a",1]}`: 1,
	} {
		if n := bytes.Count(data, []byte(want)); n != times {
			t.Errorf("%s occurs %d times, want %d, in\n%s", want, n, times, data)
		}
	}
	wantNone(t, data, "secret", "127.0.0.1", "/base", "ookie")
}

func TestRecordNeverSent(t *testing.T) {
	url := "http://" + testenv.ClosedAddr(t)
	data := recordThenReplay(t, url, "token-secret", func(c *upstash.Client) string {
		_, err := c.Do(t.Context(), upstash.Cmd("INCR", "n"))
		return fmt.Sprint(upstash.SafeToRetry(err))
	})
	if n := bytes.Count(data, []byte(`"failure": "not sent"`)); n != 5 {
		t.Errorf("%d attempts that were not sent, want 5:\n%s", n, data)
	}
}

// TestRecordRefusesSecrets has secrets in bodies. Then no file is written.
func TestRecordRefusesSecrets(t *testing.T) {
	server := upstashtest.NewServer(t, upstashtest.WithToken("Token-Secret"))
	host := strings.TrimPrefix(server.URL, "http://")
	one := func(item string) []upstash.Command { return []upstash.Command{upstash.Cmd("SET", "a", item)} }
	const token = "the token occurs"
	tests := map[string]struct {
		cmds []upstash.Command
		want string
	}{
		"token": {[]upstash.Command{upstash.Cmd("SET", "a", "my token-secret")}, token},
		"host":  {[]upstash.Command{upstash.Cmd("ECHO", server.URL)}, "the host occurs"},
		"within a path": {
			[]upstash.Command{upstash.RawCmd("SET", []byte("x"), server.URL)}, "the host occurs",
		},
		"within base64": {
			[]upstash.Command{
				upstash.Cmd("APPEND", "b", host[:9]), upstash.Cmd("APPEND", "b", host[9:]),
				upstash.Cmd("SETBIT", "b", "800", "1"), upstash.Cmd("GET", "b").Binary(),
			},
			"the host occurs",
		},
		"within the base64 of an answer": {
			[]upstash.Command{
				upstash.Cmd("APPEND", "c", "a Token-"), upstash.Cmd("APPEND", "c", "Secret b"),
			},
			token,
		},
		"as Basic":       {one("Basic " + base64.StdEncoding.EncodeToString([]byte("default:Token-Secret"))), token},
		"as base64url":   {one(base64.RawURLEncoding.EncodeToString([]byte("\xff\xfeToken-Secret"))), token},
		"base64 in path": {one("/a/" + base64.StdEncoding.EncodeToString([]byte("x:Token-Secret"))), token},
		"URL-escaped":    {one("https://x/?_token=Token%2DSecret&100%"), token},
		"JSON in JSON":   {one(`{"a":"{\"token\":\"T\\u006fken-Secret\"}"}`), token},
		"base64 of JSON": {
			one(base64.StdEncoding.EncodeToString([]byte(`{"token":"\u0054oken%2dSecret"}`))), token,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := server.Client().Del(t.Context(), "a", "b", "c"); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "recording.json")
			fake := faketest.Run(func(tb testing.TB) {
				c := recording.Record(tb, file, server.URL, server.Token)
				for _, cmd := range test.cmds {
					if _, err := c.Do(t.Context(), cmd); err != nil {
						t.Error(err)
					}
				}
				read := upstash.Cmd("GET", "c").Binary() // base64 in a batch
				if _, err := c.Pipeline(t.Context(), read, upstash.Cmd("PING")); err != nil {
					t.Error(err)
				}
			})
			fake.WantFailures(t, file+" is not written: "+test.want)
			wantNoFile(t, file)
		})
	}
}

func wantNoFile(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat of the recording: %v, want no file", err)
	}
}

func TestRecordLeavesTheFileOfAFailedTest(t *testing.T) {
	server := upstashtest.NewServer(t)
	file := writeFile(t, "old")
	fake := faketest.Run(func(tb testing.TB) {
		c := recording.Record(tb, file, server.URL, server.Token)
		_, err := c.Do(t.Context(), cmdGetA)
		tb.Errorf("failed, %v", err)
	})
	fake.WantFailures(t, "failed, <nil>")
	if got, err := os.ReadFile(file); string(got) != "old" {
		t.Errorf("after a failed test the file is %q, %v, want the old one", got, err)
	}
}

func TestRecordErrors(t *testing.T) {
	server := upstashtest.NewServer(t)
	notDir := writeFile(t, "")
	faketest.Run(func(tb testing.TB) {
		recording.Record(tb, filepath.Join(notDir, "x.json"), server.URL, server.Token)
	}).WantFailures(t, "writing the recording")
	faketest.Run(func(tb testing.TB) {
		recording.Record(tb, notDir, "redis://x", "token")
		t.Error("the test went on")
	}).WantFailures(t, "making a client to record with: upstash: bad argument: URL")
	faketest.Run(func(tb testing.TB) { recording.Record(tb, "", server.URL, server.Token) }).
		WantFailures(t, "the recording has no name: name a file")
	faketest.Run(func(tb testing.TB) { recording.Replay(tb, exchangesOf(t), upstash.WithRetry(-1)) }).
		WantFailures(t, "making a client to replay with: upstash: bad argument")
}

// TestRecorded replays, unless UPBLOOM_RECORD says to record. Without a recording the
// failure says how to make one.
func TestRecorded(t *testing.T) {
	server := upstashtest.NewServer(t)
	t.Setenv("UPSTASH_REDIS_REST_URL", server.URL)
	t.Setenv("UPSTASH_REDIS_REST_TOKEN", server.Token)
	file := filepath.Join(t.TempDir(), "recording.json")
	faketest.Run(func(tb testing.TB) { recording.Replay(tb, file) }).
		WantFailures(t, "make it with Record, or use Recorded and run UPBLOOM_RECORD=1 go test with UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN set")
	for _, step := range []struct {
		variable string
		requests int64 // which reach the server
		failures []string
	}{
		{"", 0, []string{"UPBLOOM_RECORD=1 go test -count=1 -run '^TestFake$'"}},
		{"1", 1, nil},
		{"", 1, nil},
		{"0", 1, nil},
		{"yes", 1, []string{`UPBLOOM_RECORD is "yes": use 1 to record, or 0 to replay`}},
	} {
		t.Setenv("UPBLOOM_RECORD", step.variable)
		faketest.Run(func(tb testing.TB) {
			if _, err := recording.Recorded(tb, file).Do(t.Context(), cmdSetA); err != nil {
				t.Error(err)
			}
		}).WantFailures(t, step.failures...)
		if got := server.Stats().Requests; got != step.requests {
			t.Errorf("UPBLOOM_RECORD=%s: %d requests so far, want %d", step.variable, got, step.requests)
		}
	}
}

// TestRecordGoesAroundNoProxy: a proxy whose URL cannot be used is an error.
func TestRecordGoesAroundNoProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://user:hunter%ss@proxy.test:8080")
	t.Setenv("https_proxy", "http://user:hunter%ss@proxy.test:8080")
	file := filepath.Join(t.TempDir(), "recording.json")
	faketest.Run(func(tb testing.TB) {
		c := recording.Record(tb, file, "https://db.example.test", "token", noPause)
		_, err := c.Do(t.Context(), upstash.Cmd("INCR", "n"))
		if !upstash.SafeToRetry(err) || !strings.Contains(err.Error(), "HTTPS_PROXY") {
			t.Errorf("got %v, want an error that names HTTPS_PROXY", err)
		}
	}).WantFailures(t)
}

// TestFullDiskKeepsTheOldRecording: a file that cannot be written to its end takes no
// place, and leaves nothing beside it.
func TestFullDiskKeepsTheOldRecording(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "old.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no links here: ", err)
	}
	full := errors.New("the disk is full")
	for _, write := range []struct {
		name string
		err  error
		want string
	}{
		{file, full, "old"},
		{file, nil, "new"},
		{link, nil, "new"},
		{filepath.Join(dir, "none", "x"), nil, "new"},
		{dir, nil, "new"},
	} {
		wantErr := write.err != nil || write.name != file && write.name != link
		err := recording.Replace(write.name, func(f *os.File) error {
			_, err := f.WriteString("new")
			return errors.Join(err, write.err)
		})
		data, readErr := os.ReadFile(file)
		if (err != nil) != wantErr || readErr != nil || string(data) != write.want {
			t.Errorf("%s: %v, and holds %q, %v", write.name, err, data, readErr)
		}
	}
	left, err := os.ReadDir(dir)
	info, statErr := os.Stat(file)
	if err != nil || len(left) != 2 || statErr != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v are left, %v; %v, %v", left, err, info, statErr)
	}
	if to, err := os.Readlink(link); to != file {
		t.Errorf("the link leads to %s, %v", to, err)
	}
}
