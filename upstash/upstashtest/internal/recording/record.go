package recording

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// Record is upstashtest.Record.
func Record(tb testing.TB, file, url, token string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	return record(tb, file, url, opts, func(opts []upstash.Option) (*upstash.Client, error) {
		return upstash.New(url, token, opts...)
	})
}

// recordVariable is the environment variable of Recorded.
const recordVariable = "UPBLOOM_RECORD"

// Recorded is upstashtest.Recorded.
func Recorded(tb testing.TB, file string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	value := os.Getenv(recordVariable)
	recording, err := strconv.ParseBool(value)
	switch {
	case value == "":
	case err != nil:
		tb.Fatalf("upstashtest: %s is %q: use 1 to record, or 0 to replay", recordVariable, value)
	case recording:
		url := cmp.Or(os.Getenv("UPSTASH_REDIS_REST_URL"), os.Getenv("KV_REST_API_URL"))
		return record(tb, file, url, opts, func(opts []upstash.Option) (*upstash.Client, error) {
			return upstash.FromEnv(opts...)
		})
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		tb.Fatalf("upstashtest: there is no recording %s: make it with\n\t%s=1 go test -run '^%s$'\n"+
			"and UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN set", file, recordVariable, tb.Name())
	}
	return Replay(tb, file, opts...)
}

func record(tb testing.TB, file, url string, opts []upstash.Option,
	dial func([]upstash.Option) (*upstash.Client, error),
) *upstash.Client {
	tb.Helper()
	next := &http.Transport{
		Proxy:              http.ProxyFromEnvironment,
		ForceAttemptHTTP2:  true,
		DisableCompression: true, // the file has the answer as it was sent
	}
	r := &recorder{next: next, base: basePath(url)}
	transport := httptransport.New(&http.Client{Transport: r})
	all := append([]upstash.Option{sameClock()}, opts...)
	noteDraws(tb)
	client, err := dial(append(all, upstash.WithTransport(transport)))
	if err != nil {
		tb.Fatalf("upstashtest: making a client to record with: %v", err)
	}
	tb.Cleanup(func() {
		_ = client.Close()
		next.CloseIdleConnections()
		r.finish(tb, file)
	})
	return client
}

// sameClock stands still at the same moment in each run, so requests depend
// neither on the day nor on how long a run takes. The moment is far from any
// server's clock: if a call needs the time, it asks the server, and the recording
// has the answer.
func sameClock() upstash.Option {
	return upstash.WithClock(
		func() time.Time { return time.Unix(0, 0) }, func() time.Duration { return 0 })
}

// finish ends the recording and writes the file, unless the test failed.
func (r *recorder) finish(tb testing.TB, file string) {
	tb.Helper()
	rec, known := r.stop()
	if tb.Failed() || tb.Skipped() {
		tb.Logf("upstashtest: %s is not written: the test did not pass", file)
		return
	}
	data := rec.layout()
	if word := known.hiddenIn(data, maxNesting); word != "" {
		tb.Errorf("upstashtest: %s is not written: %s occurs in a request or an answer:"+
			" record with data that does not hold it (a short token occurs by chance)", file, word)
		return
	}
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = replaceFile(file, data)
	}
	if err != nil {
		tb.Errorf("upstashtest: writing the recording: %v", err)
		return
	}
	tb.Logf("upstashtest: %d exchanges are recorded in %s", len(rec.Exchanges), file)
}

// replaceFile writes a file beside the old one and then renames it. A full disk
// leaves the old one whole. It follows a link, and writes directly into anything
// but a plain file: a rename would put a file in the place of /dev/null.
func replaceFile(name string, data []byte) error {
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, data, 0)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".recording-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
