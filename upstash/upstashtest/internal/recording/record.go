package recording

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

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

// recordVariable is the environment variable that Recorded reads.
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
	client, err := dial(append(opts[:len(opts):len(opts)], upstash.WithTransport(transport)))
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

// finish ends the recording and writes the file, unless the test failed.
func (r *recorder) finish(tb testing.TB, file string) {
	tb.Helper()
	rec, known := r.stop()
	if tb.Failed() || tb.Skipped() {
		tb.Logf("upstashtest: %s is not written: the test did not pass", file)
		return
	}
	data := rec.layout()
	if word := rec.secret(known, data); word != "" {
		tb.Errorf("upstashtest: %s is not written: %s occurs in a request or an answer:"+
			" record with data that does not hold it", file, word)
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

// secret returns the word for a secret that the file would contain, or "". It
// looks into the file as it will be written, and decodes the parts in which a
// secret could hide: escaped paths, bodies that are not JSON, and the escapes
// and the base64 of JSON strings.
func (r recording) secret(known secrets, data []byte) string {
	if word := known.in(data); word != "" {
		return word
	}
	for _, x := range r.Exchanges {
		path, _ := url.PathUnescape(x.Request.Path) // valid, because it was sent
		if word := known.in([]byte(path)); word != "" {
			return word
		}
		for _, p := range []payload{x.Request.payload, x.Response.payload} {
			if word := known.in(p.bytes()); word != "" {
				return word
			}
			for _, s := range stringsIn(p.JSON) {
				if word := known.in([]byte(s)); word != "" {
					return word
				}
				decoded, err := base64.StdEncoding.DecodeString(s)
				if word := known.in(decoded); err == nil && word != "" {
					return word
				}
			}
		}
	}
	return ""
}

// stringsIn returns the strings of a JSON document, including names.
func stringsIn(doc []byte) (all []string) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil { // the end: the document is valid
			return all
		}
		if s, ok := t.(string); ok {
			all = append(all, s)
		}
	}
}
