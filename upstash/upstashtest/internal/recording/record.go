package recording

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
		tb.Fatalf("upstashtest: there is no recording %s: make it with\n\t%s\n"+
			"and UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN set", file, recordCommand(tb))
	}
	return Replay(tb, file, opts...)
}

// recordCommand returns the command that records anew in a test of Recorded.
func recordCommand(tb testing.TB) string {
	return recordVariable + "=1 go test -count=1 -run '^" + tb.Name() + "$'"
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

// maxRecorded is the longest answer to record, in bytes. The recorder holds all
// answers in memory, and the file is for people to read.
const maxRecorded = 64 << 20

var errTooLongToRecord = errors.New("an answer above 64 MiB is not recorded: ask for less at once")

// recorder is an http.RoundTripper that records requests and answers. It is
// safe for concurrent use.
type recorder struct {
	next http.RoundTripper
	base string // the path of the database's URL, without a slash at its end

	mu        sync.Mutex
	exchanges []*exchange
	secrets   secrets
	stopped   bool
}

// RoundTrip sends the request once, and reads its whole answer.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	x := r.begin(req, body)

	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	out := req.Clone(ctx)
	out.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := r.next.RoundTrip(out)
	if err != nil {
		if !connected.Load() {
			r.end(x, recordedResponse{Failure: failureNotSent})
			err = upstash.NotSent(err) // only this recorder has read the body
		}
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxRecorded+1))
	if err == nil && len(answer) > maxRecorded {
		err = errTooLongToRecord
	}
	if err != nil {
		return nil, err
	}
	r.end(x, recordedResponse{
		Status:      resp.StatusCode,
		ContentType: resp.Header.Get("Content-Type"),
		RetryAfter:  resp.Header.Get("Retry-After"),
		payload:     newPayload(answer),
	})
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}

// begin adds an exchange to the recording. Until end is called, the exchange
// says that no answer came.
func (r *recorder) begin(req *http.Request, body []byte) *exchange {
	x := &exchange{
		Request:  requestOf(req, r.base, body),
		Response: recordedResponse{Failure: failureNoAnswer},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.exchanges = append(r.exchanges, x)
		r.secrets.learn(req)
	}
	return x
}

func (r *recorder) end(x *exchange, a recordedResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.Response = a
}

// stop ends the recording and returns it. Requests still under way are not
// recorded any further.
func (r *recorder) stop() (recording, secrets) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	rec := recording{Version: recordingVersion, Exchanges: []exchange{}}
	for _, x := range r.exchanges {
		rec.Exchanges = append(rec.Exchanges, *x)
	}
	rec.settle()
	return rec, r.secrets
}

// requestOf returns the part of a request by which it is recognized. base is
// the path of the database's URL.
func requestOf(req *http.Request, base string, body []byte) recordedRequest {
	path := strings.TrimPrefix(req.URL.EscapedPath(), base)
	q := recordedRequest{Method: req.Method, Path: path, payload: newPayload(body)}
	switch {
	case strings.EqualFold(req.Header.Get("Upstash-Response-Format"), encodingRESP2):
		q.Encoding = encodingRESP2
	case strings.EqualFold(req.Header.Get("Upstash-Encoding"), encodingBase64):
		q.Encoding = encodingBase64
	}
	return q
}

// basePath returns the path of a database's URL, without slashes at its end.
// For a URL that cannot be parsed it returns "": no client is made for it.
func basePath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.TrimRight(u.EscapedPath(), "/")
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
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		tb.Errorf("upstashtest: writing the recording: %v", err)
		return
	}
	tb.Logf("upstashtest: %d exchanges are recorded in %s", len(rec.Exchanges), file)
}
