package readers_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A bitmap or a bare filter may begin with zeros, as a missing string does. To
// open it says so, and costs commands for its length and, once more, its header.
func TestZerosAreNoMissingFilter(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		for _, bit := range []string{"53", "60", "64", "130", "9000"} {
			s.FlushAll()
			if _, err := s.Exec("SETBIT", "k", bit, "1"); err != nil {
				t.Fatal(err)
			}
			for _, readOnly := range []bool{false, true} {
				s.ResetStats()
				q := question{"op": "exists", "key": "k", "items": []string{"a"}, "readOnly": readOnly}
				wantError(t, r, q, "Mismatch")
				if n := s.Stats().Requests; n != 3 {
					t.Errorf("bit %s: %d requests, want 3", bit, n)
				}
			}
		}
		s.FlushAll()
		s.ResetStats()
		wantError(t, r, question{"op": "exists", "key": "k", "items": []string{"a"}}, "NotFound")
		if n := s.Stats().Requests; n != 2 {
			t.Errorf("a missing filter: %d requests, want 2", n)
		}
	})
}

// A filter made between open's two questions is found.
func TestAFilterMadeMeanwhile(t *testing.T) {
	test := func(t *testing.T, exe string, args ...string) {
		s := upstashtest.NewServer(t)
		f, err := bloom.New(s.Client(), "k", bloom.Config{Bits: 53 * 200, Hashes: 4})
		if err != nil {
			t.Fatal(err)
		}
		to, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		made := false
		proxy := httputil.NewSingleHostReverseProxy(to)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"STRLEN"`)) {
				made, err = f.Add(r.Context(), "a")
			}
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		s.URL = front.URL
		r := start(t, s, exe, args...)
		r.want(t, question{"op": "exists", "key": "k", "items": []string{"a"}}, []bool{true})
		if !made {
			t.Error("open did not ask for the length, want that it does")
		}
	}
	t.Run("typescript", func(t *testing.T) { test(t, testenv.Need(t, "node", "node"), compiled(t)) })
	t.Run("python", func(t *testing.T) { test(t, python(t), "testdata/answer.py") })
}
