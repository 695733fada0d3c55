package upstashtest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// FuzzJSONBody sends any body to the three places for JSON.
func FuzzJSONBody(f *testing.F) {
	for _, body := range []string{
		`["SET","foo","bar"]`, `[["SET","foo","bar"],["GET","foo"]]`, `["GET",null]`, `[]`, ``,
		`["GET",1e3,true,{"a":[1,2]}]`, `["BITFIELD","k","SET","u1","#7","1"]`,
	} {
		for path := range uint8(3) {
			f.Add(path, body)
		}
	}
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, path uint8, body string) {
		paths := []string{"/", "/pipeline", "/multi-exec"}
		s.answer(t, http.MethodPost, paths[int(path)%len(paths)], body)
	})
}

// FuzzPath sends any path and query, with any raw body.
func FuzzPath(f *testing.F) {
	f.Add("/SET/foo/bar", "EX=100", "")
	f.Add("/setrange/k/0", "", "\x00\xff")
	f.Add("/set/k", "NX&EX=9", "raw")
	f.Add("/echo/a%2Fb%20c", "_token=x&=&&a", "")
	f.Add("//", "", "")
	f.Add("/get/%zz", "%zz", "")
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, path, query, body string) {
		// The server never gets a request that net/http itself refuses.
		u, err := url.ParseRequestURI("/" + strings.TrimPrefix(path, "/") + "?" + query)
		if err != nil || !strings.HasPrefix(path, "/") || strings.ContainsAny(u.String(), " \r\n") {
			t.Skip()
		}
		s.answer(t, http.MethodPost, u.String(), body)
	})
}

type fuzzed struct{ *Server }

func fuzzServer(f *testing.F) fuzzed {
	f.Helper()
	return fuzzed{NewServer(f, WithMaxRequest(1<<16), WithMaxRecord(1<<16))}
}

// answer sends a request. It fails the test if the answer is incomplete, or
// shows a defect of the server.
func (s fuzzed) answer(t *testing.T, method, target, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+target, strings.NewReader(body))
	if err != nil {
		t.Skip()
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	w := httptest.NewRecorder()
	s.serve(w, r)
	out := w.Body.String()
	switch {
	case w.Code >= 500:
		t.Errorf("status %d: %s, want one below 500", w.Code, out)
	case !hasAnyPrefix(out, `{"result":`, `{"error":`, `[{"result":`, `[{"error":`):
		t.Errorf("answer: %s, want a result or an error, alone or in an array", out)
	case w.Code != http.StatusOK && !strings.HasPrefix(out, `{"error":`):
		t.Errorf("status %d with %s, want an error with it", w.Code, out)
	}
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
