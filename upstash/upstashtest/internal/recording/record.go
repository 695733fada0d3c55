package recording

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// Record is upstashtest.Record.
func Record(tb testing.TB, file, url, token string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	return record(tb, file, url, opts, func(opts ...upstash.Option) (*upstash.Client, error) {
		return upstash.New(url, token, opts...)
	})
}

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
		return record(tb, file, url, opts, upstash.FromEnv)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		tb.Fatalf("upstashtest: there is no recording %s: make it with\n\t%s\n"+
			"and UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN set", file, recordCommand(tb))
	}
	return Replay(tb, file, opts...)
}

func record(tb testing.TB, file, url string, opts []upstash.Option,
	dial func(...upstash.Option) (*upstash.Client, error),
) *upstash.Client {
	tb.Helper()
	if file == "" {
		tb.Fatalf("upstashtest: the recording has no name: name a file")
	}
	next := &http.Transport{
		Proxy:              httptransport.ProxyFromEnvironment,
		ForceAttemptHTTP2:  true,
		DisableCompression: true, // the file has the answer as it was sent
	}
	r := &recorder{next: next, base: basePath(url), secrets: make(secrets)}
	transport := httptransport.New(&http.Client{Transport: r})
	all := append([]upstash.Option{sameClock()}, opts...)
	markDraws(tb)
	client, err := dial(append(all, upstash.WithTransport(transport))...)
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
	if len(answer) > maxRecorded {
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
		err = replace(file, func(f *os.File) error { _, err := f.Write(data); return err })
	}
	if err != nil {
		tb.Errorf("upstashtest: writing the recording: %v", err)
		return
	}
	tb.Logf("upstashtest: %d exchanges are recorded in %s", len(rec.Exchanges), file)
}

// replace writes a file beside the named one, and then renames it: on a full disk
// the old one stays. It follows a link, and writes directly into what is no plain
// file.
func replace(name string, write func(*os.File) error) error {
	before, err := os.Stat(name)
	if err == nil && !before.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}
	beside := filepath.Join(filepath.Dir(name), ".recording-"+rand.Text())
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer os.Remove(beside)
	err = write(f)
	if before != nil {
		err = errors.Join(err, f.Chmod(before.Mode().Perm()))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(beside, name)
}

// secrets are the values a recording must not contain, the token and the host,
// and the words for them. They come from the requests.
type secrets map[string]string

func (s secrets) learn(req *http.Request) {
	if token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "); token != "" {
		s[token] = "the token"
	}
	s[hostOf(req.URL)] = "the host"
}

// hostOf returns the host's name, by which a database can be found. For a
// loopback address it returns name and port: 127.0.0.1 alone is no secret, and
// occurs in many tests.
func hostOf(u *url.URL) string {
	name := u.Hostname()
	addr, _ := netip.ParseAddr(name)
	if name == "localhost" || addr.IsLoopback() {
		return u.Host
	}
	return name
}

// in returns the word for a secret in data, or "".
func (s secrets) in(data []byte) string {
	lower := bytes.ToLower(data)
	for value, word := range s {
		if bytes.Contains(lower, []byte(strings.ToLower(value))) {
			return word
		}
	}
	return ""
}

// maxNesting is how many encodings around a secret are taken off: JSON in JSON,
// base64 in a URL in JSON.
const maxNesting = 5

// hiddenIn returns the word for a secret in data, in plain or encoded, or "".
// It looks into strings of JSON, URL escapes and both alphabets of base64.
func (s secrets) hiddenIn(data []byte, nesting int) string {
	if word := s.in(data); word != "" || nesting == 0 {
		return word
	}
	inner := append(base64In(data), stringsIn(data)...)
	if plain := unescape(data); len(plain) < len(data) {
		inner = append(inner, plain)
	}
	for _, each := range inner {
		if word := s.hiddenIn(each, nesting-1); word != "" {
			return word
		}
	}
	return ""
}

// literal matches a string of JSON, in quotes.
var literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// stringsIn returns the strings of a JSON document, including names.
func stringsIn(doc []byte) (all [][]byte) {
	for _, quoted := range literal.FindAll(doc, -1) {
		var s string
		if json.Unmarshal(quoted, &s) == nil {
			all = append(all, []byte(s))
		}
	}
	return all
}

// escape matches an escape of a URL, and base64Word what may be base64, of either
// alphabet, with padding or without.
var (
	escape     = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	base64Word = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}`)
)

// unescape replaces the escapes of a URL.
func unescape(data []byte) []byte {
	return escape.ReplaceAllFunc(data, func(m []byte) []byte {
		plain, _ := hex.DecodeString(string(m[1:]))
		return plain
	})
}

// base64In decodes what may be base64 in data. Other characters of the alphabet
// may stand before it, so all four alignments are tried.
func base64In(data []byte) (all [][]byte) {
	for _, word := range base64Word.FindAll(data, -1) {
		text := strings.NewReplacer("-", "+", "_", "/").Replace(string(word))
		for i := range 4 {
			part := text[i:]
			if len(part)%4 == 1 {
				part = part[:len(part)-1]
			}
			if decoded, err := base64.RawStdEncoding.DecodeString(part); err == nil {
				all = append(all, decoded)
			}
		}
	}
	return all
}
