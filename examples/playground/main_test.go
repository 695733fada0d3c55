package main

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, server *httptest.Server, path string) (*http.Response, string) {
	t.Helper()
	resp, err := server.Client().Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func serve(t *testing.T) (*httptest.Server, fs.FS) {
	t.Helper()
	page, err := fs.Sub(embedded, "page")
	if err != nil {
		t.Fatal(err)
	}
	built := fstest.MapFS{
		"playground.wasm": {Data: []byte("\x00asm")}, "wasm_exec.js": {Data: []byte("// Go")},
	}
	server := httptest.NewServer(handler(page, built))
	t.Cleanup(server.Close)
	return server, page
}

// A browser streams WebAssembly only if its type is right. The policy lets the
// page load nothing from elsewhere.
func TestServes(t *testing.T) {
	server, _ := serve(t)
	for path, want := range map[string]string{
		"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript",
		"/built/playground.wasm": "application/wasm", "/built/wasm_exec.js": "text/javascript",
	} {
		resp, body := get(t, server, path)
		if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), want) ||
			body == "" {
			t.Errorf("GET %s: %s, %s, %d bytes, want 200, %s and a body",
				path, resp.Status, resp.Header.Get("Content-Type"), len(body), want)
		}
		if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'self'") {
			t.Errorf("GET %s: the policy is %q, want default-src 'self'", path, policy)
		}
	}
	if resp, _ := get(t, server, "/built/go.mod"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("GET of what was not built: %s, want 404", resp.Status)
	}
}

// Everything named by the page is served here.
func TestNamesNothingElsewhere(t *testing.T) {
	server, page := serve(t)
	names := regexp.MustCompile(`(?:src|href)="([^"#]+)"|from "([^"]+)"|url\(([^)]+)\)`)
	seen := 0
	err := fs.WalkDir(page, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(page, path)
		if err != nil {
			return err
		}
		for _, m := range names.FindAllStringSubmatch(string(text), -1) {
			name := m[1] + m[2] + m[3]
			if u, err := url.Parse(name); err != nil || u.IsAbs() || u.Host != "" {
				t.Errorf("%s names %s, want no other host", path, name)
				continue
			}
			seen++
			if resp, _ := get(t, server, "/"+strings.TrimPrefix(name, "./")); resp.StatusCode != http.StatusOK {
				t.Errorf("%s names %s: %s, want 200", path, name, resp.Status)
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Errorf("the page has %d names, %v, want some", seen, err)
	}
}
