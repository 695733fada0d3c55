//go:build !wasm

package upstash_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

const pathQuestion = "the URL has a path, /get/foo: is it right?"

// TestPathIsAskedAbout: if the URL has a path by mistake, the error asks about
// it, over any transport and in any form of request.
func TestPathIsAskedAbout(t *testing.T) {
	s := upstashtest.NewServer(t)
	for name, opts := range map[string][]upstash.Option{
		"default":       nil,
		"httptransport": {upstash.WithTransport(httptransport.New(nil))},
	} {
		c, err := upstash.New(s.URL+"/get/foo/", s.Token, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		get := upstash.Cmd("GET", "k")
		_, one := c.Do(t.Context(), get)
		_, batch := c.Pipeline(t.Context(), get, get)
		_, all := c.MultiExec(t.Context(), get, get)
		for form, err := range map[string]error{"Do": one, "Pipeline": batch, "MultiExec": all} {
			if err == nil || strings.Count(err.Error(), pathQuestion) != 1 {
				t.Errorf("%s, %s: got %v, want the question %q", name, form, err, pathQuestion)
			}
		}
	}
}

// TestPathIsNotAskedAbout: with the right path, the database's own errors raise
// no question, and without a path none does.
func TestPathIsNotAskedAbout(t *testing.T) {
	for _, tt := range []struct {
		path, body string
		status     int
		want       bool
	}{
		{"/get/foo", `{"error":"ERR no such command"}`, 400, true},
		{"/get/foo", "<html>", 404, true},
		{"/get/foo", `{"result":"OK"}`, 200, true}, // one result, where an array was due
		{"/get/foo", `{"error":"WRONGTYPE another kind"}`, 400, false},
		{"/get/foo", `{"error":"ERR max request size exceeded"}`, 400, false},
		{"/get/foo", `{"error":"Unauthorized"}`, 401, false},
		{"/get/foo", `{"error":"ERR busy"}`, 500, false},
		{"/", `{"error":"ERR no such command"}`, 400, false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(tt.body))
		}))
		c, err := upstash.New(s.URL+tt.path, "token", upstash.WithRetry(0))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Pipeline(context.Background(), upstash.Cmd("GET", "k"))
		if err == nil || strings.Contains(err.Error(), "is it right?") != tt.want {
			t.Errorf("%s, %d %s: %v, want a question: %v", tt.path, tt.status, tt.body, err, tt.want)
		}
		_ = c.Close()
		s.Close()
	}
}
